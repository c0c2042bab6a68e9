"""What a config says of an object is enough to make it again, and no config makes anything else."""

import functools
import json

import numpy as np
import pytest
import torch
from torch import nn

from codevae.consensus import CoDE
from codevae.errors import InputError
from codevae.likelihoods import Bernoulli, Categorical, Columns, Laplace, Normal
from codevae.methods import CoDEVAE
from codevae.modality import Modality
from codevae.networks import TableEncoder
from codevae.record import Recorded, describe, find, path_of, rebuild


class Base(Recorded):
    def __init__(self, a, b=2):
        self.a, self.b = a, b


class Derived(Base):
    def __init__(self, c, *, d=4):
        super().__init__(a=c, b=d)
        self.c = c


class Heir(Derived):
    pass


class Net(nn.Linear):
    def __init__(self, width=3):
        super().__init__(width, width)


def through_text(thing):
    """As a config does it."""
    return json.loads(json.dumps(describe(thing)))


def test_the_arguments_of_the_outermost_constructor_are_kept():
    assert describe(Base(1))["arguments"] == {"a": 1, "b": 2}
    assert describe(Derived(7))["arguments"] == {"c": 7, "d": 4}
    assert describe(Heir(7, d=5)) == {"class": path_of(Heir), "arguments": {"c": 7, "d": 5}}
    assert describe(Bernoulli()) == {"class": "codevae.likelihoods.categories.Bernoulli", "arguments": {}}


def test_settled_arguments_are_what_is_kept():
    thing = Base("auto")
    thing.settle(a=3)
    assert (thing.a, describe(thing)["arguments"]["a"]) == (3, 3)


@pytest.mark.parametrize(
    "thing",
    [
        CoDE(rho=[[1.0, 0.2], [0.2, 1.0]]),
        CoDEVAE(rho=0.4, modality_weights={"a": 1.0, "b": 2.5}, subsets=3),
        Columns([(Normal(scale=0.5), [0, 2]), (Categorical(3), [1])]),
        Modality("x", (3, 8, 8), Laplace(0.75, standardise=False), picture=(8, 8, 3)),
        Modality("x", (4,), encoder=functools.partial(TableEncoder, features=[4], outputs=6)),
        TableEncoder((3,), 4, width=5),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_described_and_rebuilt_is_the_same(thing):
    plain = through_text(thing)
    again = rebuild(plain)
    assert type(again) is type(thing)
    assert through_text(again) == plain


def test_plain_values():
    plain = describe({"a": (1, 2.5), "b": np.float32(0.5), "c": torch.tensor([1, 2]), "d": None, "e": [True, "x"], 3: np.arange(2)})
    assert plain == {"a": [1, 2.5], "b": 0.5, "c": [1, 2], "d": None, "e": [True, "x"], "3": [0, 1]}
    assert rebuild(plain) == plain


def test_partials_are_kept_by_name():
    plain = through_text(functools.partial(TableEncoder, features=[3], outputs=4))
    assert plain == {"partial": "codevae.networks.table.TableEncoder", "arguments": {"features": [3], "outputs": 4}}
    assert rebuild(plain)().out.out_features == 4
    with pytest.raises(InputError, match="give its arguments by name"):
        describe(functools.partial(TableEncoder, [3]))


def test_somebody_elses_classes_need_trust():
    plain = through_text(functools.partial(Net, width=5))
    with pytest.raises(InputError, match=r"names \S*test_record.Net, which is not part of codevae: .* trust=True"):
        rebuild(plain)
    assert rebuild(plain, trust=True)().in_features == 5
    with pytest.raises(InputError, match="not part of codevae"):
        rebuild({"class": "codevae_evil.Thing", "arguments": {}})


@pytest.mark.parametrize("key", ["class", "partial"])
@pytest.mark.parametrize(
    "path",
    [
        "codevae.record.importlib.import_module",
        "codevae.record.find",  # a function, and it imports
        "codevae.batch.torch",
        "codevae.model.Iterable",
        "codevae.errors.InputError",  # ours, but nothing a config is made of
        "codevae.training.run.write",
        "codevae.files.shutil",
    ],
)
def test_a_config_reaches_only_our_own_recorded_classes(key, path):
    with pytest.raises(InputError, match="the config names"):
        rebuild({key: path, "arguments": {}})


def test_a_bare_instance_cannot_be_rebuilt():
    plain = through_text(Modality("x", (3,), encoder=nn.Linear(3, 4)))
    assert plain["arguments"]["encoder"] == {"unrecorded": "torch.nn.modules.linear.Linear"}
    with pytest.raises(InputError, match=r"cannot rebuild a bare torch.nn.modules.linear.Linear: pass it again, load\(run, modules="):
        rebuild(plain)


def test_what_is_gone_is_said():
    with pytest.raises(InputError, match=r"codevae.likelihoods.Gone, which cannot be imported here"):
        find("codevae.likelihoods.Gone")
    with pytest.raises(InputError, match="is it on the Python path"):
        find("nowhere.at.All", trust=True)
