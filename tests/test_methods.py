"""Every method in worlds where log p(x) and every posterior are known: what it computes, and that it is the bound it claims to be."""

import copy
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from codevae import random
from codevae.batch import Batch
from codevae.consensus import LEARNED, PoE
from codevae.distributions import Normal, kl
from codevae.errors import InputError
from codevae.likelihoods import Categorical
from codevae.methods import VAE, CoDEVAE
from codevae.methods.codevae import NegativeWeights
from codevae.modality import Modality
from codevae.model import MultimodalVAE
from codevae.subset_weights import FORMS
from codevae.subsets import pack, powerset
from worlds import model, patterns, with_prior_expert, world

pytestmark = pytest.mark.usefixtures("double")

# Eight points of noise are exact for up to seven latent dimensions; w = 1 and β = 1 make every L_k a bound.
EXACT = {"modality_weights": 1.0, "samples": 8, "subsets": "all"}
MATRIX = [[1.0, 0.5, -0.2], [0.5, 1.0, 0.1], [-0.2, 0.1, 1.0]]
RHOS = [0.0, 0.6, -0.3, [0.3, 0.8], MATRIX, *LEARNED]

METHODS = {
    "default": lambda: CoDEVAE(),
    "rho 0": lambda: CoDEVAE(rho=0.0, omega=1.0),
    "matrix": lambda: CoDEVAE(rho=MATRIX, beta=2.5),
    **{form: (lambda form=form: CoDEVAE(rho=form, modality_weights="by_root_size")) for form in LEARNED},
    "by size": lambda: CoDEVAE(rho=0.4, subset_weights="by_size", samples=3),
    "by modality": lambda: CoDEVAE(rho=0.4, subset_weights="by_modality"),
    "uniform π": lambda: CoDEVAE(rho=0.4, learn_weights=False),
    "ω auto": lambda: CoDEVAE(rho=0.4, omega="auto"),
    "drawn": lambda: CoDEVAE(rho=0.4, subsets=2),
    "drawn by weight": lambda: CoDEVAE(rho=0.4, subsets=2, draw="weighted"),
    "drawn, ω auto": lambda: CoDEVAE(rho=0.4, subsets=3, omega="auto"),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
PRIVATE = [pytest.param(private, id=f"private {private}") for private in ("own", "prior", "released")]


def random_weights(made):
    """The model with a π that is not uniform."""
    with torch.no_grad():
        made.method.subset_weights.logits.copy_(torch.randn(made.method.subset_weights.logits.shape))
    return made


def gaps(batch):
    """The batch with every pattern of missing modalities, the empty one too, over and over."""
    modalities = len(batch.names)
    table = torch.cat([powerset(modalities), torch.zeros(1, modalities, dtype=torch.bool)])
    return patterns(batch, table[torch.arange(len(batch)) % len(table)])


# ------------------------------------------------------------------------------------------------ L_k and the bound


@pytest.mark.parametrize("rho", RHOS, ids=str)
@pytest.mark.parametrize("orthogonal", [True, False])
def test_what_each_subset_lacks_is_exactly_its_divergence_from_the_posterior(rho, orthogonal, exact_noise):
    """log p(x_O) − L_k = KL(q(z|x_k) ‖ p(z|x_O)), for every subset of every pattern, whatever the experts say."""
    truth = world(orthogonal=orthogonal)
    made, batch = model(truth, CoDEVAE(rho=rho, **EXACT), jitter=0.1), gaps(truth.draw(16))
    bound = made(batch)
    q = made.method.posterior(made.encode(batch), bound.plan.mask).shared
    per_subset = bound.reconstruction.sum(-1) - bound.divergence
    log_prob, applies = truth.log_prob(batch), bound.plan.share > 0
    assert applies.any(1).all()
    for k in range(7):
        rows = applies[k]
        lacks = truth.gap(batch[rows], q.loc[k, rows], q.scale[k, rows])
        assert_close(log_prob[rows] - per_subset[k, rows], lacks.detach(), rtol=1e-9, atol=1e-9)
        assert (lacks > 0).all()


@pytest.mark.parametrize("rho", RHOS, ids=str)
def test_the_bound_is_the_sum_that_the_formula_says(rho, exact_noise):
    truth = world()
    made = random_weights(
        model(truth, CoDEVAE(rho=rho, beta=2.5, omega=3.0, samples=8, modality_weights={"a": 1.0, "b": 0.5, "c": 4.0}), jitter=0.1)
    )
    batch = gaps(truth.draw(16))
    bound, logits = made(batch), made.method.subset_weights.logits
    bonus = []
    for b in range(16):
        inside = [k for k, row in enumerate(powerset(3)) if (row <= batch.observed[b]).all()]
        if not inside:
            assert bound.value[b] == 0
            continue
        pi = logits[inside].softmax(0)
        level = bound.reconstruction[inside, b] @ torch.tensor([1.0, 0.5, 4.0]) - 2.5 * bound.divergence[inside, b]
        assert_close(bound.value[b], (pi * level).sum())
        bonus.append(-(pi * pi.log()).sum() - torch.tensor(float(len(inside))).log())
    assert_close(bound.bonus, 3.0 * torch.stack(bonus).mean())
    assert_close(bound.loss(), -(bound.value.sum() / 14 + bound.bonus))
    assert not bound.reconstruction[:, ~batch.observed].any()  # nothing is scored that is not there


@pytest.mark.parametrize("omega", [0.0, 1.0, 1000.0, "auto"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("beta", [1.0, 4.0])
def test_the_bound_never_exceeds_log_p(omega, form, beta, exact_noise):
    truth = world(orthogonal=False)
    method = CoDEVAE(rho=0.5, beta=beta, omega=omega, subset_weights=form, **EXACT)
    made = random_weights(model(truth, method, jitter=0.02))
    batch = truth.draw(20)
    made(batch)  # gives ω = "auto" something to go by
    for observed in powerset(3):
        part = patterns(batch, observed)
        bound = made(part)
        assert (bound.value + bound.bonus <= truth.log_prob(part) + 1e-9).all()
        assert bound.bonus <= 1e-9
        if observed.sum() == 1:
            assert abs(bound.bonus) < 1e-9


def test_cells_that_are_missing_are_left_out_of_log_p_too(exact_noise):
    truth = world(orthogonal=False)
    batch = truth.draw(40)
    holes = {name: torch.rand(value.shape) < 0.6 for name, value in batch.values.items()}
    part = Batch(batch.values, entries=holes)
    made = model(truth, CoDEVAE(rho=0.2, omega=0.0, **EXACT))
    bound = made(part)
    assert (bound.value <= truth.log_prob(part) + 1e-9).all()
    q = made.infer(part).shared
    full = bound.plan.mask == part.observed  # the row that holds all that is observed
    row = (full.all(-1) & (bound.plan.share > 0)).long().argmax(0)
    level = (bound.reconstruction.sum(-1) - bound.divergence).gather(0, row.unsqueeze(0))[0]
    some = part.observed.any(1)
    assert_close(
        (truth.log_prob(part) - level)[some], truth.gap(part[some], q.loc[0, some], q.scale[0, some]).detach(), rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("exact", ["for every subset", "for the full set"])
def test_a_bound_with_the_exact_posterior_is_log_p(exact, exact_noise):
    truth = world()
    if exact == "for every subset":
        made, subsets = model(truth, with_prior_expert(CoDEVAE(rho=0.0, **EXACT)), prior_share=0.0), powerset(3)
    else:
        made, subsets = model(truth, CoDEVAE(rho=0.0, **EXACT), prior_share=1 / 3), powerset(3)[-1:]
    batch = truth.draw(10)
    for observed in subsets:
        part = patterns(batch, observed)
        bound, k = made(part), int(pack(observed)) - 1
        assert_close(bound.reconstruction[k].sum(-1) - bound.divergence[k], truth.log_prob(part))
        means, covariances = truth.posterior(part)
        assert_close(made.infer(part).shared.loc[0].detach(), means)
        assert_close(torch.diag_embed(made.infer(part).shared.variance[0].detach()), covariances)


@pytest.mark.parametrize("omega", [2.0, 20.0])
def test_the_best_weights_are_a_softmax(omega, exact_noise):
    truth = world()
    made, batch = model(truth, CoDEVAE(rho=0.3, omega=omega, **EXACT)).requires_grad_(False), truth.draw(30)
    logits = made.method.subset_weights.logits.requires_grad_()
    optimiser = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-10, tolerance_change=1e-14, line_search_fn="strong_wolfe")

    def loss():
        optimiser.zero_grad()
        value = made(batch).loss()
        value.backward()
        return value

    optimiser.step(loss)
    bound = made(batch)
    levels = (bound.reconstruction.sum(-1) - bound.divergence).mean(1)
    assert_close(logits.softmax(0).detach(), (levels / omega).softmax(0), rtol=1e-4, atol=1e-6)
    # and then the bound is ω log mean_k exp(L_k / ω)
    assert_close(-bound.loss(), omega * (torch.logsumexp(levels / omega, 0) - torch.tensor(7.0).log()))


def test_beta_and_weights_scale_their_parts(no_noise):
    truth = world()
    batch = truth.draw(5)
    plain, weighed = (
        model(truth, CoDEVAE(rho=0.3, omega=0.0, subsets="all", **settings))(batch)
        for settings in ({"modality_weights": 1.0}, {"modality_weights": "by_size", "beta": 3.0})
    )
    assert torch.equal(plain.reconstruction, weighed.reconstruction)  # the parts are shown unweighted
    assert torch.equal(plain.divergence, weighed.divergence)
    weights = torch.tensor([4 / 3, 4 / 2, 4 / 4])  # three, two and four columns
    assert_close(weighed.value, (plain.reconstruction @ weights - 3 * plain.divergence).mean(0))


# ------------------------------------------------------------------------------------------------ drawn subsets


def slope(made, batch):
    """The bound and its gradient with respect to every parameter, in one vector."""
    made.zero_grad()
    loss = made(batch).loss()
    loss.backward()
    return torch.cat([loss.detach().view(1), *(parameter.grad.flatten() for parameter in made.parameters())])


def with_baseline(made, level=-20.0):
    """The model in evaluation mode (running means stand still), with a baseline from earlier steps."""
    made.method.level.copy_(torch.tensor([level, 1.0]))
    return random_weights(made).eval()


def truth_for(made, batch):
    """The same with every subset, once each."""
    everything = copy.deepcopy(made)
    everything.method.subsets = "all"
    return slope(everything, batch)


def drawn_in_order(monkeypatch, numbers):
    monkeypatch.setattr(random, "uniform", lambda shape, like, batch_axis=None: numbers)


@pytest.mark.parametrize("rows", [1, 2])
def test_drawn_subsets_have_the_gradient_of_all_of_them(rows, monkeypatch, no_noise):
    """Exactly: the mean over all 3! orders in which the subsets of two modalities can be drawn, with modalities missing."""
    truth = world(sizes=(3, 2))
    made = with_baseline(model(truth, CoDEVAE(rho="learned", subsets=rows, omega=2.0), jitter=0.1))
    batch = gaps(truth.draw(9))
    slopes = []
    for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        drawn_in_order(monkeypatch, torch.tensor(order) / 3.0)
        slopes.append(slope(made, batch))
    assert torch.stack(slopes).std(0).max() > 1  # any single one is far off
    assert_close(torch.stack(slopes).mean(0), truth_for(made, batch), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_drawn_subsets_have_the_gradient_of_all_of_them_for_complete_data(rows, monkeypatch, no_noise):
    """Exactly: every subset stands once at every place among the seven rotations of one order."""
    truth = world()
    made, batch = with_baseline(model(truth, CoDEVAE(rho="learned_matrix", subsets=rows, omega=2.0), jitter=0.1)), truth.draw(6)
    slopes, start = [], torch.randperm(7)
    for turn in range(7):
        drawn_in_order(monkeypatch, (start + turn) % 7 / 7.0)
        slopes.append(slope(made, batch))
    assert_close(torch.stack(slopes).mean(0), truth_for(made, batch), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("draw", "rows", "number"), [("uniform", 1, 250), ("uniform", 2, 250), ("uniform", 4, 250), ("weighted", 2, 500)])
def test_drawn_subsets_have_the_gradient_of_all_of_them_on_average(draw, rows, number, no_noise):
    truth = world(sizes=(2, 1, 2), latent_dim=1)
    made = with_baseline(model(truth, CoDEVAE(rho="learned", subsets=rows, draw=draw, omega=2.0), jitter=0.1))
    batch = gaps(truth.draw(16))
    slopes = torch.stack([slope(made, batch) for _ in range(number)])
    error = slopes.std(0) / number**0.5
    varies = error > 1e-12
    z = ((slopes.mean(0) - truth_for(made, batch)) / error)[varies]
    assert varies.float().mean() > 0.9
    assert z.abs().max() < 4.5
    assert 0.2 < z.square().mean() < 2.5  # they are correlated, so this is a loose frame


def test_the_baseline_is_the_running_mean_of_earlier_steps(no_noise):
    truth = world()
    made, levels = model(truth, CoDEVAE(rho=0.3, subsets=2), jitter=0.1).train(), []
    for step in range(5):
        if step == 2:
            made(patterns(truth.draw(4), torch.zeros(3, dtype=torch.bool)))  # a batch that has nothing says nothing
        levels.append(made(truth.draw(4, seed=step)).value.mean().detach())
    weights = 0.99 ** torch.tensor([5.0, 4.0, 2.0, 1.0, 0.0])  # the empty one makes the others older
    assert_close(made.method.level[0] / made.method.level[1], (weights * torch.stack(levels)).sum() / weights.sum())
    before = made.method.level.clone()
    made.eval()(truth.draw(4))
    assert torch.equal(made.method.level, before)


def test_the_baseline_leaves_out_what_no_subset_changes(no_noise):
    truth = world(sizes=(2, 3), latent_dim=1, private=(1, 2))
    made, batch = model(truth, CoDEVAE(rho=0.3, subsets=1, modality_weights=1.0), jitter=0.1).train(), truth.draw(200)
    divergence = sum(kl(q, Normal(torch.zeros(1), torch.ones(1))) for q in made.encode(batch).private.values())
    bound = made(batch)
    level = made.method.level[0] / made.method.level[1]
    assert_close(level, (bound.value + divergence).mean().detach())  # that of the L_k, without the private latents' divergence
    assert_close(bound.value, (bound.reconstruction.sum(-1) - bound.divergence)[0] - divergence)


def test_omega_auto_is_the_spread_of_the_subsets(no_noise):
    truth = world()
    made, levels = model(truth, CoDEVAE(rho=0.3, subsets="all", omega="auto", modality_weights=1.0), jitter=0.1).train(), []
    for step in range(4):
        bound = made(truth.draw(4, seed=step))
        levels.append((bound.reconstruction.sum(-1) - bound.divergence).mean(1).detach())
        weights = 0.99 ** torch.arange(float(step), -1, -1)
        running = (weights[:, None] * torch.stack(levels)).sum(0) / weights.sum()
        assert_close(made.method._omega(), running.std(correction=0))
    expected = made.method._omega() * bound.plan.entropy(made.method.subset_weights)
    assert_close(made.eval()(truth.draw(4)).bonus, expected)
    drawn = model(truth, CoDEVAE(rho=0.3, subsets=2, omega="auto", modality_weights=1.0), jitter=0.1).train()
    for _ in range(100):
        drawn(truth.draw(40))
    assert drawn.method.levels[1].gt(0).all()
    again = model(truth, CoDEVAE(rho=0.3, subsets="all", omega="auto", modality_weights=1.0), jitter=0.1).train()
    again(truth.draw(40))
    assert drawn.method._omega().item() == pytest.approx(again.method._omega().item(), rel=0.1)  # the same number, from draws


def test_omega_auto_goes_by_size_where_there_are_too_many_subsets(no_noise):
    truth = world(sizes=(2,) * 11, latent_dim=1)
    made = model(truth, CoDEVAE(rho=0.3, omega="auto", modality_weights=1.0), jitter=0.1).train()
    bound = made(truth.draw(200))
    sizes, levels = bound.plan.mask.sum(-1), (bound.reconstruction.sum(-1) - bound.divergence).detach()
    means = torch.stack([levels[sizes == size].mean() for size in sizes.unique()])
    assert len(means) > 5
    assert_close(made.method._omega(), means.std(correction=0))


# ------------------------------------------------------------------------------------------------ private latents


@pytest.mark.parametrize("private", PRIVATE)
def test_private_latents(private, exact_noise):
    """The encoders are trained to raise the bound as far as they can: two kinds stay below log p(x), the released one does not."""
    truth = world(sizes=(3, 3), latent_dim=1, private=(1, 2))
    made, batch = model(truth, CoDEVAE(rho=0.0, private=private, omega=1.0, **EXACT)), truth.draw(20)
    for name, parameter in made.named_parameters():
        parameter.requires_grad_("encoder" in name or "logits" in name)
    optimiser = torch.optim.Adam([parameter for parameter in made.parameters() if parameter.requires_grad], lr=0.1)
    excess = []
    for _ in range(60):
        optimiser.zero_grad()
        bound = made(batch)
        bound.loss().backward()
        optimiser.step()
        excess.append((bound.value + bound.bonus - truth.log_prob(batch)).detach())
    if private == "released":
        assert excess[-1].mean() > 1
    else:
        assert torch.stack(excess).max() < 1e-9
        assert excess[-1].mean() > -2.5  # and not by being useless


@pytest.mark.parametrize("private", PRIVATE)
@pytest.mark.parametrize("private_beta", [None, 0.5])
def test_private_divergences_count_as_the_formula_says(private, private_beta, exact_noise):
    truth = world(sizes=(2, 2, 3), latent_dim=1, private=(1, 0, 2))
    method = CoDEVAE(rho=0.3, beta=2.0, private=private, private_beta=private_beta, omega=0.0, **EXACT)
    made = random_weights(model(truth, method, jitter=0.1))
    batch = gaps(truth.draw(8))
    bound, experts = made(batch), made.encode(batch)
    pi = torch.where(bound.plan.share > 0, made.method.subset_weights.log_prob(bound.plan.mask, batch.observed).exp(), 0.0)
    value = (pi * (bound.reconstruction.sum(-1) - 2.0 * bound.divergence)).sum(0)
    for m, name in ((0, "a"), (2, "c")):
        divergence = kl(experts.private[name], Normal(torch.zeros(1), torch.ones(1))) * (2.0 if private_beta is None else 0.5)
        holds = {"own": torch.ones(8), "prior": (pi * bound.plan.mask[..., m]).sum(0), "released": pi[2**m - 1]}[private]
        value = value - torch.where(batch.observed[:, m], holds * divergence, 0.0)
    assert_close(bound.value, value)


@pytest.mark.parametrize("private", ["own", "prior"])
def test_private_latents_are_drawn_from_whom_they_should(private):
    truth = world(sizes=(2, 2), latent_dim=1, private=(1, 1))
    made = model(truth, CoDEVAE(rho=0.3, private=private, samples=4000))
    batch = patterns(truth.draw(3), torch.tensor([[1, 1], [1, 0], [0, 0]]).bool())
    seen = {}
    made.decode, made.log_prob = None, lambda batch, latent: seen.update(latent.private) or torch.zeros(4000, 3, 3, 2)
    made(batch)
    own = made.encode(batch).private["a"]
    first = seen["a"]  # (S, K, B, 1), the subsets being a, b, a+b
    expected = {"own": [own.loc[0], own.loc[0], own.loc[0]], "prior": [own.loc[0], torch.zeros(1), own.loc[0]]}[private]
    assert_close(first.mean(0)[:, 0], torch.stack(expected), rtol=0, atol=0.07)
    assert_close(first.mean(0)[:, 2], torch.zeros(3, 1), rtol=0, atol=0.07)  # nothing observed: the prior
    assert not torch.equal(first[:, 0], first[:, 2])  # afresh for every subset


# ------------------------------------------------------------------------------------------------ special cases that must agree


def same_bound(one, two, **tolerances):
    for ours, theirs in zip(one[:4], two[:4], strict=True):
        assert_close(ours, theirs, **tolerances)


def test_rho_zero_is_a_product_of_experts():
    truth = world()
    made = model(truth, CoDEVAE(rho=0.0), jitter=0.1)
    other = copy.deepcopy(made)
    other.method.consensus = PoE()
    batch = gaps(truth.draw(16))
    torch.manual_seed(0)
    one = made(batch)
    torch.manual_seed(0)
    same_bound(one, other(batch), rtol=0, atol=0)


@pytest.mark.parametrize("rho", [0.6, "learned", "learned_matrix_per_dimension"])
def test_one_modality_is_a_vae(rho):
    truth = world(sizes=(4,))
    slopes = []
    for method in (VAE(beta=2.0, weight=1.5, samples=3), CoDEVAE(rho=rho, beta=2.0, modality_weights=1.5, samples=3)):
        made, batch = model(truth, method, jitter=0.1), gaps(truth.draw(8))
        torch.manual_seed(0)
        bound = made(batch)
        bound.loss().backward()
        slopes.append((bound, [parameter.grad for name, parameter in made.named_parameters() if name.startswith("parts")]))
        q = made.infer(batch).shared  # by hand: w log p(x|z) − β KL
        expected = 1.5 * bound.reconstruction[0, :, 0] - 2.0 * kl(q, Normal(torch.zeros(1), torch.ones(1)))[0]
        assert_close(bound.value, torch.where(batch.observed[:, 0], expected, 0.0))
        assert bound.bonus == 0
    same_bound(slopes[0][0], slopes[1][0])
    for ours, theirs in zip(slopes[0][1], slopes[1][1], strict=True):
        assert_close(ours, theirs)


@every_method
def test_a_mask_of_ones_is_no_mask(method):
    truth = world()
    made, batch = model(truth, method(), jitter=0.1), truth.draw(6)
    ones = Batch(batch.values, entries={name: torch.ones_like(value, dtype=torch.bool) for name, value in batch.values.items()})
    bounds = []
    for each in (batch, ones):
        torch.manual_seed(0)
        bounds.append(copy.deepcopy(made)(each))
    same_bound(*bounds, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["default", "matrix", "learned_per_dimension", "by modality"])
def test_a_point_is_the_same_alone_in_a_batch_and_shuffled(name, no_noise):
    truth = world()
    made, batch = random_weights(model(truth, METHODS[name](), jitter=0.1)), gaps(truth.draw(16))
    made.method.subsets = "all"
    whole, order = made(batch), torch.randperm(16)
    shuffled = made(batch[order])
    assert_close(shuffled.value, whole.value[order])
    assert_close(shuffled.divergence, whole.divergence[:, order])
    assert_close(made.embed(batch[order], seed=0), made.embed(batch)[order])
    for b in range(16):
        alone = made(batch[b])
        assert_close(alone.value, whole.value[b : b + 1])
        assert_close(alone.reconstruction, whole.reconstruction[:, b : b + 1])
        assert_close(made.embed(batch[b]), made.embed(batch)[b : b + 1])


# ------------------------------------------------------------------------------------------------ what is absent


GARBAGE = [float("nan"), float("inf"), -float("inf"), 1e30]


@every_method
def test_what_stands_in_an_absent_entry_changes_nothing(method):
    truth = world()
    made, clean = model(truth, method(), jitter=0.1), truth.draw(16)
    holes = {name: torch.rand(value.shape) < 0.7 for name, value in clean.values.items()}
    observed = gaps(clean).observed
    results = []
    for garbage in (0.0, *GARBAGE):
        dirty = {name: torch.where(there & observed[:, [m]], clean.values[name], garbage) for m, (name, there) in enumerate(holes.items())}
        batch = Batch(dirty, entries=holes, observed=observed)
        again = copy.deepcopy(made)
        torch.manual_seed(0)
        bound = again(batch)
        bound.loss().backward()
        gradients = [parameter.grad for parameter in again.parameters() if parameter.requires_grad]
        filled = again.impute(batch)
        outputs = [again.embed(batch), again.embed(batch, samples=2), again.translate(batch, to="a"), *filled.values.values()]
        assert all(torch.isfinite(tensor).all() for tensor in (*bound[:4], *gradients, *outputs))
        results.append([*bound[:4], *gradients, *again.method.buffers(), *outputs])
    for result in results[1:]:
        for ours, theirs in zip(results[0], result, strict=True):
            assert torch.equal(ours, theirs)


@every_method
def test_a_point_that_has_nothing(method):
    truth = world(private=(1, 0, 1))
    made = model(truth, method(), jitter=0.1)
    nothing = patterns(truth.draw(3), torch.zeros(3, dtype=torch.bool))
    q = made.infer(nothing)
    for part in (q.shared, *q.private.values()):
        assert torch.equal(part.loc, torch.zeros_like(part.loc))
        assert torch.equal(part.scale, torch.ones_like(part.scale))
    bound = made(nothing)
    assert not bound.value.any()
    assert bound.loss() == 0
    bound.loss().backward()
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in made.parameters())
    # next to others it changes nothing for them
    some = truth.draw(2)
    both = Batch(
        {name: torch.cat([some.values[name], nothing.values[name]]) for name in truth.names},
        observed=torch.tensor([[1] * 3] * 2 + [[0] * 3] * 3),
    )
    if made.method.subsets == "all":
        made.method.samples = 1
        torch.manual_seed(0)
        made.eval()
        joined = made(both)
        assert not joined.value[2:].any()
        assert_close(joined.loss(), -(joined.value[:2].mean() + joined.bonus))


def test_padding_changes_nothing(no_noise):
    truth = world()
    made, batch = model(truth, CoDEVAE(rho=0.4), jitter=0.1).eval(), gaps(truth.draw(5))
    assert_close(slope(made, batch.padded(16)), slope(made, batch))


@pytest.mark.parametrize("rho", [0.5, "learned", "learned_matrix", "learned_per_dimension"])
@pytest.mark.parametrize(
    ("modalities", "size", "latent_dim", "columns"), [(1, 1, 1, 1), (2, 1, 1, 1), (1, 3, 2, 1), (3, 1, 2, 2), (5, 4, 1, 1)]
)
def test_the_smallest_sizes(rho, modalities, size, latent_dim, columns):
    parts = [Modality(f"m{m}", (columns,), private_dim=m % 2) for m in range(modalities)]
    made = MultimodalVAE(parts, latent_dim, CoDEVAE(rho=rho))
    batch = Batch({f"m{m}": torch.randn(size, columns) for m in range(modalities)})
    bound = made(batch)
    bound.loss().backward()
    assert bound.value.shape == (size,)
    assert torch.isfinite(bound.loss())
    assert made.embed(batch).shape == (size, latent_dim)
    assert made.translate(batch, given=["m0"], to="m0").shape == (size, columns)
    assert len(made.generate(2)) == 2


@every_method
@pytest.mark.parametrize("missing", [False, True])
def test_every_parameter_learns(method, missing):
    made = MultimodalVAE(
        [Modality("a", (3,)), Modality("b", (2,)), Modality("c", (4,), Categorical(3), private_dim=2)], 2, method()
    ).train()
    batch = Batch({"a": torch.randn(32, 3), "b": torch.randn(32, 2), "c": torch.randint(3, (32, 4))})
    batch = gaps(batch) if missing else batch
    made(batch)
    made(batch).loss().backward()  # the second step: ω = "auto" starts from nothing
    for name, parameter in made.named_parameters():
        assert not parameter.requires_grad or (parameter.grad is not None and parameter.grad.any()), name
    assert made.method.subset_weights.logits.requires_grad == made.method.learn_weights


def test_a_modality_that_is_never_there_learns_nothing():
    made = MultimodalVAE([Modality("a", (3,)), Modality("b", (2,)), Modality("c", (4,))], 2, CoDEVAE())
    batch = made.prepare(Batch({"a": torch.randn(8, 3), "c": torch.randn(8, 4)}))
    made(batch).loss().backward()
    parts = made.modalities
    assert not any(parameter.grad is not None and parameter.grad.any() for parameter in parts["b"].parameters())
    assert all(parameter.grad.any() for parameter in parts["a"].parameters())


@pytest.mark.parametrize("name", ["default", "matrix", "drawn", "ω auto"])
def test_half_precision_stays_inside_the_networks(name):
    torch.set_default_dtype(torch.float32)
    parts = [Modality("a", (30,), private_dim=1), Modality("b", (20,), Categorical(9)), Modality("c", (40,))]
    made = MultimodalVAE(parts, 4, METHODS[name](), seed=0).eval()
    batch = Batch({"a": 50 * torch.randn(16, 30), "b": torch.randint(9, (16, 20)), "c": 50 * torch.randn(16, 40)})
    with torch.autocast("cpu", torch.bfloat16):
        assert made.modalities["a"].encoder.out(torch.zeros(1, 256)).dtype == torch.bfloat16  # the networks themselves do run in it
        experts = made.encode(batch)
        bound = made(batch)
    assert experts.shared.loc.dtype == experts.private["a"].scale.dtype == torch.float32
    assert {part.dtype for part in bound[:4]} == {torch.float32}
    weights = bound.plan.weights(made.method.subset_weights)
    private = kl(experts.private["a"], Normal(torch.zeros(1), torch.ones(1))) * made.method.beta
    per_subset = (bound.reconstruction.double() * made.method.modality_weights).sum(-1) - made.method.beta * bound.divergence.double()
    assert bound.value.abs().max() > 1e4  # numbers of which half precision would keep two digits
    assert_close(bound.value.double(), (weights * per_subset).sum(0) - private, rtol=1e-6, atol=0.02)


# ------------------------------------------------------------------------------------------------ building, settings, hooks


def test_what_automatic_settings_come_to():
    def build(modalities, **settings):
        parts = [Modality(f"m{m}", (2 + m,), encoder=nn.Linear(2 + m, 4), decoder=nn.Linear(2, 2 + m)) for m in range(modalities)]
        return MultimodalVAE(parts, 2, CoDEVAE(**settings)).method

    few, many, most = build(3), build(4), build(12)
    assert [(method.form, method.subsets, method.draw) for method in (few, many, most)] == [
        ("table", "all", "uniform"),
        ("table", 2, "uniform"),
        ("by_modality", 2, "weighted"),
    ]
    assert few._arguments["subset_weights"] == "table"
    assert few._arguments["modality_weights"] == {"m0": 1.0, "m1": 1.0, "m2": 1.0}
    by_size = build(3, modality_weights="by_size")
    assert by_size._arguments["modality_weights"] == {"m0": 2.0, "m1": 4 / 3, "m2": 1.0}
    assert_close(build(3, modality_weights="by_root_size").modality_weights, by_size.modality_weights.sqrt())
    assert torch.isfinite(most_bound(build(12)))


def most_bound(method):
    """The loss of a method for twelve modalities, of which none is ever enumerated."""
    parts = [Modality(f"m{m}", (2 + m,), encoder=nn.Linear(2 + m, 4), decoder=nn.Linear(2, 2 + m)) for m in range(12)]
    made = MultimodalVAE(parts, 2, CoDEVAE())
    made.method = method
    loss = made(Batch({f"m{m}": torch.randn(5, 2 + m) for m in range(12)})).loss()
    loss.backward()
    return loss


def test_a_method_is_copied_by_the_model_and_stays_as_it_was():
    method = CoDEVAE()
    one, two = (MultimodalVAE([Modality("a", (2,)), Modality("b", (2,))], 2, method) for _ in range(2))
    assert method.subsets == "auto"
    assert not list(method.parameters())
    assert one.method.subset_weights is not two.method.subset_weights


def test_a_text_counts_its_length():
    parts = [Modality("image", (3, 4, 4)), Modality("text", (8,), Categorical(71))]
    assert MultimodalVAE(parts, 2, CoDEVAE(modality_weights="by_size")).method._arguments["modality_weights"] == {"image": 1.0, "text": 6.0}


def test_facts_and_their_warning():
    truth = world(sizes=(3, 2))
    made = model(truth, CoDEVAE(rho=0.95))
    batch = truth.draw(20)
    with pytest.warns(NegativeWeights, match=r"100% of the consensus means .* ρ = 0.95"):
        facts = made.method.facts(made, batch)
    assert facts == {"rho": pytest.approx(0.95), "negative_weights": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.method.facts(made, batch)  # said once
    assert model(truth, CoDEVAE(rho=[[1.0, 0.2], [0.2, 1.0]])).method.facts(made, batch)["rho"] == pytest.approx(0.2)
    alone = model(world(sizes=(3,)), CoDEVAE())
    assert alone.method.facts(alone, world(sizes=(3,)).draw(4)) == {"rho": 0.0, "negative_weights": 0.0}


TWO = [Modality("a", (2,)), Modality("b", (4,))]
ELEVEN = [Modality(f"m{m}", (1,), encoder=nn.Linear(1, 4), decoder=nn.Linear(2, 1)) for m in range(11)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoDEVAE(beta=-1.0), r"CoDEVAE\(beta\): expected a number of at least 0, got -1.0"),
        (lambda: CoDEVAE(beta=float("nan")), r"CoDEVAE\(beta\)"),
        (lambda: CoDEVAE(omega=float("inf")), r"CoDEVAE\(omega\)"),
        (lambda: CoDEVAE(omega="often"), r"CoDEVAE\(omega\): .* got 'often'"),
        (lambda: CoDEVAE(private_beta=-0.5), r"CoDEVAE\(private_beta\)"),
        (lambda: CoDEVAE(subset_weights="rows"), "expected one of 'auto', 'table', 'by_size', 'by_modality', got 'rows'"),
        (lambda: CoDEVAE(draw="twice"), "'auto', 'uniform', 'weighted'"),
        (lambda: CoDEVAE(private="mine"), "'own', 'prior', 'released'"),
        (lambda: CoDEVAE(subsets=0), r"CoDEVAE\(subsets\): expected 'all', 'auto' or a number of at least 1, got 0"),
        (lambda: CoDEVAE(subsets=True), r"CoDEVAE\(subsets\)"),
        (lambda: CoDEVAE(samples=0), r"CoDEVAE\(samples\): expected at least 1, got 0"),
        (lambda: CoDEVAE(rho=1.0), "ρ = 1 has no consensus"),
        (lambda: VAE(beta=-1.0), r"VAE\(beta\)"),
        (lambda: VAE(weight=-1.0), r"VAE\(weight\)"),
        (lambda: VAE(samples=0), r"VAE\(samples\)"),
        (lambda: MultimodalVAE(TWO, 2, VAE()), "VAE: expected one modality without private latents, got 'a', 'b'"),
        (lambda: MultimodalVAE([Modality("a", (2,), private_dim=1)], 2, VAE()), "without private latents"),
        (lambda: MultimodalVAE(TWO, 2, CoDEVAE(modality_weights={"a": 1.0})), "a weight for each of 'a', 'b', got 'a'"),
        (lambda: MultimodalVAE(TWO, 2, CoDEVAE(modality_weights={"a": 1.0, "b": 0.0})), "expected positive numbers"),
        (lambda: MultimodalVAE(TWO, 2, CoDEVAE(modality_weights={"a": 1.0, "b": float("nan")})), "expected positive numbers"),
        (lambda: MultimodalVAE(TWO, 2, CoDEVAE(modality_weights=float("inf"))), "expected positive numbers"),
        (
            lambda: MultimodalVAE(TWO, 2, CoDEVAE(modality_weights="by_taste")),
            "'by_size', 'by_root_size', a number or a dict by name, got 'by_taste'",
        ),
        (lambda: MultimodalVAE(TWO, 2, CoDEVAE(rho=[0.1, 0.2, 0.3])), "3 values for 2 latent dimensions"),
        (lambda: MultimodalVAE(TWO, 2, CoDEVAE(rho=MATRIX)), "the matrix is 3×3, but there are 2 modalities"),
        (
            lambda: MultimodalVAE(ELEVEN, 2, CoDEVAE(subsets="all")),
            r"CoDEVAE\(subsets='all'\): 11 modalities have 2\^11 − 1 subsets; use subsets=2",
        ),
        (lambda: MultimodalVAE(ELEVEN, 2, CoDEVAE(subset_weights="table")), "use subset_weights='by_modality'"),
        (lambda: MultimodalVAE(ELEVEN, 2, CoDEVAE(draw="uniform")), "use draw='weighted'"),
    ],
)
def test_what_is_said_when_it_is_held_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()


# ------------------------------------------------------------------------------------------------ compiled


ONE_GRAPH = """
import torch
from codevae.batch import Batch
from codevae.likelihoods import Categorical, Columns, NegativeBinomial, Normal
from codevae.methods import CoDEVAE
from codevae.modality import Modality
from codevae.model import MultimodalVAE

mixed = Columns([(Normal(), [0]), (Categorical(3), [1])])
parts = [Modality("a", (3,), private_dim=1), Modality("b", (2,), NegativeBinomial()), Modality("c", (2,), mixed, sees_gaps=True)]
matrix = [[1.0, 0.5, -0.2], [0.5, 1.0, 0.1], [-0.2, 0.1, 1.0]]
observed = torch.tensor([[1, 1, 1], [1, 0, 0], [0, 0, 0], [0, 1, 1]])
batch = Batch({"a": torch.randn(4, 3), "b": torch.ones(4, 2), "c": torch.ones(4, 2)}, observed=observed)
for settings in ({"rho": 0.4}, {"rho": matrix, "subsets": 2, "omega": "auto"}, {"rho": "learned_matrix", "subsets": 2, "draw": "weighted"}):
    torch._dynamo.reset()
    losses = []
    for wrap in (lambda model: model, lambda model: torch.compile(model, backend="eager", fullgraph=True)):
        run = wrap(MultimodalVAE(parts, 2, CoDEVAE(**settings), seed=0))
        torch.manual_seed(0)
        losses.append(run(batch).loss())
    torch.testing.assert_close(*losses)
    losses[1].backward()
"""


@pytest.mark.slow
def test_the_bound_is_one_graph():
    """Nothing from encode to bound waits for the host, or depends on the data: all of it is traced without a break.

    In a process of its own: the shape checks of the tests cannot be traced."""
    run = subprocess.run([sys.executable, "-c", ONE_GRAPH], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_the_gradient_of_drawn_subsets_is_right_on_average(rows, missing, no_noise):
    """The mean over 2,000 draws against all subsets, for the bound and every parameter, in standard errors of that mean."""
    truth = world()
    batch = gaps(truth.draw(8)) if missing else truth.draw(8)

    def gradient(made):
        made.zero_grad()
        bound = made(batch)
        bound.loss().backward()
        return torch.cat([bound.value.detach(), *(p.grad.flatten() for p in made.parameters() if p.grad is not None)])

    exact = random_weights(model(truth, CoDEVAE(rho=0.3, subsets="all", omega=1.0), jitter=0.1)).eval()
    drawn = model(truth, CoDEVAE(rho=0.3, subsets=rows, omega=1.0), jitter=0.1).eval()
    drawn.load_state_dict(exact.state_dict())
    draws = torch.stack([gradient(drawn) for _ in range(2000)])
    error = draws.std(0) / len(draws) ** 0.5
    z = ((draws.mean(0) - gradient(exact)) / error)[error > 1e-12]
    assert len(z) > 50
    assert (z.abs() <= 3).double().mean() >= 0.97  # of normal numbers 0.997 are
    assert z.abs().max() < 5
