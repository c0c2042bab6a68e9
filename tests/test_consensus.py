"""CoDE and PoE against the explicit inverse, and the facts about them that the documentation states."""

import itertools

import mpmath
import numpy as np
import pytest
import torch
from torch.testing import assert_close

from codevae.consensus import LEARNED, CoDE, PoE
from codevae.distributions import Normal
from codevae.errors import InputError
from codevae.subsets import powerset


def experts(modalities=3, size=4, latent_dim=2, spread=1.0, dtype=torch.float64):
    """Random experts (M, B, D)."""
    shape = (modalities, size, latent_dim)
    return Normal(torch.randn(shape, dtype=torch.float64).to(dtype), (spread * torch.randn(shape, dtype=torch.float64)).exp().to(dtype))


def correlation(modalities, latent_dim=None, seed=1):
    """Random correlation matrices (M, M) or (D, M, M), with entries of both signs."""
    generator = torch.Generator().manual_seed(seed)
    shape = (modalities, 2 * modalities) if latent_dim is None else (latent_dim, modalities, 2 * modalities)
    rows = torch.nn.functional.normalize(torch.randn(shape, generator=generator, dtype=torch.float64) + 0.3, dim=-1)
    return rows @ rows.mT


def by_inverse(q, mask, matrix):
    """The definition: Σ = diag(σ) R diag(σ) of the subset's own rows, A = 1ᵀΣ⁻¹1, B = 1ᵀΣ⁻¹μ, one data point and dimension at a time."""
    modalities, size, latent_dim = q.loc.shape
    loc, variance = (
        torch.zeros(len(mask), size, latent_dim, dtype=torch.float64),
        torch.ones(len(mask), size, latent_dim, dtype=torch.float64),
    )
    for k, b, d in itertools.product(range(len(mask)), range(size), range(latent_dim)):
        held = mask[k].expand(size, modalities)[b].nonzero().squeeze(1)
        if not len(held):
            continue
        scale = q.scale[held, b, d].double()
        r = (matrix if matrix.ndim == 2 else matrix[d])[held][:, held]
        inverse = torch.linalg.inv(scale.diag() @ r @ scale.diag())
        variance[k, b, d] = 1 / inverse.sum()
        loc[k, b, d] = (inverse @ q.loc[held, b, d].double()).sum() / inverse.sum()
    return Normal(loc, variance.sqrt())


def agree(q, truth, **tolerances):
    assert_close(q.loc, truth.loc.to(q.loc), **tolerances)
    assert_close(q.variance, truth.variance.to(q.loc), **tolerances)


def uniform_matrix(rho, modalities):
    return torch.full((modalities, modalities), float(rho), dtype=torch.float64).fill_diagonal_(1.0)


# ------------------------------------------------------------------------------------------------ the toy of the paper


def toy(rho):
    q = Normal(torch.tensor([[[4.0]], [[8.0]]], dtype=torch.float64), torch.tensor([[[3.0**0.5]], [[1.0]]], dtype=torch.float64))
    both = torch.tensor([[True, True]])
    code = CoDE(rho).build(2, 1)
    consensus = code(q, both)
    return consensus.loc.item(), consensus.variance.item(), code.weights(q, both).flatten().tolist(), code.negative_share(q, both).item()


@pytest.mark.parametrize(
    ("rho", "mean", "variance", "weight"),
    [(0.0, 7.0, 0.75, 0.25), (0.6, 8.0817, 0.9992, -0.0204), (0.8, 9.2554, 0.8790, -0.3139), (0.99, 13.0109, 0.1046, -1.2527)],
)
def test_the_toy_of_the_paper(rho, mean, variance, weight):
    # by hand: w_1 = (σ_2² − ρσ_1σ_2) / (σ_1² + σ_2² − 2ρσ_1σ_2), variance = σ_1²σ_2²(1−ρ²) / (the same denominator)
    below = 3 + 1 - 2 * rho * 3**0.5
    by_hand = (1 - rho * 3**0.5) / below
    got = toy(rho)
    assert got[:2] == pytest.approx((4 * by_hand + 8 * (1 - by_hand), 3 * (1 - rho**2) / below), rel=1e-12)
    assert got[2] == pytest.approx([by_hand, 1 - by_hand], rel=1e-9)
    assert got[:2] == pytest.approx((mean, variance), abs=6e-5)
    assert got[2][0] == pytest.approx(weight, abs=6e-5)


def test_the_toy_turns_at_the_ratio_of_the_scales():
    turning = 3**-0.5  # 0.577, not 0.5
    assert toy(turning - 1e-6)[2][0] > 0 > toy(turning + 1e-6)[2][0]
    assert toy(turning - 1e-6)[3] == 0
    assert toy(turning + 1e-6)[3] == 1
    assert toy(turning)[:2] == pytest.approx((8.0, 1.0))  # the sharper expert alone
    before, after = [toy(turning * step)[1] for step in np.linspace(0, 1, 20)], [toy(rho)[1] for rho in np.linspace(turning, 0.999, 20)]
    assert all(np.diff(before) > 0)
    assert all(np.diff(after) < 0)
    assert toy(0.999999)[1] < 1e-4


# ------------------------------------------------------------------------------------------------ facts


@pytest.mark.parametrize("rho", [-0.1, 0.0, 0.4, 0.9])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_identical_experts(rho, n):
    q = Normal(torch.full((n, 1, 1), 2.0, dtype=torch.float64), torch.full((n, 1, 1), 0.7, dtype=torch.float64))
    consensus = CoDE(rho)(q, torch.ones(1, n, dtype=torch.bool))
    assert consensus.loc.item() == pytest.approx(2.0)
    assert consensus.variance.item() == pytest.approx(0.49 * (1 + (n - 1) * rho) / n)


def test_equal_scales_rise_to_their_own_variance():
    q = Normal(torch.tensor([[[0.0]], [[1.0]]]), torch.ones(2, 1, 1))
    variances = [CoDE(rho)(q, torch.tensor([[True, True]])).variance.item() for rho in (0.0, 0.5, 0.9, 0.999)]
    assert variances == pytest.approx([0.5, 0.75, 0.95, 0.9995], rel=1e-6)


@pytest.mark.parametrize("rho", [-0.15, 0.0, 0.3, 0.8, 0.99, "matrix"])
def test_more_experts_never_know_less(rho):
    q, mask = experts(5, 50, 3), powerset(5)
    variance = CoDE(correlation(5).tolist() if rho == "matrix" else rho)(q, mask).variance
    sharpest = torch.where(mask[:, :, None, None], q.variance, torch.inf).amin(1)
    assert (variance <= sharpest * (1 + 1e-10)).all()
    for k, smaller in enumerate(mask):
        for m in (~smaller).nonzero().flatten().tolist():
            larger = k + 2**m  # the subset with m added
            assert mask[larger].tolist() == [held or i == m for i, held in enumerate(smaller.tolist())]
            assert (variance[larger] <= variance[k] * (1 + 1e-10)).all()


@pytest.mark.parametrize("rho", [0.2, 0.6, 0.95])
def test_a_weight_is_negative_exactly_where_the_formula_says(rho):
    q, mask = experts(5, 40, 3, 0.7), powerset(5)
    weights = CoDE(rho).weights(q, mask)
    held, p = mask[:, :, None, None], q.scale.reciprocal()
    n = mask.sum(1)[:, None, None, None]
    mean = torch.where(held, p, 0.0).sum(1, keepdim=True) / n
    expected = held & (p * (1 + (n - 1) * rho) < rho * n * mean)
    assert torch.equal(weights < 0, expected)
    assert expected.any()
    assert_close(CoDE(rho).negative_share(q, mask), expected.any(1).double().mean((1, 2)).float())


# ------------------------------------------------------------------------------------------------ the closed form


def truth_in_long_double(loc, scale, rho, mask):
    """The definition with R⁻¹ of 50 digits and sums in long double: mean and variance (K, B)."""
    loc, p = loc.numpy().astype(np.longdouble), 1 / scale.numpy().astype(np.longdouble)
    result = []
    for row in mask.numpy():
        n = int(row.sum())
        with mpmath.workdps(50):
            inverse = mpmath.matrix(n, n)
            for i, j in itertools.product(range(n), range(n)):
                inverse[i, j] = 1 if i == j else mpmath.mpf(rho)
            inverse = inverse**-1
            digits = np.array([[np.longdouble(mpmath.nstr(inverse[i, j], 30)) for j in range(n)] for i in range(n)])
        solved = np.einsum("ij,jb->ib", digits, p[row])
        a = (solved * p[row]).sum(0)
        result.append(((solved * p[row] * loc[row]).sum(0) / a, 1 / a))
    means, variances = zip(*result, strict=True)
    return np.stack(means), np.stack(variances)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("spread", [0.001, 0.3, 1.0])
def test_the_closed_form_keeps_its_digits_near_one(dtype, tolerance, spread):
    rho, mask, q = 0.999, powerset(8), experts(8, 1000, 1, spread, dtype)
    consensus = CoDE(rho)(q, mask)
    means, variances = truth_in_long_double(q.loc[..., 0], q.scale[..., 0], rho, mask)
    assert consensus.loc.dtype == dtype
    assert np.abs(consensus.variance[..., 0].numpy() / variances - 1).max() < tolerance
    largest = torch.where(mask[:, :, None], q.loc[..., 0].abs(), 0.0).amax(1).numpy()
    assert (np.abs(consensus.loc[..., 0].numpy() - means) / largest).max() < tolerance


@pytest.mark.parametrize("rho", [-0.2, 0.0, 0.5, 0.9])
def test_a_common_rho_is_the_explicit_inverse(rho):
    q, mask = experts(4), powerset(4)
    agree(CoDE(rho).build(4, 2)(q, mask), by_inverse(q, mask, uniform_matrix(rho, 4)), rtol=1e-11, atol=1e-11)


def test_one_rho_per_dimension_is_the_explicit_inverse():
    q, mask, rho = experts(4, latent_dim=3), powerset(4), [-0.1, 0.3, 0.9]
    matrix = torch.stack([uniform_matrix(value, 4) for value in rho])
    agree(CoDE(rho).build(4, 3)(q, mask), by_inverse(q, mask, matrix), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("latent_dim", [None, 3])
def test_a_matrix_is_the_explicit_inverse_of_each_subsets_own_rows(latent_dim):
    q, mask, matrix = experts(4, latent_dim=3), powerset(4), correlation(4, latent_dim)
    code = CoDE(matrix.tolist()).build(4, 3)
    agree(code(q, mask), by_inverse(q, mask, matrix), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("latent_dim", [None, 3])
def test_a_matrix_factors_the_same_for_few_rows_and_for_many(latent_dim):
    """Few rows are factored one by one, many by a table of all subsets; each data point may have a mask of its own."""
    q, code, mask = experts(4, 7, 3), CoDE(correlation(4, latent_dim).tolist()).build(4, 3), torch.rand(9, 7, 4) < 0.6
    many = code(q, mask)
    for k in range(9):
        few = code(q, mask[k : k + 1])
        agree(few, Normal(many.loc[k : k + 1], many.scale[k : k + 1]))
    agree(many, by_inverse(q, mask, correlation(4, latent_dim)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", LEARNED)
def test_learned_ones_are_the_explicit_inverse_of_what_they_say(form, double):
    q, mask, code = experts(4, latent_dim=3), powerset(4), CoDE(form).build(4, 3)
    with torch.no_grad():
        for parameter in code.parameters():
            parameter.add_(torch.randn_like(parameter))
    matrix = code.correlation().detach()
    if "matrix" not in form:
        matrix = torch.stack([uniform_matrix(value, 4) for value in matrix.expand(3)])
    agree(code(q, mask), by_inverse(q, mask, matrix), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rho", [0.6, "matrix", "matrix per dimension"])
def test_in_single_precision_too(rho):
    q, mask = experts(5, 200, 2, 0.5), powerset(5)
    value = {"matrix": correlation(5).tolist(), "matrix per dimension": correlation(5, 2).tolist()}.get(rho, rho)
    single = CoDE(value)(Normal(q.loc.float(), q.scale.float()), mask)
    assert single.loc.dtype == single.scale.dtype == torch.float32
    agree(single, CoDE(value)(q, mask), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("kind", [0.9, "learned", "matrix"])
def test_autocast_does_not_reach_it(kind):
    q, code, mask = experts(4, 20, 2, 0.5, torch.float32), build(kind, 4, 2), powerset(4)
    with torch.autocast("cpu", torch.bfloat16):
        inside, weights = code(q, mask), code.weights(q, mask)
    assert inside.loc.dtype == torch.float32
    assert torch.equal(inside.loc, code(q, mask).loc)
    assert torch.equal(inside.scale, code(q, mask).scale)
    assert torch.equal(weights, code.weights(q, mask))


@pytest.mark.parametrize("rho", [0.999, [[1.0, 0.999], [0.999, 1.0]], "learned_matrix"])
def test_a_change_of_precision_starts_from_the_exact_numbers(rho):
    q, mask = experts(2, 5, 1), powerset(2)
    code = CoDE(rho).build(2, 1)
    twice = CoDE(rho).build(2, 1).bfloat16().double()
    assert torch.equal(twice(q, mask).scale, code.double()(q, mask).scale) or isinstance(rho, str)
    assert twice(q, mask).scale.dtype == torch.float64
    assert code.float()(Normal(q.loc.float(), q.scale.float()), mask).loc.dtype == torch.float32


# ------------------------------------------------------------------------------------------------ special cases


def test_rho_zero_is_the_textbook_product():
    q, mask = experts(4), powerset(4)
    held = mask[:, :, None, None].double()
    precision = (held / q.variance).sum(1)
    textbook = Normal((held * q.loc / q.variance).sum(1) / precision, precision.rsqrt())
    for consensus in (PoE(), CoDE(0.0), CoDE([0.0, 0.0]), CoDE(torch.eye(4).tolist())):
        agree(consensus.build(4, 2)(q, mask), textbook)
    precision = precision + 1
    agree(PoE(prior_expert=True)(q, mask), Normal((held * q.loc / q.variance).sum(1) / precision, precision.rsqrt()))


@pytest.mark.parametrize("rho", [0.5, "matrix"])
def test_a_prior_expert_is_one_more_independent_expert(rho):
    q, mask = experts(3), powerset(3)
    with_prior = Normal(torch.cat([q.loc, torch.zeros_like(q.loc[:1])]), torch.cat([q.scale, torch.ones_like(q.scale[:1])]))
    small = correlation(3) if rho == "matrix" else uniform_matrix(rho, 3)
    code = CoDE(small.tolist() if rho == "matrix" else rho, prior_expert=True)
    truth = by_inverse(with_prior, torch.cat([mask, mask[:, :1] | True], 1), torch.block_diag(small, torch.ones(1, 1, dtype=torch.float64)))
    agree(code(q, mask), truth)
    nothing = code(q, torch.zeros(1, 3, dtype=torch.bool))
    assert torch.equal(nothing.loc, torch.zeros_like(nothing.loc))
    assert torch.equal(nothing.scale, torch.ones_like(nothing.scale))


@pytest.mark.parametrize("rho", [0.5, "matrix", *LEARNED])
def test_one_expert_is_the_posterior_itself(rho):
    q = experts(3)
    consensus = CoDE(correlation(3).tolist() if rho == "matrix" else rho).build(3, 2)(q, torch.eye(3, dtype=torch.bool))
    agree(consensus, q, rtol=1e-6, atol=1e-6)
    alone = CoDE(0.5 if rho == "matrix" else rho).build(1, 2)
    assert not list(alone.parameters())  # one modality has nothing to depend on
    agree(alone(Normal(q.loc[:1], q.scale[:1]), torch.tensor([[True]])), Normal(q.loc[:1], q.scale[:1]))


KINDS = [0.6, [0.2, 0.7], "matrix", "matrix per dimension", *LEARNED]


def build(kind, modalities, latent_dim):
    matrices = {"matrix": correlation(modalities).tolist(), "matrix per dimension": correlation(modalities, latent_dim).tolist()}
    code = CoDE(matrices.get(kind, kind) if isinstance(kind, str) else kind).build(modalities, latent_dim)
    with torch.no_grad():
        for parameter in code.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return code


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_gradients(kind, double):
    q, code = experts(3, 2, 2), build(kind, 3, 2)
    names, parameters = zip(*code.named_parameters(), strict=True) if list(code.parameters()) else ((), ())

    def consensus(loc, scale, *values):
        result = torch.func.functional_call(code, dict(zip(names, values, strict=True)), (Normal(loc, scale), powerset(3)))
        return result.loc, result.scale

    inputs = [tensor.detach().clone().requires_grad_() for tensor in (q.loc, q.scale, *parameters)]
    assert torch.autograd.gradcheck(consensus, inputs)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_empty_subset_is_the_prior_and_teaches_nothing(kind, double):
    q, code = experts(3, 2, 2), build(kind, 3, 2)
    loc, scale = q.loc.requires_grad_(), q.scale.requires_grad_()
    empty = code(Normal(loc, scale), torch.zeros(1, 3, dtype=torch.bool))
    assert torch.equal(empty.loc, torch.zeros(1, 2, 2))
    assert torch.equal(empty.scale, torch.ones(1, 2, 2))
    (empty.loc.sum() + empty.scale.sum()).backward()
    assert all(tensor.grad is None or not tensor.grad.any() for tensor in (loc, scale, *code.parameters()))


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), -float("inf"), 1e30])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_no_subset_holds_changes_nothing(kind, garbage, double):
    code, mask = build(kind, 3, 2), powerset(3).unsqueeze(1).repeat(1, 2, 1)
    mask[:, 0, 2] = False  # data point 0 lacks the last modality
    results = []
    for filling in (0.5, garbage):
        torch.manual_seed(0)
        loc, scale = (tensor.clone() for tensor in (experts(3, 2, 2).loc, experts(3, 2, 2).scale))
        loc[2, 0], scale[2, 0] = filling, filling
        leaves = [loc.requires_grad_(), scale.requires_grad_(), *code.parameters()]
        q = code(Normal(loc, scale), mask)
        weights = code.weights(Normal(loc, scale), mask)
        gradients = torch.autograd.grad(q.loc.sum() + q.scale.sum(), leaves)
        results.append([q.loc, q.scale, weights, code.negative_share(Normal(loc, scale), mask), *gradients])
    for ours, theirs in zip(*results, strict=True):
        assert torch.equal(ours, theirs)
    assert not results[1][4][2, 0].any()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_mask_for_all_is_the_same_mask_for_each(kind):
    q, code, mask = experts(3, 5, 2), build(kind, 3, 2), powerset(3)
    each = mask.unsqueeze(1).expand(-1, 5, -1)
    agree(code(q, mask), code(q, each))
    assert_close(code.weights(q, mask), code.weights(q, each))
    assert_close(code.negative_share(q, mask), code.negative_share(q, each))


@pytest.mark.parametrize("prior_expert", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_weights_are_what_the_mean_makes_of_the_experts(kind, prior_expert, double):
    q, code, mask = experts(3, 2, 2), build(kind, 3, 2), powerset(3)
    code.prior_expert = prior_expert
    loc = q.loc.requires_grad_()
    consensus = code(Normal(loc, q.scale), mask).loc
    slope = torch.stack([torch.autograd.grad(row.sum(), loc, retain_graph=True)[0] for row in consensus])  # (K,M,B,D)
    weights = code.weights(q, mask)
    assert_close(weights, slope, rtol=1e-9, atol=1e-9)
    rest = code(q, mask).variance if prior_expert else torch.zeros(())  # the prior expert's own weight is 1/A
    assert_close(weights.sum(1) + rest, torch.ones(7, 2, 2))
    assert not weights.detach().masked_select(~mask[:, :, None, None]).any()


def test_negative_share_counts_points_that_have_the_subset():
    loc, scale = torch.zeros(2, 4, 1), torch.ones(2, 4, 1)
    scale[0, :2] = 3.0  # for two of four points the first expert is much wider
    mask = torch.ones(1, 4, 2, dtype=torch.bool)
    code = CoDE(0.6)
    assert code.negative_share(Normal(loc, scale), mask).tolist() == [0.5]
    mask[0, 3] = False  # a point that has nothing does not count
    assert code.negative_share(Normal(loc, scale), mask).tolist() == pytest.approx([2 / 3])


# ------------------------------------------------------------------------------------------------ learned correlations


@pytest.mark.parametrize("raw", [-1e4, -50.0, 0.0, 50.0, 1e4])
@pytest.mark.parametrize("form", LEARNED)
def test_learned_ones_stay_positive_definite(form, raw):
    code, q = CoDE(form).build(6, 2), experts(6, 20, 2, 0.3, torch.float32)
    for signs in (1.0, torch.randn(code_shape(code)).sign()):
        with torch.no_grad():
            next(code.parameters()).copy_(torch.full(code_shape(code), raw) * signs)
        rho = code.correlation().detach().double()
        if "matrix" in form:
            assert torch.linalg.eigvalsh(rho).min() > 0.9e-3
            assert_close(rho.diagonal(dim1=-2, dim2=-1), torch.ones(rho.shape[:-1], dtype=torch.float64), rtol=1e-6, atol=1e-6)
        else:
            assert ((rho >= 0) & (rho <= 0.95)).all()
        consensus = code(q, powerset(6))
        gradient = torch.autograd.grad(consensus.loc.sum() + consensus.scale.sum(), list(code.parameters()))[0]
        assert torch.isfinite(consensus.loc).all()
        assert (consensus.scale > 0).all()
        assert torch.isfinite(gradient).all()


def code_shape(code):
    return next(code.parameters()).shape


def test_learned_ones_keep_within_their_bounds():
    code = CoDE("learned", bounds=(-0.3, 0.5)).build(3, 2)
    for raw, expected in ((-1e4, -0.3), (0.0, 0.1), (1e4, 0.5)):
        with torch.no_grad():
            code.raw.fill_(raw)
        assert code.correlation().item() == pytest.approx(expected)


def test_a_learned_rho_near_one_keeps_the_digits_of_its_distance_from_one():
    code, q = CoDE("learned", bounds=(0.0, 0.99999)).build(3, 2), experts(3, 50, 2, 0.3, torch.float32)
    with torch.no_grad():
        code.raw.fill_(100.0)  # at its upper bound
    agree(code(q, powerset(3)), CoDE(0.99999)(q, powerset(3)), rtol=1e-5, atol=1e-5)


def test_sizes_of_what_is_learned():
    shapes = {form: code_shape(CoDE(form).build(4, 3)) for form in LEARNED}
    assert shapes == {"learned": (), "learned_per_dimension": (3,), "learned_matrix": (4, 4), "learned_matrix_per_dimension": (3, 4, 4)}
    assert not list(CoDE(0.5).build(4, 3).parameters())


def test_a_learned_rho_finds_the_one_that_made_the_errors():
    # errors of three experts with covariance diag(σ) R diag(σ), around a truth that is known: the consensus of ρ is calibrated
    rho, scale = 0.7, torch.tensor([0.5, 1.0, 2.0])
    noise = torch.randn(20_000, 3) @ torch.linalg.cholesky(uniform_matrix(rho, 3).float()).T * scale
    q = Normal(noise.T.unsqueeze(-1), scale[:, None, None].expand(3, 20_000, 1))
    code = CoDE("learned").build(3, 1)
    optimiser = torch.optim.LBFGS(code.parameters(), max_iter=50, line_search_fn="strong_wolfe")

    def loss():
        optimiser.zero_grad()
        consensus = code(q, torch.ones(1, 3, dtype=torch.bool))
        value = -consensus.log_prob(torch.zeros_like(consensus.loc)).mean()
        value.backward()
        return value

    optimiser.step(loss)
    assert code.correlation().item() == pytest.approx(rho, abs=0.02)


# ------------------------------------------------------------------------------------------------ what is said when it is held wrong

PAIR = torch.ones(1, 2, dtype=torch.bool)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoDE("often"), "rho: expected a number, a matrix or one of learned, .* got 'often'"),
        (lambda: CoDE(1.0), "rho: expected .* < ρ < 1 .* got 1; ρ = 1 has no consensus"),
        (lambda: CoDE(-1.0), "got -1"),
        (lambda: CoDE([0.1, 1.5]), "got between 0.1 and 1.5"),
        (lambda: CoDE(float("nan")), "finite"),
        (lambda: CoDE([[1.0, float("inf")], [float("inf"), 1.0]]), "finite"),
        (lambda: CoDE([[1.0, 2.0], [2.0, 1.0]]), r"the subset of modalities 0\+1 has the smallest eigenvalue -1;"),
        (
            lambda: CoDE([[1.0, 0.2, 0.0], [0.2, 1.0, 1.1], [0.0, 1.1, 1.0]]),
            r"the subset of modalities 1\+2 has the smallest eigenvalue -0\.1;",
        ),
        (lambda: CoDE(uniform_matrix(-0.6, 3).tolist()), r"the subset of modalities 0\+1\+2 has the smallest eigenvalue -0\.2;"),
        (lambda: CoDE([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]), r"0\+1 has the smallest eigenvalue"),
        (
            lambda: CoDE([[1.0, 1 - 1e-8], [1 - 1e-8, 1.0]]),
            r"0\+1 has the smallest eigenvalue 1e-08",
        ),  # single precision could not factor it
        (lambda: CoDE([[1.0, 0.5], [0.2, 1.0]]), "symmetric with ones"),
        (lambda: CoDE([[2.0, 0.5], [0.5, 2.0]]), "symmetric with ones"),
        (lambda: CoDE([[1.0, 0.5]]), r"got shape \(1, 2\)"),
        (lambda: CoDE(torch.eye(2).expand(1, 1, 2, 2).tolist()), r"got shape \(1, 1, 2, 2\)"),
        (lambda: CoDE(-0.4).build(4, 2), r"with 4 modalities a common ρ must be above −1/\(M−1\) = -0\.3333, got -0\.4"),
        (lambda: CoDE([0.1, 0.2, 0.3]).build(2, 2), "3 values for 2 latent dimensions"),
        (lambda: CoDE(torch.eye(3).tolist()).build(2, 2), "the matrix is 3×3, but there are 2 modalities"),
        (lambda: CoDE(torch.eye(2).expand(3, 2, 2).tolist()).build(2, 2), "3 values for 2 latent dimensions"),
        (lambda: CoDE("learned", bounds=(0.0, 1.0)).build(3, 2), "bounds: expected .* lower < upper < 1, got"),
        (lambda: CoDE("learned", bounds=(-0.5, 0.5)).build(3, 2), "bounds"),
        (lambda: CoDE("learned", bounds=(0.5, 0.2)).build(3, 2), "bounds"),
        (lambda: CoDE("learned")(experts(2), PAIR), r"call \.build\(modalities, latent_dim\) before"),
        (lambda: CoDE("learned_matrix")(experts(2), PAIR), r"call \.build"),
        (lambda: CoDE(-0.6)(experts(3), powerset(3)), "with 3 modalities"),
        (lambda: CoDE(0.5)(experts(3), PAIR), "mask: its last axis must be the 3 experts"),
        (lambda: CoDE([0.1, 0.2, 0.3])(experts(2), PAIR), "3 values for 2 latent dimensions"),
    ],
)
def test_what_is_said_when_it_is_held_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()
