"""The frame of a method holds something quite unlike CoDE-VAE, without an `if` anywhere else: a throwaway MMVAE+.

    L(x) = 1/|O| Σ_{r∈O} log 1/S Σ_s exp{ Σ_{m∈O} log p(x_m|z, w_m) + log p(z) p(w_r) − log [1/|O| Σ_{j∈O} q_j(z)] q_r(w_r) }

with z ~ q_r, w_r ~ q_r, and w_m ~ r_m, a learned auxiliary prior, for m ≠ r. Everything is Laplace.
"""

import json

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from codevae.batch import Batch
from codevae.distributions import Laplace, Latent, Mixture, log_mean_exp
from codevae.likelihoods import Normal
from codevae.methods.base import Bound, Method
from codevae.metrics import log_likelihood
from codevae.modality import Modality
from codevae.model import MultimodalVAE
from codevae.priors import LaplacePrior
from codevae.record import describe, rebuild
from codevae.subsets import Plan
from worlds import patterns, world

pytestmark = pytest.mark.usefixtures("double")


class MMVAEPlus(Method):
    def __init__(self, beta: float = 1.0, samples: int = 1):
        super().__init__()
        self.beta, self.samples = beta, samples

    def build(self, names, latent_dim, private_dims, sizes):
        super().build(names, latent_dim, private_dims, sizes)
        self.auxiliary = nn.ModuleList(LaplacePrior().build(private_dims[name]) for name in names)
        return self

    def make_prior(self):
        return LaplacePrior()

    def expert(self, loc, raw_scale):
        return Laplace(loc, loc.shape[-1] * raw_scale.softmax(-1) + 1e-6)

    def aggregate(self, experts, mask):
        held, prior = torch.cat([mask, ~mask.any(-1, keepdim=True)], -1), self.prior.distribution()
        parts = [torch.cat([ours, last.expand_as(ours[:1])]) for ours, last in ((experts.loc, prior.loc), (experts.scale, prior.scale))]
        return Mixture(Laplace(*parts), torch.where(held, -held.sum(-1, keepdim=True).log(), -torch.inf))

    def bound(self, model, batch):
        number = len(self.names)
        rows = torch.eye(number, dtype=torch.bool).unsqueeze(1) & batch.observed  # (K,B,M): row r holds modality r alone
        q = self.posterior(model.encode(batch), batch.observed.expand_as(rows), own=rows)  # z from all of them, w_r from row r
        z, w, gain = q.shared.each(self.samples)[:, :number], {}, 0.0
        for m, (name, prior) in enumerate(self.joint_prior().private.items()):
            own, other = q.private[name], self.auxiliary[m].distribution()
            w[name] = torch.where(rows[..., m, None], own.draw(self.samples), other.draw(self.samples))
            gain = gain + torch.where(rows[..., m], prior.log_prob(w[name]) - own.log_prob(w[name]), 0.0)
        log_px = model.log_prob(batch, Latent(z, w))
        gain = gain + self.prior.distribution().log_prob(z) - q.shared.log_prob(z)
        per_row = log_mean_exp(log_px.sum(-1) + self.beta * gain)
        plan = Plan(rows, rows.any(-1) / batch.observed.sum(-1).clamp(min=1), batch.observed)
        value = torch.where(rows.any(-1), plan.share * per_row, 0.0).sum(0)
        return Bound(value, torch.zeros(()), log_px.mean(0), -gain.mean(0), plan)


# ------------------------------------------------------------------------------------------------ its world: Laplace latents

TRUTH = world(sizes=(2, 2), latent_dim=2, private=(1, 1))


def draw(count):
    """Data points whose latents are Laplace."""
    latents = torch.distributions.Laplace(0.0, 1.0)
    z, values = latents.sample((count, 2)), {}
    for name in TRUTH.names:
        mean = z @ TRUTH.shared[name].T + latents.sample((count, 1)) @ TRUTH.private[name].T + TRUTH.offset[name]
        values[name] = mean + TRUTH.sigma[name] * torch.randn(count, 2)
    return Batch(values)


def log_prob(batch):
    """log p(x) by adding up a grid over z (two axes) and w."""
    axis = torch.linspace(-9, 9, 121)
    step = axis[1] - axis[0]
    z = torch.cartesian_prod(axis, axis)
    log_z, log_w = -z.abs().sum(-1) - 2 * torch.tensor(2.0).log(), -axis.abs() - torch.tensor(2.0).log()
    result = torch.zeros(len(batch))
    for n in range(len(batch)):
        total = log_z + 2 * step.log()
        for m, name in enumerate(TRUTH.names):
            if batch.observed[n, m]:
                mean = (z @ TRUTH.shared[name].T).unsqueeze(1) + (axis[:, None] * TRUTH.private[name][:, 0]) + TRUTH.offset[name]
                density = torch.distributions.Normal(mean, TRUTH.sigma[name]).log_prob(batch.values[name][n]).sum(-1)
                total = total + (density + log_w).logsumexp(1) + step.log()
        result[n] = total.logsumexp(0)
    return result


def make(samples=1, seed=0):
    """A model with the world's decoders, and encoders that know nothing yet."""
    parts = []
    for name in TRUTH.names:
        decoder = nn.Linear(3, 2)
        with torch.no_grad():
            decoder.weight.copy_(torch.cat([TRUTH.shared[name], TRUTH.private[name]], 1))
            decoder.bias.copy_(TRUTH.offset[name])
        parts.append(
            Modality(
                name, (2,), Normal(TRUTH.sigma[name], standardise=False), nn.Linear(2, 6), decoder.requires_grad_(False), private_dim=1
            )
        )
    return MultimodalVAE(parts, 2, MMVAEPlus(samples=samples), seed=seed)


def trained(samples=1, steps=150):
    made, batch = make(samples), draw(64)
    optimiser, losses = torch.optim.Adam([p for p in made.parameters() if p.requires_grad], lr=0.05), []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = made(batch).loss()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    with torch.no_grad():  # what was learned of p(z) goes: the world's own prior is known
        made.method.prior.logits.zero_()
    return made, losses


def test_it_trains_and_stays_below_log_p():
    made, losses = trained()
    assert sum(losses[-20:]) / 20 < sum(losses[:5]) / 5 - 5
    batch = patterns(draw(9), torch.tensor([[1, 1], [1, 0], [0, 1]]).bool().repeat(3, 1))
    exact, often = log_prob(batch), batch[torch.arange(9).repeat(400)]
    before = None
    for samples in (1, 10):
        made.method.samples = samples
        values = made(often).value.detach().view(400, 9)
        error = values.std(0) / 20
        assert (values.mean(0) < exact + 3 * error).all()
        assert before is None or values.mean() > before
        before = values.mean()
    assert before > exact.mean() - 4


def test_log_likelihood_finds_log_p_with_a_mixture_as_the_proposal():
    made, _ = trained()
    batch = patterns(draw(6), torch.tensor([[1, 1], [1, 1], [1, 0]]).bool().repeat(2, 1))
    exact = log_prob(batch)
    for given in (None, "a"):
        estimate = log_likelihood(made, batch, given=given, samples=20_000)
        enough = estimate.effective > 200
        z = (estimate.joint - exact) / (1 / estimate.effective - 1 / 20_000).sqrt()
        assert enough.any()
        assert z[enough].abs().max() < 4.5


def test_the_posterior_of_every_subset_is_its_mixture():
    made, batch = make(), draw(4)
    experts = made.encode(batch)
    both, first, nothing = (made.infer(batch, given=given).shared for given in (None, "a", []))
    assert_close(both.mean[0], experts.shared.loc.mean(0))
    assert_close(first.mean[0], experts.shared.loc[0])
    assert not nothing.mean.any()
    z = torch.randn(3, 1, 4, 2)
    parts = [Laplace(experts.shared.loc[m], experts.shared.scale[m]).log_prob(z) for m in range(2)]
    assert_close(both.log_prob(z), torch.logaddexp(*parts) - torch.tensor(2.0).log())
    assert_close(nothing.log_prob(z), made.method.prior.distribution().log_prob(z))


def test_what_is_absent_changes_nothing():
    made, clean = make(samples=3), draw(6)
    observed = torch.tensor([[1, 1], [1, 0], [0, 1], [0, 0], [1, 1], [0, 1]]).bool()
    results = []
    for garbage in (0.0, float("nan"), 1e30):
        values = {name: torch.where(observed[:, [m]], clean.values[name], garbage) for m, name in enumerate(TRUTH.names)}
        batch = Batch(values, entries={name: torch.ones(6, dtype=torch.bool) for name in values}, observed=observed)
        made.zero_grad()
        torch.manual_seed(0)
        bound = made(batch)
        bound.loss().backward()
        gradients = [parameter.grad.clone() for parameter in made.parameters() if parameter.requires_grad]
        results.append([bound.value, bound.loss(), *gradients, made.embed(batch, samples=2)])
        assert bound.value[3] == 0
    for result in results[1:]:
        assert all(map(torch.equal, results[0], result))


def test_everything_else_works_as_it_is():
    made, batch = make(samples=3), draw(5)
    made(batch).loss().backward()
    learned = {name for name, parameter in made.named_parameters() if parameter.requires_grad and parameter.grad.any()}
    assert {"method.prior.logits", "parts.0.encoder.weight", "parts.1.encoder.bias"} <= learned
    assert made.translate(batch, given="a", to="b", samples=4).shape == (4, 5, 2)
    assert made.impute(batch.given("a")).values["b"].shape == (5, 2)
    assert made.generate(3).values["a"].shape == (3, 2)
    with torch.no_grad():
        made.method.prior.logits.copy_(torch.tensor([1.0, -1.0]))
    codes = made._prior_draw(20_000, None).shared[0, 0]
    assert_close(codes.abs().mean(0), 2 * torch.tensor([1.0, -1.0]).softmax(0), rtol=0.05, atol=0)  # each dimension has its own scale
    plain = json.loads(json.dumps(describe(made.method)))
    assert plain["arguments"] == {"beta": 1.0, "samples": 3}
    assert rebuild(plain, trust=True).samples == 3
