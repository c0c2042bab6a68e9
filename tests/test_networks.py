"""The default networks take any size, use every parameter, and treat data points one by one."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from codevae.errors import InputError
from codevae.likelihoods import Bernoulli, Categorical, Columns, Laplace, Normal, Poisson, ZeroInflatedNegativeBinomial
from codevae.modality import Modality
from codevae.networks import ImageDecoder, ImageEncoder, TableDecoder, TableEncoder, TokenDecoder, TokenEncoder
from codevae.networks.image import halvings

IMAGES = [(1, 1, 1), (1, 2, 3), (3, 28, 28), (1, 4, 4), (2, 5, 5), (3, 33, 17), (1, 64, 3), (1, 7, 100)]
ENCODERS = [
    *((ImageEncoder, shape, {"width": 4}) for shape in IMAGES),
    (TableEncoder, (1,), {}),
    (TableEncoder, (5,), {"depth": 0}),
    (TableEncoder, (2, 3), {"width": 7, "depth": 3, "dropout": 0.5}),
    (TokenEncoder, (1, 4), {"width": 8}),
    (TokenEncoder, (9, 4), {"width": 8, "depth": 0}),
]
DECODERS = [
    *((ImageDecoder, shape, {"width": 4}) for shape in IMAGES),
    (ImageDecoder, (3, 9, 5, 2), {"width": 4}),  # two raw numbers a pixel
    (TableDecoder, (1,), {}),
    (TableDecoder, (5, 2), {"depth": 0}),
    (TokenDecoder, (1, 4), {"width": 8}),
    (TokenDecoder, (9, 4), {"width": 8}),
]


def label(case):
    return f"{case[0].__name__}{case[1]}" if isinstance(case, tuple) else str(case)


def check(network, x, shape):
    """The shape, a gradient for every parameter, and no data point that looks at another."""
    result = network(x)
    assert result.shape == (len(x), *shape)
    result.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in network.parameters())
    network.eval()
    assert_close(network(x)[2:3], network(x[2:3]), rtol=1e-4, atol=1e-5)
    if len(x) > 1:
        assert not torch.allclose(network(x)[0], network(x)[1])


@pytest.mark.parametrize("case", ENCODERS, ids=label)
def test_encoders(case):
    kind, features, settings = case
    check(kind(features, 6, **settings), torch.randn(5, *features), (6,))


@pytest.mark.parametrize("case", DECODERS, ids=label)
def test_decoders(case):
    kind, shape, settings = case
    check(kind(3, shape, **settings), torch.randn(5, 3), shape)


@pytest.mark.parametrize("kind", [TableEncoder, ImageEncoder])
def test_encoders_that_see_gaps(kind):
    encoder = kind((2, 6, 6), 4, sees_gaps=True)
    x, entries = torch.randn(5, 2, 6, 6), torch.rand(5, 2, 6, 6) < 0.5
    assert encoder.eval()(x, entries).shape == (5, 4)
    assert not torch.allclose(encoder(x, entries), encoder(x, ~entries))
    encoder(x, entries).sum().backward()
    assert all(parameter.grad.any() for parameter in encoder.parameters())


def test_halvings_are_those_of_a_strided_convolution():
    convolution = nn.Conv2d(1, 1, 3, 2, 1)
    for height, width in [(28, 28), (33, 17), (64, 3), (5, 4)]:
        x = torch.zeros(1, 1, height, width)
        for size in halvings(height, width)[1:]:
            x = convolution(x)
            assert x.shape[2:] == size
        assert max(x.shape[2:]) <= 4


def test_two_raw_numbers_a_pixel_are_not_mixed_up():
    """The last axis of (C, H, W, 2) holds a pixel's own numbers: shifting the output channels shifts exactly those."""
    decoder = ImageDecoder(3, (3, 4, 4, 2), width=4)
    with torch.no_grad():
        decoder.out.weight.zero_()
        decoder.out.bias.copy_(torch.arange(6.0))
    assert torch.equal(decoder(torch.randn(2, 3))[0, :, 1, 2], torch.arange(6.0).view(3, 2))


SIZES = {
    "table": ((4,), Normal()),
    "one column": ((1,), Bernoulli()),
    "image": ((3, 9, 9), Laplace(0.75, standardise=False)),
    "image of counts": ((1, 6, 6), ZeroInflatedNegativeBinomial()),
    "labelled image": ((1, 3, 3), Categorical(4)),
    "plane": ((4, 5), Normal()),
    "label": ((1,), Categorical(3)),
    "tokens": ((6,), Categorical(5)),
    "columns": ((4,), Columns([(Normal(), [0]), (Categorical(3), [1, 3]), (Poisson(), [2])])),
}


@pytest.mark.parametrize("sees_gaps", [False, True])
@pytest.mark.parametrize("name", SIZES)
def test_defaults_fit_every_shape_and_likelihood(name, sees_gaps):
    shape, likelihood = SIZES[name]
    modality = Modality("x", shape, likelihood, private_dim=1, sees_gaps=sees_gaps).build(2)
    x, entries = torch.zeros(5, *shape), torch.rand(5, *shape) < 0.7
    raw = modality.encode(x, entries)
    assert raw.shape == (5, 2 * 3)
    decoded = modality.decode(torch.randn(2, 3, 5, 3))
    assert decoded.shape == (2, 3, 5, *likelihood.raw_shape)
    score = likelihood.score(decoded, x, entries)
    (raw.square().sum() + score.sum()).backward()
    assert all(parameter.grad is not None for parameter in modality.parameters())
    whole = torch.ones(5, *(1,) * len(shape), dtype=torch.bool)  # one flag for all entries of a data point
    assert torch.equal(modality.eval().encode(x, whole), modality.encode(x, whole.expand(x.shape)))


def test_an_encoder_that_sees_gaps_tells_zero_from_absent():
    shape, likelihood = SIZES["columns"]
    modality = Modality("x", shape, likelihood, sees_gaps=True).build(2).eval()
    assert modality.encoder.hidden[0].in_features == 2 * math.prod(likelihood.feature_shape)
    everything, nothing = torch.ones(1, 4, dtype=torch.bool), torch.zeros(1, 4, dtype=torch.bool)
    x = torch.zeros(1, 4)
    assert not torch.allclose(modality.encode(x, everything), modality.encode(x, nothing))


def test_decode_keeps_samples_subsets_and_points_apart():
    modality = Modality("x", (4,), decoder=nn.Linear(2, 4)).build(2)
    codes = torch.randn(2, 3, 5, 2)
    assert_close(modality.decode(codes)[1, 2, 4], modality.decoder(codes[1, 2, 4]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Modality("", (3,)), r"Modality\(name\): expected a text, got ''"),
        (lambda: Modality("x", ()), r"Modality\(shape\): expected sizes of at least 1 for 'x'"),
        (lambda: Modality("x", (3, 0)), r"Modality\(shape\)"),
        (lambda: Modality("x", (3,), private_dim=-1), r"Modality\(private_dim\): expected 0 or more for 'x', got -1"),
        (lambda: Modality("x", (3,), encoder=lambda x: x).build(2), "encoder of 'x': expected an nn.Module or functools.partial"),
        (
            lambda: Modality("x", (3,), decoder=nn.Linear(2, 4)).build(2).decode(torch.zeros(1, 1, 1, 2)),
            r"decoder of 'x': expected \(N, 3\) for Normal",
        ),
    ],
)
def test_what_is_said_when_it_is_held_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()
