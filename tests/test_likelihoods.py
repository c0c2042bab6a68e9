"""Every likelihood against scipy, and what must hold for each of them."""

import math
import re
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats
import torch
from scipy.special import expit, log_expit, log_softmax, softmax
from torch.testing import assert_close

from codevae.errors import InputError
from codevae.likelihoods import (
    Bernoulli,
    Categorical,
    Columns,
    Laplace,
    NegativeBinomial,
    Normal,
    Poisson,
    StudentT,
    ZeroInflatedNegativeBinomial,
)

B = 40
NAN, INF = float("nan"), float("inf")


def numbers(*shape):
    """Numbers whose columns have means and scales of their own."""
    unit = torch.arange(1.0, 1 + math.prod(shape)).reshape(shape)
    return 10 * unit + unit * torch.randn(B, *shape)


def counts(*shape):
    return torch.poisson(torch.rand(B, *shape) * 8).float()


def located(pdf, **shape):
    """The density of scaled values, in scipy's words."""

    def truth(likelihood, raw, x):
        error = (x - likelihood.offset.numpy()) / likelihood.unit.numpy() - raw
        return pdf.logpdf(error, scale=likelihood.scales().detach().numpy(), **shape)

    return truth


def bernoulli(likelihood, raw, x):
    return np.where(x == 1, log_expit(raw), log_expit(-raw))


def categorical(likelihood, raw, x):
    return np.take_along_axis(log_softmax(raw, -1), np.broadcast_to(x.astype(int), raw.shape[:-1])[..., None], -1)[..., 0]


def poisson(likelihood, raw, x):
    return scipy.stats.poisson.logpmf(x, np.exp(likelihood.base.numpy() + raw))


def negative_binomial(likelihood, raw, x):
    theta, mean = np.exp(likelihood.log_theta.detach().numpy()), np.exp(likelihood.base.numpy() + raw)
    return scipy.stats.nbinom.logpmf(x, theta, theta / (theta + mean))


def zero_inflated(likelihood, raw, x):
    zero, count = expit(raw[..., 1]), np.exp(negative_binomial(likelihood, raw[..., 0], x))
    return np.log(zero * (x == 0) + (1 - zero) * count)


def columns(likelihood, raw, x):
    """Columns of numbers, yes/no, three categories and counts, as CASES has them: 2 + 1 + 3·1 + 1·2 raw numbers."""
    normal, yes, kinds, count = likelihood.parts
    pieces = {0: located(scipy.stats.norm)(normal, raw[..., :2], x[:, [0, 3]])[..., 0]}
    pieces[3] = located(scipy.stats.norm)(normal, raw[..., :2], x[:, [0, 3]])[..., 1]
    pieces[1] = bernoulli(yes, raw[..., 2], x[:, 1])
    pieces[4] = categorical(kinds, raw[..., 3:6], x[:, 4])
    pieces[2] = zero_inflated(count, raw[..., 6:].reshape(*raw.shape[:-1], 1, 2), x[:, [2]])[..., 0]
    return np.stack([pieces[column] for column in range(5)], -1)


def mixed():
    kinds = [torch.randn(B) * 3 + 5, torch.randint(2, (B,)), counts(1)[:, 0], torch.randn(B), torch.randint(3, (B,))]
    return torch.stack([kind.float() for kind in kinds], 1)


@dataclass
class Case:
    """A likelihood, values that it describes, and their densities in scipy's words."""

    make: Any
    shape: tuple[int, ...]
    values: Any
    truth: Any
    garbage: tuple = (NAN, INF, -INF, 1e30)

    def built(self):
        """The likelihood after training has begun, with parameters that are not at their start, and its values."""
        torch.manual_seed(1)
        x = self.values()
        x = x.to(torch.get_default_dtype()) if x.is_floating_point() else x
        likelihood = self.make().build(self.shape)
        likelihood.calibrate(x, torch.ones_like(x, dtype=torch.bool))
        with torch.no_grad():
            for parameter in likelihood.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape))
        return likelihood, x

    def raw(self, likelihood, samples=2, subsets=3):
        return torch.randn(samples, subsets, B, *likelihood.raw_shape)


INTEGERS = (-1, 99, 2**40)
CASES = {
    "normal": Case(Normal, (3,), lambda: numbers(3), located(scipy.stats.norm)),
    "normal of fixed scale": Case(lambda: Normal(0.5, standardise=False), (3,), lambda: numbers(3), located(scipy.stats.norm)),
    "normal of one column": Case(Normal, (1,), lambda: numbers(1), located(scipy.stats.norm)),
    "normal of images": Case(Normal, (3, 4, 5), lambda: numbers(3, 4, 5), located(scipy.stats.norm)),
    "normal of bytes": Case(
        Normal, (1, 2, 2), lambda: torch.randint(256, (B, 1, 2, 2), dtype=torch.uint8), located(scipy.stats.norm), (0, 255)
    ),
    "normal of a plane": Case(Normal, (3, 4), lambda: numbers(3, 4), located(scipy.stats.norm)),
    "laplace": Case(Laplace, (3,), lambda: numbers(3), located(scipy.stats.laplace)),
    "laplace of the paper": Case(
        lambda: Laplace(0.75, standardise=False), (3, 2, 2), lambda: torch.rand(B, 3, 2, 2), located(scipy.stats.laplace)
    ),
    "student": Case(StudentT, (3,), lambda: numbers(3), located(scipy.stats.t, df=5.0)),
    "student of learned df": Case(
        lambda: StudentT(df="learned"),
        (3,),
        lambda: numbers(3),
        lambda made, *rest: located(scipy.stats.t, df=made.degrees().item())(made, *rest),
    ),
    "bernoulli": Case(Bernoulli, (3,), lambda: torch.randint(2, (B, 3)).float(), bernoulli),
    "bernoulli of bools": Case(Bernoulli, (3,), lambda: torch.rand(B, 3) < 0.3, bernoulli, (False, True)),
    "bernoulli of images": Case(Bernoulli, (1, 3, 3), lambda: torch.randint(2, (B, 1, 3, 3), dtype=torch.uint8), bernoulli, (0, 255)),
    "categories": Case(lambda: Categorical(4), (2,), lambda: torch.randint(4, (B, 2)), categorical, INTEGERS),
    "categories as floats": Case(lambda: Categorical(4), (2,), lambda: torch.randint(4, (B, 2)).float(), categorical),
    "one category": Case(lambda: Categorical(1), (2,), lambda: torch.zeros(B, 2), categorical),
    "tokens": Case(lambda: Categorical(7), (6,), lambda: torch.randint(7, (B, 6)), categorical, INTEGERS),
    "poisson": Case(Poisson, (3,), lambda: counts(3), poisson),
    "poisson of integers": Case(Poisson, (3,), lambda: counts(3).long(), poisson, INTEGERS),
    "negative binomial": Case(NegativeBinomial, (3,), lambda: counts(3), negative_binomial),
    "zero-inflated": Case(ZeroInflatedNegativeBinomial, (3,), lambda: counts(3), zero_inflated),
    "columns": Case(
        lambda: Columns([(Normal(), [0, 3]), (Bernoulli(), [1]), (Categorical(3), [4]), (ZeroInflatedNegativeBinomial(), [2])]),
        (5,),
        mixed,
        columns,
    ),
}
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def everywhere(x):
    return torch.ones_like(x, dtype=torch.bool)


# ------------------------------------------------------------------------------------------------ what holds for each of them


@every
def test_the_density_is_scipys(case, double):
    likelihood, x = case.built()
    raw = case.raw(likelihood)
    each = case.truth(likelihood, raw.numpy(), x.numpy())
    assert_close(likelihood.score(raw, x, everywhere(x)).detach(), torch.as_tensor(each).flatten(3).sum(-1))
    entries = torch.rand(x.shape) < 0.6
    expected = torch.as_tensor(np.where(entries.numpy(), each, 0.0)).flatten(3).sum(-1)
    assert_close(likelihood.score(raw, x, entries).detach(), expected)
    assert likelihood.wrong(x, everywhere(x)) is None


@every
def test_single_precision_is_enough(case):
    likelihood, x = case.built()
    raw = case.raw(likelihood)
    score = likelihood.score(raw, x, everywhere(x))
    assert score.dtype == torch.float32
    expected = likelihood.double().score(raw.double(), x.double() if x.is_floating_point() else x, everywhere(x))
    assert_close(score.double(), expected, rtol=1e-5, atol=1e-4)


@every
@pytest.mark.parametrize("whole_rows", [True, False])
def test_absent_entries_are_never_looked_at(case, whole_rows):
    likelihood, x = case.built()
    entries = (torch.rand(B, *(1,) * (x.ndim - 1)) < 0.6).clone() if whole_rows else torch.rand(x.shape) < 0.6
    raw = case.raw(likelihood).requires_grad_()
    results = []
    for garbage in (x[0, ..., :1].flatten()[0].item(), *case.garbage):
        dirty = torch.where(entries, x, torch.as_tensor(garbage).to(x.dtype))
        assert dirty.dtype == x.dtype
        fresh = case.make().build(case.shape)
        fresh.calibrate(dirty, entries)
        score, features = likelihood.score(raw, dirty, entries), likelihood.features(dirty, entries)
        learned = [parameter for parameter in likelihood.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(score.sum(), [raw, *learned])
        assert likelihood.wrong(dirty, entries) is None
        results.append([score, features, *gradients, *fresh.state_dict().values()])
    for result in results[1:]:
        for ours, theirs in zip(results[0], result, strict=True):
            assert torch.equal(ours, theirs)
            assert torch.isfinite(theirs).all()


@every
def test_features(case):
    likelihood, x = case.built()
    entries = torch.rand(x.shape) < 0.5
    features, gaps = likelihood.features(x, everywhere(x)), likelihood.features(x, entries)
    assert features.shape == (B, *likelihood.feature_shape)
    assert features.dtype == torch.float32
    there = likelihood.present(entries)
    assert there.shape == features.shape
    assert torch.equal(gaps, torch.where(there, features, 0.0))
    assert features.abs().max() < 12 or not getattr(likelihood, "standardise", True)  # of a size that suits a network
    assert not likelihood.features(x, torch.zeros(B, *(1,) * (x.ndim - 1), dtype=torch.bool)).any()


@every
def test_the_mean_is_that_of_the_draws(case):
    likelihood, x = case.built()
    raw = case.raw(likelihood, 1, 1)[:, :, :4].expand(20_000, -1, -1, *likelihood.raw_shape)
    draws, mean, prediction = likelihood.draw(raw), likelihood.mean(raw[:1]), likelihood.predict(raw[:1])
    assert draws.shape == raw.shape[:3] + x.shape[1:]
    assert likelihood.wrong(draws[:, 0, 0], everywhere(draws[:, 0, 0])) is None
    if isinstance(likelihood, Categorical):
        frequencies = torch.stack([(draws == c).float().mean(0) for c in range(likelihood.categories)], -1)
        assert_close(mean[0], torch.as_tensor(softmax(raw[0].numpy(), -1)))
        assert_close(frequencies, mean[0], rtol=0, atol=0.02)
        assert torch.equal(prediction, mean.argmax(-1))
    elif isinstance(likelihood, Columns):
        numbers = [0, 2, 3]  # a category's mean is its likeliest code
        error = draws.std(0) / 20_000**0.5
        assert ((draws.mean(0) - mean[0]).abs() < 5 * error + 1e-5)[..., numbers].all()
        for column in (1, 4):
            assert torch.equal(prediction[0][..., column], draws[..., column].mode(0).values)
    else:
        assert ((draws.mean(0) - mean[0]).abs() < 5 * draws.std(0) / 20_000**0.5 + 1e-5).all()
        expected = (mean > 0.5).to(mean.dtype) if isinstance(likelihood, Bernoulli) else mean
        assert torch.equal(prediction, expected)
    assert (
        likelihood.wrong(prediction[0, 0], everywhere(prediction[0, 0])) is None
        or case.values().dtype == torch.uint8
        or isinstance(likelihood, Poisson | Columns)
    )


ERRORS = {Normal: scipy.stats.norm, Laplace: scipy.stats.laplace, StudentT: scipy.stats.t(df=5.0)}


@pytest.mark.parametrize("kind", ERRORS)
def test_numbers_are_drawn_from_the_density(kind, double):
    likelihood, _ = Case(kind, (1,), lambda: numbers(1), None).built()
    raw = torch.randn(20_000, 1, 1, 1)
    errors = (likelihood.draw(raw) - likelihood.mean(raw)) / likelihood.unit / likelihood.scales()
    assert scipy.stats.kstest(errors.flatten().detach(), ERRORS[kind].cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", ["bernoulli", "categories as floats", "poisson", "negative binomial", "zero-inflated"])
def test_counts_and_categories_are_drawn_from_the_density(name, double):
    likelihood, x = CASES[name].built()
    raw = CASES[name].raw(likelihood, 1, 1)[:, :, :3].expand(20_000, -1, -1, *likelihood.raw_shape)
    draws = likelihood.draw(raw)
    for value in range(2 if name == "bernoulli" else 4):
        probability = likelihood.log_prob(raw[:1], torch.full(x.shape[1:], float(value))).exp()[0]
        assert_close((draws == value).double().mean(0), probability.detach(), rtol=0, atol=0.02)


@every
def test_a_prediction_from_several_draws(case):
    """The mean over the draws where it is a number; for categories the one that is likeliest on average, never a mean of codes."""
    likelihood, x = case.built()
    raw = 2 * case.raw(likelihood, 7, 1)
    pooled = likelihood.pool(raw)
    assert pooled.shape == (1, B, *x.shape[1:])
    if isinstance(likelihood, Categorical):
        assert torch.equal(pooled, torch.as_tensor(softmax(raw.numpy(), -1)).mean(0).argmax(-1))
    elif isinstance(likelihood, Bernoulli):
        assert torch.equal(pooled, (raw.sigmoid().mean(0) > 0.5).float())
    elif isinstance(likelihood, Columns):
        parts = zip(likelihood.parts, likelihood.columns, raw.split([2, 1, 3, 2], -1), strict=True)
        for part, held, piece in parts:
            assert_close(pooled[..., held].float(), part.pool(piece.unflatten(-1, part.raw_shape)).float())
    else:
        assert_close(pooled, likelihood.mean(raw).mean(0))
    assert_close(likelihood.pool(raw[:1]).float(), likelihood.predict(raw)[0].float())


@every
def test_every_parameter_learns(case):
    likelihood, x = case.built()
    likelihood.score(case.raw(likelihood).requires_grad_(), x, everywhere(x)).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in likelihood.parameters())


@every
def test_gradients(case, double):
    likelihood, x = case.built()
    raw = case.raw(likelihood, 1, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda raw: likelihood.score(raw, x, everywhere(x)), raw)


@every
def test_saved_and_loaded(case):
    likelihood, x = case.built()
    raw, again = case.raw(likelihood), case.make().build(case.shape)
    again.load_state_dict(likelihood.state_dict())
    assert torch.equal(again.score(raw, x, everywhere(x)), likelihood.score(raw, x, everywhere(x)))
    assert torch.equal(again.features(x, everywhere(x)), likelihood.features(x, everywhere(x)))


@every
@pytest.mark.parametrize("size", [0.0, 30.0, 1e4])
def test_extreme_raw_numbers(case, size):
    likelihood, x = case.built()
    raw = (size * case.raw(likelihood)).requires_grad_()
    score = likelihood.score(raw, x, everywhere(x))
    score.sum().backward()
    assert torch.isfinite(score).all()
    assert torch.isfinite(raw.grad).all()
    assert torch.isfinite(likelihood.mean(raw)).all()


# ------------------------------------------------------------------------------------------------ units


def test_units_are_those_of_what_is_there():
    x = numbers(3)
    entries = torch.rand(B, 3) < 0.7
    normal = Normal().build((3,))
    normal.calibrate(x, entries)
    for column in range(3):
        held = x[entries[:, column], column]
        assert normal.offset[column].item() == pytest.approx(held.mean().item(), rel=1e-5)
        assert normal.unit[column].item() == pytest.approx(held.std(correction=0).item(), rel=1e-5)


def test_units_of_images_are_those_of_their_channels():
    x = numbers(2, 3, 3)
    normal = Normal().build((2, 3, 3))
    normal.calibrate(x, everywhere(x))
    assert normal.offset.shape == normal.unit.shape == normal.raw_scale.shape == (2, 1, 1)
    assert_close(normal.offset.flatten(), x.mean((0, 2, 3)))
    assert_close(normal.unit.flatten(), x.std((0, 2, 3), correction=0))


@pytest.mark.parametrize("value", [0.0, 5.0, 1e6, 0.1])
def test_a_column_that_does_not_vary_keeps_the_unit_one(value):
    x = torch.stack([torch.full((B,), value), torch.randn(B)], 1)
    for likelihood in (Normal(), Laplace(), StudentT()):
        likelihood.build((2,)).calibrate(x, everywhere(x))
        assert likelihood.unit[0] == 1
        assert_close(likelihood.offset[0], torch.tensor(value))
        assert not likelihood.features(x, everywhere(x))[:, 0].abs().gt(0.01).any()


def test_a_learned_scale_has_a_floor():
    normal = Normal().build((1,))
    with torch.no_grad():
        normal.raw_scale.fill_(-1e4)
    assert normal.scales().item() == pytest.approx(math.exp(-5))
    assert Normal().build((1,)).scales().item() == pytest.approx(1, abs=0.01)  # where it starts


def test_what_was_never_seen_has_units_all_the_same():
    x = torch.full((B, 2), NAN)
    for likelihood in (Normal(), Poisson(), NegativeBinomial()):
        likelihood.build((2,)).calibrate(x, torch.zeros(B, 2, dtype=torch.bool))
        assert all(torch.isfinite(value).all() for value in likelihood.state_dict().values())
        assert likelihood.unit.eq(1).all()


def test_counts_are_relative_to_their_mean():
    x = counts(3)
    poisson = Poisson().build((3,))
    poisson.calibrate(x, everywhere(x))
    assert_close(poisson.mean(torch.zeros(1, 1, 1, 3))[0, 0, 0], (x.sum(0) + 0.5) / (B + 1))
    seen = poisson.features(x, everywhere(x))
    assert_close(seen.mean(0), torch.zeros(3), rtol=0, atol=1e-4)
    assert_close(seen.std(0, correction=0), torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("log_theta", [-10.0, -3.0, 0.0, 2.0, 4.0, 8.0, 12.0, 15.0])
def test_the_negative_binomial_keeps_its_digits(log_theta, dtype):
    """Where it is nearly a Poisson, Γ(x+θ) / Γ(θ) is a ratio of very large numbers."""
    x = torch.tensor([0.0, 1.0, 2.0, 10.0, 100.0, 1000.0]).unsqueeze(1)
    likelihood = NegativeBinomial().build((1,)).to(dtype)
    with torch.no_grad():
        likelihood.log_theta.fill_(log_theta)
    log_mean = torch.tensor([-2.0, 0.0, 3.0, 6.0], dtype=dtype)[:, None, None, None].expand(4, 1, 6, 1)
    score = likelihood.score(log_mean, x.to(dtype), everywhere(x))
    theta, mean = np.exp(log_theta), np.exp(log_mean.double().numpy())
    truth = torch.as_tensor(precise(theta, mean[..., 0], x.double().numpy()[:, 0]))
    digits = {torch.float32: 1e-6, torch.float64: 1e-10}[dtype]
    assert ((score.double() - truth).abs() < digits * (1 + truth.abs() + 2 * x[:, 0])).all()
    score.sum().backward()
    slope = precise(theta * np.exp(1e-4), mean[..., 0], x.numpy()[:, 0]) - precise(theta * np.exp(-1e-4), mean[..., 0], x.numpy()[:, 0])
    assert likelihood.log_theta.grad.item() == pytest.approx(slope.sum() / 2e-4, rel=2e-3, abs=2e-3)


@np.vectorize
def precise(theta, mean, x):
    """The density with 40 digits."""
    with mpmath.workdps(40):
        theta, mean, x = mpmath.mpf(theta), mpmath.mpf(mean), mpmath.mpf(float(x))
        ways = mpmath.loggamma(x + theta) - mpmath.loggamma(theta) - mpmath.loggamma(x + 1)
        return float(ways + theta * mpmath.log(theta / (theta + mean)) + x * mpmath.log(mean / (theta + mean)))


# ------------------------------------------------------------------------------------------------ columns


def test_columns_are_the_sum_of_their_parts():
    likelihood, x = CASES["columns"].built()
    raw, entries = CASES["columns"].raw(likelihood), torch.rand(B, 5) < 0.7
    pieces = raw.split([2, 1, 3, 2], -1)
    total = 0
    for part, held, piece in zip(likelihood.parts, [[0, 3], [1], [4], [2]], pieces, strict=True):
        total = total + part.score(piece.unflatten(-1, part.raw_shape), x[:, held], entries[:, held])
    assert_close(likelihood.score(raw, x, entries), total)
    assert_close(likelihood.log_prob(raw, torch.where(entries, x, 0)).where(entries, 0.0).sum(-1), total)
    assert likelihood.raw_shape == (8,)
    assert likelihood.feature_shape == (2 + 1 + 3 + 1,)


@pytest.mark.parametrize("columns", [[[0], [1]], [[0, 1], [1, 2]], [[0, 1, 2], [3]], [[0, 1, 2], []]])
def test_columns_must_be_a_partition(columns):
    parts = Columns([(Normal(), columns[0]), (Bernoulli(), columns[1])])
    if columns[1]:
        with pytest.raises(InputError, match="each of the 3 columns must be in exactly one part"):
            parts.build((3,))
    with pytest.raises(InputError, match="a table"):
        parts.build((3, 2, 2))


# ------------------------------------------------------------------------------------------------ what is said when it is held wrong


@pytest.mark.parametrize(
    ("likelihood", "values", "message"),
    [
        (Normal(), [[1.0], [INF]], "1 values are not finite numbers, the first is inf"),
        (Laplace(), [[NAN], [NAN]], "2 values are not finite numbers, the first is nan"),
        (Bernoulli(), [[1.0], [0.5]], "1 values are not 0 or 1, the first is 0.5"),
        (Bernoulli(), [[1], [2]], "1 values are not 0 or 1, the first is 2"),
        (Categorical(3), [[2], [3]], "1 values are not codes from 0 to 2, the first is 3"),
        (Categorical(3), [[-1.0], [1.5]], "2 values are not codes from 0 to 2, the first is -1"),
        (Poisson(), [[1.5], [2.0]], r"1 values are not counts \(0, 1, 2, …\), the first is 1.5"),
        (NegativeBinomial(), [[-3], [2]], "the first is -3"),
        (ZeroInflatedNegativeBinomial(), [[INF], [2.0]], "the first is inf"),
        (Columns([(Bernoulli(), [0])]), [[3.0], [1.0]], "1 values are not 0 or 1, the first is 3"),
    ],
    ids=repr,
)
def test_values_that_do_not_fit(likelihood, values, message):
    x = torch.tensor(values)
    likelihood.build((1,))
    assert re.search(message, likelihood.wrong(x, everywhere(x)))
    assert likelihood.wrong(x, torch.zeros_like(everywhere(x))) is None
    assert re.search(message, likelihood.wrong(x, torch.ones(len(x), 1, dtype=torch.bool)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal(scale=0.0), r"Normal\(scale\): expected a positive number or 'learned', got 0.0"),
        (lambda: Laplace(scale=-1.0), r"Laplace\(scale\)"),
        (lambda: Normal(scale=NAN), r"Normal\(scale\)"),
        (lambda: Normal(scale="often"), "got 'often'"),
        (lambda: StudentT(df=2.0), r"StudentT\(df\): expected a number above 2"),
        (lambda: Categorical(0), r"Categorical\(categories\): expected a whole number of at least 1, got 0"),
    ],
)
def test_settings_that_cannot_be(make, message):
    with pytest.raises(InputError, match=message):
        make()
