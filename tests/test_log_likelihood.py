"""The importance-sampled log p(x), in worlds where it is known."""

import copy

import pytest
import torch
from torch.testing import assert_close

from codevae import random
from codevae.batch import Batch
from codevae.errors import InputError
from codevae.methods import CoDEVAE
from codevae.metrics import log_likelihood
from codevae.subsets import names_of, powerset
from worlds import model, patterns, with_prior_expert, world

pytestmark = pytest.mark.usefixtures("double")

NAMES = ["a", "b", "c"]
SUBSETS = names_of(powerset(3), NAMES)


def exact_model(truth, **settings):
    """Every q(z|x_k) is the posterior p(z|x_k): as a proposal for x_O it is never narrower than what it stands in for."""
    return model(truth, with_prior_expert(CoDEVAE(rho=0.0, **settings)), prior_share=0.0)


def errors(estimate, samples):
    """The standard error of log p̂ that the effective number of samples implies."""
    return (1 / estimate.effective - 1 / samples).clamp(min=1e-12).sqrt()


@pytest.mark.parametrize("given", SUBSETS)
def test_every_proposal_finds_log_p(given):
    truth = world(sizes=(3, 2, 2))
    batch = truth.draw(12)
    estimate = log_likelihood(exact_model(truth), batch, given=given.split("+"), samples=4000)
    z = (estimate.joint - truth.log_prob(batch)) / errors(estimate, 4000).clamp(min=1e-6)
    assert z.abs().max() < 4
    assert estimate.effective.min() > 50
    for name in given.split("+"):
        assert not estimate.modalities[name].isnan().any()
    if given in NAMES:  # the posterior of a modality alone is exact for its own log p
        assert_close(estimate.modalities[given], truth.log_prob(batch.given(given)))


def test_gaps_are_integrated_out():
    truth = world(orthogonal=False)
    table = torch.cat([powerset(3), torch.zeros(1, 3, dtype=torch.bool)])
    batch = patterns(truth.draw(16), table[torch.arange(16) % 8])
    estimate = log_likelihood(model(truth, CoDEVAE(rho=0.3), prior_share=1 / 3), batch, samples=4000)
    z = (estimate.joint - truth.log_prob(batch)) / errors(estimate, 4000)
    assert z.abs().max() < 4
    assert not estimate.joint[~batch.observed.any(1)].any()  # log p of nothing is 0
    absent = torch.stack(list(estimate.modalities.values()), 1).isnan()
    assert torch.equal(absent, ~batch.observed)


def test_missing_cells_are_integrated_out():
    truth = world()
    batch = truth.draw(10)
    holes = Batch(batch.values, entries={name: torch.rand(value.shape) < 0.7 for name, value in batch.values.items()})
    estimate = log_likelihood(model(truth, CoDEVAE(rho=0.0), prior_share=0.4), holes, samples=8000)
    z = (estimate.joint - truth.log_prob(holes)) / errors(estimate, 8000)
    assert z.abs().max() < 4.5


@pytest.mark.parametrize("given", [None, "a"])
def test_private_latents_are_integrated_out(given):
    truth = world(sizes=(2, 3, 2), latent_dim=1, private=(1, 0, 1))
    batch = truth.draw(10)
    batch = patterns(batch, torch.rand(10, 3) < 0.8)
    made = model(truth, CoDEVAE(rho=0.0), prior_share=0.4)
    with torch.no_grad():
        for part in made.modalities.values():
            part.encoder.bias[part.encoder.bias.shape[0] // 2 :] += 0.9  # wide, so that it covers the posterior
    estimate = log_likelihood(made, batch, given=given, samples=20_000)
    z = (estimate.joint - truth.log_prob(batch)) / errors(estimate, 20_000)
    assert z.abs().max() < 4.5
    if given:  # a proposal from all that is observed is too narrow for one modality's own log p
        alone = truth.log_prob(batch.given("a")).where(batch.observed[:, 0], torch.nan)
        assert_close(estimate.modalities["a"], alone, rtol=0, atol=0.1, equal_nan=True)


@pytest.mark.parametrize("rows", [1, 7, 64, 100, 10**6])
@pytest.mark.parametrize("samples", [1, 13])
def test_an_exact_proposal_has_no_error_however_the_work_is_cut(rows, samples):
    """Every weight is p(x) itself then: whatever is averaged over, the answer is exact, unless data points are mixed up."""
    truth = world()
    batch = truth.draw(9)
    estimate = log_likelihood(exact_model(truth), batch, samples=samples, rows=rows)
    assert_close(estimate.joint, truth.log_prob(batch))
    assert_close(estimate.effective, torch.full((9,), float(samples)))


def test_the_published_mistake_would_be_seen():
    """Weights laid out (S, B), flattened and read as (B, S): each row then averages different data points."""
    truth = world(sizes=(12, 12, 12))
    made, batch, samples = exact_model(truth), truth.draw(200), 12
    q = made.infer(batch)
    latent = q.draw(samples)
    weights = made.log_prob(batch, latent).sum(-1) + made.method.joint_prior().log_prob(latent) - q.log_prob(latent)  # (S,1,B)
    as_released = weights[:, 0].flatten().view(len(batch), samples).logsumexp(1) - torch.tensor(float(samples)).log()
    exact = truth.log_prob(batch)
    ours = log_likelihood(made, batch, samples=samples).joint
    assert_close(ours, exact)
    assert (as_released.mean() - exact.mean()).item() == pytest.approx(1.6 * exact.std().item() - 2.5, rel=0.25)  # what theory says of it
    assert as_released.mean() - exact.mean() > 2


def test_beta_omega_and_weights_do_not_enter():
    truth, batch = world(), world().draw(6)
    estimates = [
        log_likelihood(exact_model(truth, **settings), batch, given="a", samples=20)
        for settings in ({}, {"beta": 7.0, "omega": 3.0, "modality_weights": "by_size", "samples": 3})
    ]
    assert torch.equal(estimates[0].joint, estimates[1].joint)


def test_more_samples_come_from_below():
    """In expectation log p̂ rises with the number of samples; one sample is the bound without its weights."""
    truth = world()
    made, batch = model(truth, CoDEVAE(rho=0.6), jitter=0.2), truth.draw(300)
    means = [log_likelihood(made, batch, samples=samples).joint.mean() for samples in (1, 10, 1000)]
    assert means[0] < means[1] < means[2] < truth.log_prob(batch).mean() + 0.05
    gap = truth.gap(batch, made.infer(batch).shared.loc[0].detach(), made.infer(batch).shared.scale[0].detach())
    many = torch.stack([log_likelihood(made, batch, samples=1, seed=seed).joint for seed in range(100)])
    assert_close(truth.log_prob(batch).mean() - many.mean(), gap.mean(), rtol=0.05, atol=0)


def test_seeds_and_modes():
    truth = world()
    made, batch = model(truth, CoDEVAE(rho=0.3)).train(), truth.draw(5)
    state = torch.get_rng_state()
    one, again, other = (log_likelihood(made, batch, samples=5, seed=seed).joint for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), state)
    assert made.training
    assert not one.requires_grad
    with random.seeded(0):
        assert torch.equal(log_likelihood(copy.deepcopy(made), batch, samples=5, seed=None).joint, one)


def test_what_is_said_when_it_is_held_wrong():
    truth = world()
    made, batch = exact_model(truth), truth.draw(3)
    with pytest.raises(InputError, match=r"log_likelihood\(samples\): expected at least 1, got 0"):
        log_likelihood(made, batch, samples=0)
    with pytest.raises(InputError, match="given: 'sound' is not a modality here"):
        log_likelihood(made, batch, given="sound")
    with pytest.raises(InputError, match="no data points"):
        log_likelihood(made, batch[:0])
