"""A fingerprint changes with the data and with nothing else."""

import torch

from codevae.batch import Batch
from codevae.data import fingerprint


def batch(**changes):
    fields = {"values": {"a": torch.arange(6.0).reshape(3, 2), "b": torch.ones(3, 1, dtype=torch.uint8)}, "labels": {"y": [0, 1, 2]}}
    return Batch(**{**fields, **changes})


def test_what_does_not_matter():
    first = fingerprint(batch())
    assert len(first) == 16 and int(first, 16) >= 0
    assert first == fingerprint(batch(labels={}, ids=["x", "y", "z"]))
    assert first == fingerprint(batch(entries={"a": torch.ones(3, 2, dtype=torch.bool)}))
    hidden = torch.tensor([[True, False], [True, True], [True, True]])
    other = batch()
    other.values["a"][0, 1] = float("nan")
    assert fingerprint(batch(entries={"a": hidden})) == fingerprint(batch(values=other.values))


def test_what_matters():
    a, b = batch().values.values()
    changed = [
        batch(),
        batch(values={"a": a + 1, "b": b}),
        batch(values={"a": a, "c": b}),
        batch(values={"b": b, "a": a}),
        batch(values={"a": a.double().to(torch.float16), "b": b}),
        batch(values={"a": a.reshape(3, 1, 2), "b": b}),
        batch(values={"a": a, "b": b.int()}),
        batch(observed=torch.tensor([[True, True], [True, True], [True, False]])),
        batch()[[1, 0, 2]],
        batch()[:2],
    ]
    assert len({fingerprint(each) for each in changed}) == len(changed)


def test_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").write_bytes(b"abc")
    assert fingerprint(tmp_path / "a") == fingerprint(str(tmp_path / "b")) == "ba7816bf8f01cfea"
