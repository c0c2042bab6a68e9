"""Values say what they are."""

import pytest
import torch

from codevae.batch import Batch
from codevae.data import modalities
from codevae.errors import InputError
from codevae.likelihoods import Bernoulli, Categorical, Laplace, NegativeBinomial, Normal, Poisson
from codevae.model import MultimodalVAE

nan = float("nan")


draw = torch.Generator().manual_seed(0)


def bits(*shape):
    return torch.randint(0, 2, shape, generator=draw)


CASES = {
    "numbers": (torch.randn(20, 3, generator=draw), Normal),
    "whole floats are numbers": (torch.arange(60.0).reshape(20, 3), Normal),
    "0 and 1": (bits(20, 3).float(), Bernoulli),
    "bool": (bits(20, 3).bool(), Bernoulli),
    "0, 1 and gaps": (torch.tensor([[0.0, 1.0], [1.0, nan]]), Bernoulli),
    "small counts": (torch.poisson(torch.full((500, 6), 3.0), generator=draw).long(), Poisson),
    "overdispersed": (torch.poisson(torch.empty(500, 6).exponential_(0.05, generator=draw), generator=draw).int(), NegativeBinomial),
    "below 0": (bits(20, 3) - 5, Normal),
    "image": (torch.rand(4, 3, 8, 8, generator=draw), Normal),
    "bytes": ((255 * torch.rand(4, 1, 8, 8, generator=draw)).byte(), Normal),
    "black and white": (bits(4, 1, 8, 8).byte(), Bernoulli),
}


@pytest.mark.parametrize("case", CASES)
def test_guess(case):
    values, expected = CASES[case]
    (part,) = modalities(Batch({"x": values}))
    assert type(part.likelihood) is expected and part.shape == values.shape[1:]


def test_what_is_hidden_is_not_looked_at():
    values = torch.tensor([[0, 1], [-7, 900]])
    (part,) = modalities(Batch({"x": values}, entries={"x": torch.tensor([True, False])}))
    assert type(part.likelihood) is Bernoulli


@pytest.mark.parametrize(
    ("values", "gaps"),
    [([[1.0, 2.5], [nan, nan]], False), ([[1.0, nan], [nan, nan]], True), ([[1.0, 2.5], [3.0, 4.0]], False)],
)
def test_an_encoder_is_told_of_gaps_inside_a_row_only(values, gaps):
    (part,) = modalities(Batch({"x": torch.tensor(values)}))
    assert part.sees_gaps is gaps


def test_what_is_said_goes_before_the_guess():
    batch = Batch({"a": torch.randn(9, 4), "b": torch.randn(9, 2), "c": torch.randint(0, 5, (9, 3)), "d": torch.randn(9, 1)})
    said = {"a": Laplace(scale=1.0), "b": "StudentT", "c": Categorical(5), "d": Laplace}
    a, b, c, d = modalities(batch, said, private_dim={"b": 3}, pictures={"a": (2, 2)})
    assert a.likelihood is said["a"] and a.picture == (2, 2) and a.private_dim == 0
    assert type(b.likelihood).__name__ == "StudentT" and b.private_dim == 3
    assert c.likelihood is said["c"] and type(d.likelihood) is Laplace
    assert [part.private_dim for part in modalities(batch, private_dim=2)] == [2, 2, 2, 2]


def test_the_guess_makes_a_model_that_takes_the_data():
    batch = Batch({case: torch.cat([values, values])[:4] for case, (values, _) in CASES.items()})
    model = MultimodalVAE(modalities(batch), latent_dim=2, seed=0)
    model.calibrate(model.prepare(batch))
    assert torch.isfinite(model(model.prepare(batch)).value).all()


def test_errors():
    batch = Batch({"x": torch.tensor([[nan, nan]]), "y": torch.ones(1, 2)})
    with pytest.raises(InputError, match=r"modalities\(batch\): 'x' has no entry to guess from; leave it out, or make its Modality"):
        modalities(batch)
    for argument in ("likelihoods", "private_dim", "pictures"):
        with pytest.raises(InputError, match=f"{argument}: 'z' is not a modality here; the modalities are 'x', 'y'"):
            modalities(batch, **{"likelihoods": {"x": "Normal"}, argument: {"z": (2, 2) if argument == "pictures" else 1}})
    for asked in ("Normall", 3, torch.nn.Linear, "Columns", "Likelihood", "_Located"):
        with pytest.raises(
            InputError,
            match=r"likelihoods\['y'\]: (expected an instance of a likelihood or one of the names 'Bernoulli'|.*needs arguments)",
        ):
            modalities(batch, {"y": asked, "x": "Normal"})
    with pytest.raises(InputError, match=r"likelihoods\['y'\]: Categorical needs arguments; give an instance of it"):
        modalities(batch, {"y": "Categorical", "x": "Normal"})
