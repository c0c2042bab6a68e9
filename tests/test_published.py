"""The published methods against second implementations, written point by point from theory.md §3 with scipy, and against exact worlds.

Every method is run with noise that is recorded; the second implementation is given that noise, the encoders' raw numbers and the decoders,
and nothing else of codevae.
"""

import copy
import json
import math

import numpy as np
import pytest
import torch
from scipy.special import logsumexp, softmax
from scipy.stats import laplace, norm
from torch.testing import assert_close

from codevae import fit, random
from codevae.batch import Batch
from codevae.consensus import CoDE, PoE
from codevae.distributions import Latent
from codevae.errors import InputError
from codevae.likelihoods import Normal
from codevae.methods import CMVAE, MMJSD, MMVAE, MVAE, MVTCAE, VAE, CoDEVAE, MMVAEPlus, MoPoE
from codevae.metrics import log_likelihood
from codevae.modality import Modality
from codevae.model import MultimodalVAE
from codevae.priors import LaplaceMixture
from codevae.record import describe, rebuild
from codevae.subsets import powerset
from worlds import model, patterns, world

pytestmark = pytest.mark.usefixtures("double")

WEIGHTS = {"a": 1.0, "b": 0.5, "c": 4.0}
ODD = {"beta": 1.7, "modality_weights": WEIGHTS}

METHODS = {
    "MVAE": lambda: MVAE(**ODD, samples=2),
    "MVAE random": lambda: MVAE(**ODD, random_subsets=3),
    "MVAE CoDE": lambda: MVAE(**ODD, random_subsets=1, consensus=CoDE(rho=0.4, prior_expert=True)),
    "MoPoE": lambda: MoPoE(**ODD, subsets="all", samples=2),
    "MoPoE CoDE": lambda: MoPoE(**ODD, subsets="all", consensus=CoDE(rho=0.4)),
    "MVTCAE": lambda: MVTCAE(alpha=0.6, **ODD, samples=2),
    "MVTCAE CoDE": lambda: MVTCAE(**ODD, consensus=CoDE(rho=0.4)),
    "MMJSD mixture": lambda: MMJSD(**ODD, samples=2),
    "MMJSD geometric": lambda: MMJSD(**ODD, subset_posterior="geometric"),
    "MMVAE dreg": lambda: MMVAE(**ODD, samples=3),
    "MMVAE iwae": lambda: MMVAE(**ODD, samples=3, estimator="iwae"),
    "MMVAE elbo": lambda: MMVAE(**ODD, samples=3, estimator="elbo"),
    "MMVAEPlus": lambda: MMVAEPlus(**ODD),
    "MMVAEPlus dreg": lambda: MMVAEPlus(**ODD, samples=3, estimator="dreg"),
    "CMVAE": lambda: CMVAE(clusters=4, **ODD),
    "CMVAE iwae": lambda: CMVAE(clusters=4, **ODD, samples=3),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def shaken(made):
    """The model with priors that are nobody's default."""
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "prior" in name or "auxiliary" in name:
                parameter.add_(torch.randn(parameter.shape))
    return made


def make(method, sizes=(3, 2, 4), latent_dim=2, width=2, jitter=0.1):
    """A world, and a model of it by this method: with private latents where it has them."""
    truth = world(sizes, latent_dim, private=(width,) * len(sizes) if isinstance(method, MMVAEPlus) else ())
    return truth, shaken(model(truth, method, jitter=jitter))


def gaps(batch):
    """The batch with every pattern of missing modalities, the empty one too, over and over."""
    modalities = len(batch.names)
    table = torch.cat([powerset(modalities), torch.zeros(1, modalities, dtype=torch.bool)])
    return patterns(batch, table[torch.arange(len(batch)) % len(table)])


def kept(sampler, drawn):
    """The sampler, which writes down what it draws."""

    def draw(*arguments):
        drawn.append(sampler(*arguments))
        return drawn[-1]

    return draw


@pytest.fixture
def noise(monkeypatch):
    """Every number drawn, in the order in which it was drawn."""
    drawn = {"normal": [], "uniform": []}
    for kind in drawn:
        monkeypatch.setattr(random, kind, kept(getattr(random, kind), drawn[kind]))
    return drawn


@pytest.fixture
def same_noise(monkeypatch):
    """Noise that is the same for every data point and every call."""

    def alike(sampler):
        def draw(shape, like, batch_axis=None):
            one = list(shape)
            if batch_axis is not None:
                one[batch_axis] = 1
            return sampler(one, generator=torch.Generator().manual_seed(sum(one)), dtype=like.dtype).expand(shape)

        return draw

    monkeypatch.setattr(random, "normal", alike(torch.randn))
    monkeypatch.setattr(random, "uniform", alike(torch.rand))


# ------------------------------------------------------------------------------------------------ a second implementation, point by point


class Point:
    """One data point: what is observed of it, what each encoder says of it, and the decoders, as numpy sees them."""

    def __init__(self, made, batch, b):
        self.made, self.method, self.b, self.names = made, made.method, b, made.names
        self.have = [m for m in range(len(self.names)) if batch.observed[b, m]]
        self.x = [batch.values[name][b].numpy() for name in self.names]
        self.w = np.array(
            [self.method.weights[name] if isinstance(self.method.weights, dict) else self.method.weights for name in self.names]
        )
        self.loc, self.raw, self.private = {}, {}, {}
        for m in self.have:
            part = made.parts[m]
            numbers = part.encoder.weight.detach().numpy() @ self.x[m] + part.encoder.bias.detach().numpy()
            loc, raw = np.split(numbers, 2)
            self.loc[m], self.raw[m] = loc[: made.latent_dim], raw[: made.latent_dim]
            self.private[m] = loc[made.latent_dim :], laplace_scale(raw[made.latent_dim :])

    def sd(self, m):
        return np.exp(np.clip(self.raw[m], -7, 2))

    def score(self, m, z, own=()):
        """log p(x_m | z, own)."""
        part = self.made.parts[m]
        mean = part.decoder.weight.detach().numpy() @ np.concatenate([z, own]) + part.decoder.bias.detach().numpy()
        return norm.logpdf(self.x[m], mean, part.likelihood.scale).sum()

    def scores(self, z, weigh=True):
        return sum((self.w[m] if weigh else 1.0) * self.score(m, z) for m in self.have)

    def consensus(self, subset, prior_expert=False):
        """Mean and standard deviation, by the explicit inverse of every dimension's covariance."""
        rho = float(self.method.consensus.rho)
        result = []
        for d in range(self.made.latent_dim):
            sd, mu = np.array([self.sd(m)[d] for m in subset]), np.array([self.loc[m][d] for m in subset])
            covariance = np.outer(sd, sd) * np.where(np.eye(len(subset)) > 0, 1.0, rho)
            inverse = np.linalg.inv(covariance) if subset else np.zeros((0, 0))
            a, b = inverse.sum() + (prior_expert or not subset), (inverse @ mu).sum()
            result.append((b / a, a**-0.5))
        return np.array(result).T

    def mixture_log_density(self, z, subset):
        """Of the Laplace experts."""
        return logsumexp([laplace.logpdf(z, self.loc[m], laplace_scale(self.raw[m])).sum() for m in subset]) - math.log(len(subset))


def laplace_scale(raw):
    """D times a softmax; nothing where there are no dimensions."""
    return raw if not len(raw) else len(raw) * softmax(raw) + 1e-6


def normal_kl(q, p):
    """KL by torch.distributions, summed."""
    q, p = (torch.distributions.Normal(*map(torch.as_tensor, one)) for one in (q, p))
    return float(torch.distributions.kl_divergence(q, p).sum())


def standard(width):
    return np.zeros(width), np.ones(width)


def mvae(point, noise, bound):
    method, have, width = point.method, point.have, point.made.latent_dim
    number, eps = len(point.names), noise["normal"][0][:, :, point.b].numpy()
    terms = [(0, have, True)]
    if len(have) > 1:
        terms += [(1 + m, [m], False) for m in have]
    for row in range(1 + number, len(bound.plan.mask)):
        terms.append((row, bound.plan.mask[row, point.b].nonzero().flatten().tolist(), True))
    total = 0.0
    for row, subset, weigh in terms:
        assert set(subset) <= set(have) and subset
        loc, sd = point.consensus(subset, prior_expert=True)
        for e in eps[:, row]:
            total += sum((point.w[m] if weigh else 1.0) * point.score(m, loc + sd * e) for m in subset) / len(eps)
        total -= method.beta * normal_kl((loc, sd), standard(width))
    return total


def mopoe(point, noise, bound):
    eps, levels = noise["normal"][0][:, :, point.b].numpy(), []
    for code in range(1, 2 ** len(point.names)):
        subset = [m for m in range(len(point.names)) if code >> m & 1]
        if set(subset) <= set(point.have):
            loc, sd = point.consensus(subset, prior_expert=len(subset) == len(point.names))
            reconstruction = np.mean([point.scores(loc + sd * e) for e in eps[:, code - 1]])
            levels.append(reconstruction - point.method.beta * normal_kl((loc, sd), standard(len(loc))))
    return np.mean(levels)


def mvtcae(point, noise, bound):
    loc, sd = q = point.consensus(point.have)
    n, alpha, eps = len(point.have), point.method.alpha, noise["normal"][0][:, 0, point.b].numpy()
    value = (n - alpha) / n * np.mean([point.scores(loc + sd * e) for e in eps])
    for m in point.have:
        value -= point.method.beta * alpha / n * normal_kl(q, (point.loc[m], point.sd(m)))
    return value - point.method.beta * (1 - alpha) * normal_kl(q, standard(len(loc)))


def geometric(point, subset):
    """The normalised geometric mean of the subset's experts and the prior, numbered by its moments on a grid."""
    axis = np.linspace(-30, 30, 60001)
    result = []
    for d in range(point.made.latent_dim):
        logs = [norm.logpdf(axis, point.loc[m][d], point.sd(m)[d]) for m in subset] + [norm.logpdf(axis)]
        p = np.exp(np.mean(logs, 0))
        p /= p.sum()
        mean = (p * axis).sum()
        result.append((mean, np.sqrt((p * (axis - mean) ** 2).sum())))
    return np.array(result).T


def mmjsd(point, noise, bound):
    components = {m: (point.loc[m], point.sd(m)) for m in point.have} | {len(point.names): standard(point.made.latent_dim)}
    f, eps, value = geometric(point, point.have), noise["normal"][0][:, :, point.b].numpy(), 0.0
    for row, (loc, sd) in components.items():
        level = np.mean([point.scores(loc + sd * e) for e in eps[:, row]]) - point.method.beta * normal_kl((loc, sd), f)
        value += level / len(components)
    return value


def shared_prior(method, z):
    """log p(z): a Laplace with scales of mean one, or the clusters by the published sum with the exact q(c|z)."""
    if not isinstance(method, CMVAE):
        return laplace.logpdf(z, 0, len(z) * softmax(method.prior.logits.detach().numpy())).sum()
    log_pi = np.log(softmax(method.prior.logits.detach().numpy()))
    within = np.array([laplace.logpdf(z, center, 1.0).sum() for center in method.prior.centers.detach().numpy()])
    q = softmax(log_pi + within)
    return (q * (log_pi + within - np.log(q))).sum()


def mmvae(point, noise, bound):
    method, number, plus = point.method, len(point.names), isinstance(point.method, MMVAEPlus)
    u, rows = [drawn[:, :, point.b].numpy() for drawn in noise["uniform"]], []
    for r in point.have:
        log_weights = []
        for s in range(method.samples):
            z, own = laplace.ppf(u[0][s, r], point.loc[r], laplace_scale(point.raw[r])), dict.fromkeys(point.have, ())
            gain = shared_prior(method, z) - point.mixture_log_density(z, point.have)
            if plus:
                for m in point.have:
                    auxiliary = method.auxiliary[m].logits.detach().numpy()
                    loc, scale = point.private[m] if m == r else (0.0, len(auxiliary) * softmax(auxiliary))
                    own[m] = laplace.ppf(u[1 + 2 * m + (m != r)][s, r], loc, scale)
                logits = method.private_priors[str(r)].logits.detach().numpy()
                gain += laplace.logpdf(own[r], 0, len(logits) * softmax(logits)).sum() - laplace.logpdf(own[r], *point.private[r]).sum()
            scores = sum(point.w[m] * point.score(m, z, own[m]) for m in point.have)
            log_weights.append(scores + method.beta * gain)
        rows.append(np.mean(log_weights) if method.estimator == "elbo" else logsumexp(log_weights) - math.log(method.samples))
    assert len(u) == (1 + 2 * number if plus else 1)
    return np.mean(rows)


NAIVE = {MVAE: mvae, MoPoE: mopoe, MVTCAE: mvtcae, MMJSD: mmjsd, MMVAE: mmvae, MMVAEPlus: mmvae, CMVAE: mmvae}


@every_method
@pytest.mark.parametrize("sizes", [(3, 2, 4), (3,)], ids=["three", "one"])
def test_the_bound_is_the_published_one(method, sizes, noise):
    """All patterns of missing modalities, the complete and the empty one among them."""
    method = method()
    if len(sizes) == 1:
        method.weights = 0.5
    truth, made = make(method, sizes)
    batch = gaps(truth.draw(2 * 2 ** len(sizes)))
    noise["normal"].clear(), noise["uniform"].clear()
    bound = made(batch)
    naive = NAIVE[type(method)]
    for b in range(len(batch)):
        point = Point(made, batch, b)
        expected = naive(point, noise, bound) if point.have else 0.0
        assert bound.value[b].item() == pytest.approx(expected, rel=1e-9, abs=1e-9), point.have
    assert bound.bonus == 0
    assert_close(bound.loss(), -bound.value.sum() / batch.observed.any(1).sum())


@every_method
def test_the_posterior_of_every_subset_is_the_published_one(method):
    """Its density at a few places, by scipy."""
    method = method()
    truth, made = make(method)
    batch, z = truth.draw(2), torch.randn(3, 1, 2, 2)
    for row in powerset(3):
        subset = row.nonzero().flatten().tolist()
        q = made.infer(batch, [made.names[m] for m in subset]).shared
        found = q.log_prob(z).detach()
        for s in range(3):
            for b in range(2):
                point, at = Point(made, batch, b), z[s, 0, b].numpy()
                if isinstance(method, MMVAE):
                    expected = point.mixture_log_density(at, subset)
                elif isinstance(method, MMJSD) and (method.subset_posterior == "mixture" or len(subset) == 1):
                    parts = [norm.logpdf(at, point.loc[m], point.sd(m)).sum() for m in subset]
                    expected = logsumexp(parts) - math.log(len(subset))
                else:
                    prior = isinstance(method, MVAE) or (isinstance(method, MoPoE) and len(subset) == 3)
                    loc, sd = geometric(point, subset) if isinstance(method, MMJSD) else point.consensus(subset, prior)
                    expected = norm.logpdf(at, loc, sd).sum()
                assert found[s, 0, b].item() == pytest.approx(expected, rel=1e-8)


# ------------------------------------------------------------------------------------------------ what holds for every method


@every_method
def test_what_is_absent_changes_nothing(method):
    truth, made = make(method())
    clean = truth.draw(8)
    observed, results = gaps(clean).observed, []
    for garbage in (0.0, float("nan"), float("inf"), 1e30):
        values = {name: torch.where(observed[:, [m]], clean.values[name], garbage) for m, name in enumerate(made.names)}
        batch = Batch(values, entries={name: torch.ones(8, dtype=torch.bool) for name in values}, observed=observed)
        made.zero_grad()
        torch.manual_seed(0)
        bound = made(batch)
        bound.loss().backward()
        gradients = [parameter.grad for parameter in made.parameters() if parameter.grad is not None]
        results.append([bound.value, bound.loss(), *(g.clone() for g in gradients), made.embed(batch, samples=2)])
    assert all(result.isfinite().all() for result in results[0])
    for result in results[1:]:
        assert all(map(torch.equal, results[0], result))


@every_method
def test_a_point_with_nothing_has_no_loss_and_the_prior_as_its_posterior(method):
    truth, made = make(method())
    batch = patterns(truth.draw(3), torch.zeros(3, dtype=torch.bool))
    bound = made(batch)
    bound.loss().backward()
    assert not bound.value.any() and bound.loss() == 0
    assert not any(parameter.grad.any() for parameter in made.parameters() if parameter.grad is not None)
    latent, prior = made.method.joint_prior().draw(5), made.method.joint_prior()
    latent = Latent(latent.shared.expand(-1, -1, 3, -1), {name: s.expand(-1, -1, 3, -1) for name, s in latent.private.items()})
    for q in (made.infer(batch), made.infer(truth.draw(3), [])):
        assert_close(q.log_prob(latent), prior.log_prob(latent).expand(5, 1, 3))
        assert_close(q.shared.mean, prior.shared.mean.expand(1, 3, 2))
        assert_close(q.shared.variance, prior.shared.variance.expand(1, 3, 2))


@every_method
def test_a_point_gives_the_same_alone_in_a_batch_and_shuffled(method, same_noise):
    truth, made = make(method())
    batch = gaps(truth.draw(16))
    whole, order = made(batch).value, torch.randperm(16)
    assert_close(made(batch[order]).value, whole[order])
    assert_close(torch.cat([made(batch[b : b + 1]).value for b in range(16)]), whole)
    assert_close(made(batch.padded(20)).loss(), made(batch).loss())


@every_method
def test_every_parameter_gets_a_gradient(method):
    truth, made = make(method())
    made(gaps(truth.draw(32))).loss().backward()
    idle = [name for name, p in made.named_parameters() if p.requires_grad and (p.grad is None or not (p.grad != 0).all())]
    assert not idle
    assert all(p.grad.isfinite().all() for p in made.parameters() if p.requires_grad)


def networks(method):
    """A model with the default networks, as a user makes it."""
    width = 2 if isinstance(method, MMVAEPlus) else 0
    return MultimodalVAE([Modality(name, (3,), Normal(), private_dim=width) for name in "abc"], 2, method, seed=0)


@every_method
def test_it_trains_and_answers(method):
    made, batch = networks(method()), gaps(world(sizes=(3, 3, 3)).draw(128))
    made.calibrate(batch)
    with made.asked(0):
        before = np.mean([float(made(batch).loss()) for _ in range(5)])
    fit(made, batch, steps=20, batch_size=64, learning_rate=5e-3, validation=0.0, accelerator="cpu", progress=False)
    with made.asked(0):
        after = np.mean([float(made(batch).loss()) for _ in range(5)])
    assert after < before
    assert made.embed(batch).isfinite().all()
    assert made.generate(4).values["a"].isfinite().all()
    assert made.generate(4, draw=True).values["a"].isfinite().all()
    assert made.translate(batch, to="b", samples=3).shape == (3, 128, 3)
    full = made.impute(batch)
    assert all(torch.isfinite(value).all() for value in full.values.values())
    for m, name in enumerate(made.names):
        assert torch.equal(full.values[name][batch.observed[:, m]], batch.values[name][batch.observed[:, m]])


@every_method
def test_it_is_rebuilt_from_its_record(method, same_noise):
    made = shaken(networks(method()))
    again = rebuild(json.loads(json.dumps(describe(made))))
    again.load_state_dict(made.state_dict())
    batch = gaps(world(sizes=(3, 3, 3)).draw(16))
    assert_close(again(batch).value, made(batch).value, rtol=0, atol=0)
    assert describe(again) == describe(made)
    assert made.method.modality_weights.tolist() == list(WEIGHTS.values())
    copy.deepcopy(made)(batch)


NORMAL = {name: make for name, make in METHODS.items() if not isinstance(make(), MMVAE)}
LAPLACE = {name: make for name, make in METHODS.items() if isinstance(make(), MMVAE)}


def errors_from(made, batch, exact, samples=3000):
    """log_likelihood's distance from the exact value in standard errors, with every subset as the proposal."""
    result = []
    for row in powerset(len(made.names)):
        given = [name for name, held in zip(made.names, row, strict=True) if held]
        estimate = log_likelihood(made, batch, given, samples=samples)
        # the standard error of log p̂, and half its square, by which the logarithm is low
        error = (1 / estimate.effective - 1 / samples).clamp(min=0).sqrt() + 1e-9
        enough = estimate.effective > 100
        assert enough.any()
        result.append(((estimate.joint - exact + error**2 / 2) / error)[enough])
    return torch.cat(result)


@pytest.mark.parametrize("method", NORMAL.values(), ids=NORMAL)
def test_log_likelihood_finds_log_p_from_every_subset(method):
    truth, made = make(method(), jitter=0.02)
    batch = truth.draw(4)
    errors = errors_from(made, batch, truth.log_prob(batch))
    assert errors.abs().max() < 4
    assert (errors.abs() < 3).double().mean() > 0.95


# ------------------------------------------------------------------------------------------------ Laplace priors: a world with D = 1


def line(method, modalities=2):
    """A world with one latent dimension, and one private one of each modality where the method has them; all scales are 1 then."""
    truth = world((2, 2)[:modalities], 1, private=(1, 1)[:modalities] if isinstance(method, MMVAEPlus) else ())
    made = model(truth, method, jitter=0.05)
    if isinstance(method, CMVAE):
        shaken(made)
    return truth, made


def integrated(truth, made, batch):
    """log p(x) by adding up a grid over z, and one over every s_m."""
    axis = np.linspace(-25, 25, 1001)
    step = axis[1] - axis[0]
    log_z, result = np.array([shared_prior(made.method, np.array([z])) for z in axis]), []
    for n in range(len(batch)):
        total = log_z + math.log(step)
        for m, name in enumerate(truth.names):
            if batch.observed[n, m]:
                x, w, v = (value.numpy() for value in (batch.values[name][n], truth.shared[name][:, 0], truth.offset[name]))
                mean = axis[:, None] * w + v  # (Z,F)
                if truth.private[name].shape[1]:
                    own = np.linspace(-12, 12, 401)
                    mean = mean[:, None] + own[:, None] * truth.private[name][:, 0].numpy()  # (Z,P,F)
                    inner = norm.logpdf(x, mean, truth.sigma[name]).sum(-1) + laplace.logpdf(own)
                    total = total + logsumexp(inner, 1) + math.log(own[1] - own[0])
                else:
                    total = total + norm.logpdf(x, mean, truth.sigma[name]).sum(-1)
        result.append(logsumexp(total))
    return torch.tensor(result)


@pytest.mark.parametrize("method", LAPLACE.values(), ids=LAPLACE)
def test_log_likelihood_finds_log_p_where_priors_are_laplace(method):
    method = method()
    method.weights = 1.0
    truth, made = line(method)
    batch = patterns(truth.draw(4), torch.tensor([[1, 1], [1, 1], [1, 0], [0, 1]]).bool())
    errors = errors_from(made, batch, integrated(truth, made, batch), samples=20_000)
    assert errors.abs().max() < 4
    assert (errors.abs() < 3).double().mean() > 0.9


@pytest.mark.parametrize("estimator", ["elbo", "iwae"])
@pytest.mark.parametrize("kind", [MMVAE, MMVAEPlus, CMVAE])
def test_mixtures_never_exceed_log_p(kind, estimator):
    """MMVAE+ and CMVAE with r_m = p(w), as it is for one private dimension. More samples come nearer."""
    truth, made = line(kind(samples=1, estimator=estimator))
    batch = patterns(truth.draw(6), torch.tensor([[1, 1], [1, 0], [0, 1]]).bool().repeat(2, 1))
    exact, often, before = integrated(truth, made, batch), batch[torch.arange(6).repeat(1000)], None
    for samples in (1, 8):
        made.method.samples = samples
        with torch.no_grad():
            values = made(often).value.view(1000, 6)
        error = values.std(0) / 1000**0.5
        assert (values.mean(0) < exact + 3 * error).all()
        if estimator == "iwae":
            assert before is None or (values.mean(0) > before).all()
            before = values.mean(0)


def test_mopoe_never_exceeds_log_p(exact_noise):
    truth, made = make(MoPoE(subsets="all", samples=8))
    batch = truth.draw(10)
    for observed in powerset(3):
        part = patterns(batch, observed)
        assert (made(part).value <= truth.log_prob(part) + 1e-9).all()


def test_mvae_is_below_the_sum_of_what_its_terms_bound(exact_noise):
    truth, made = make(MVAE(samples=8))
    batch = truth.draw(10)
    limits = [truth.log_prob(patterns(batch, observed)) for observed in (torch.ones(3).bool(), *torch.eye(3).bool())]
    assert (made(batch).value < sum(limits)).all()


# ------------------------------------------------------------------------------------------------ relations between methods


def test_one_modality_is_the_vae(no_noise):
    truth = world(sizes=(3,))
    batch = truth.draw(6)
    plain, product = VAE(beta=1.7, weight=0.5), VAE(beta=1.7, weight=0.5)
    product.consensus = PoE(prior_expert=True)
    settings = {"beta": 1.7, "modality_weights": 0.5}
    for method, reference, factor in (
        (MVAE(**settings), product, 1.0),
        (MoPoE(**settings, subsets="all"), product, 1.0),
        (MVTCAE(alpha=0.3, **settings), plain, 0.7),
        (MVTCAE(alpha=0.3, **settings, consensus=CoDE(rho=0.5)), plain, 0.7),
    ):
        made, vae = model(truth, method, jitter=0.1), model(truth, reference, jitter=0.1)
        assert_close(made(batch).value, factor * vae(batch).value)
        assert_close(made.embed(batch), vae.embed(batch))


def test_mopoe_is_codevae_without_its_weights_entropy_and_correlation(same_noise):
    """But for the prior expert in the product of all."""
    truth = world()
    ours = model(truth, CoDEVAE(rho=0.0, omega=0.0, learn_weights=False, subsets="all", **ODD), jitter=0.1)
    theirs = model(truth, MoPoE(subsets="all", **ODD), jitter=0.1)
    batch = gaps(truth.draw(16))
    a, b, full = ours(batch), theirs(batch), batch.observed.all(1)
    assert_close(a.value[~full], b.value[~full])
    assert (a.value[full] != b.value[full]).all()
    assert_close(a.reconstruction[:6], b.reconstruction[:6])
    assert_close(a.divergence[:6], b.divergence[:6])
    every = theirs.infer(truth.draw(4)).shared
    theirs.method.consensus = PoE()
    precision = ours.infer(truth.draw(4)).shared.variance.reciprocal() + 1
    assert_close(every.variance, precision.reciprocal())


def test_auxiliary_priors_equal_to_the_prior_give_the_bound_of_one_model(same_noise):
    """MMVAE+ with one cluster in the world's place is CMVAE with all its clusters at 0."""
    truth, made = line(MMVAEPlus(samples=3))
    other = line(CMVAE(clusters=2, samples=3))[1]
    state = made.state_dict()
    other.load_state_dict({k: v for k, v in state.items() if not k.startswith("method.prior.")}, strict=False)
    with torch.no_grad():
        other.method.prior.centers.zero_()
    monkey = made.method.prior  # the noise of a mixture's extra components has its own shape
    made.method.prior = other.method.prior
    batch = truth.draw(5)
    value = made(batch).value
    assert_close(value, other(batch).value)
    made.method.prior = monkey
    log_p = made.method.joint_prior().shared.log_prob(torch.linspace(-3, 3, 5).reshape(5, 1, 1, 1))
    assert_close(log_p, other.method.joint_prior().shared.log_prob(torch.linspace(-3, 3, 5).reshape(5, 1, 1, 1)))


# ------------------------------------------------------------------------------------------------ DReG


def gradients(made, batch, estimator, groups=60, repeat=300):
    """The encoders' gradient, by groups of `repeat` copies of the batch: (groups, parameters)."""
    made.method.estimator = estimator
    encoders, result = [p for part in made.parts for p in part.encoder.parameters()], []
    often = batch[torch.arange(len(batch)).repeat(repeat)]
    for _ in range(groups):
        result.append(torch.cat([g.flatten() for g in torch.autograd.grad(made(often).loss(), encoders)]))
    return torch.stack(result)


def compared(made, batch, **more):
    """How many standard errors apart the two mean gradients are; the relative bias of DReG (noise taken off); the ratio of variances."""
    ours, reference = (gradients(made, batch, estimator, **more) for estimator in ("dreg", "iwae"))
    apart, error = ours.mean(0) - reference.mean(0), (ours.var(0) + reference.var(0)).div(len(ours))
    bias = (apart.square().sum() - error.sum()).clamp(min=0).sqrt() / reference.mean(0).norm()
    return (apart / error.sqrt().clamp(min=1e-12)).abs().max(), float(bias), float(ours.var(0).sum() / reference.var(0).sum())


@pytest.mark.parametrize("beta", [1.0, 0.4, 2.0])
@pytest.mark.parametrize(("sizes", "samples"), [((3,), 1), ((3,), 8), ((3, 2), 1)], ids=["M=1 S=1", "M=1 S=8", "M=2 S=1"])
def test_dreg_is_the_gradient_of_the_bound(sizes, samples, beta):
    truth, made = make(MMVAE(beta=beta, samples=samples), sizes)
    distance, _, variance = compared(made, truth.draw(2))
    assert distance < 4.5
    if samples > 1 and beta == 1:
        assert variance < 0.8


def test_two_bounds_before_one_backward_have_their_own_weights():
    truth, made = make(MMVAE(samples=4))
    first, second = truth.draw(3), truth.draw(3, seed=1)
    parameters = [p for p in made.parameters() if p.requires_grad]

    def loss(batch, seed):
        torch.manual_seed(seed)
        return made(batch).loss()

    together = torch.autograd.grad(loss(first, 1) + loss(second, 2), parameters)
    apart = [torch.autograd.grad(loss(batch, seed), parameters) for batch, seed in ((first, 1), (second, 2))]
    assert_close(together, tuple(a + b for a, b in zip(*apart, strict=True)))


# ------------------------------------------------------------------------------------------------ clusters


def clustered(true, clusters, width=4, apart=8.0, count=600):
    """Codes of `true` clusters, and a prior that has these, copies of them that only blur, and a few where no code is."""
    generator = torch.Generator().manual_seed(true)
    centers, prior = apart * torch.randn(true, width, generator=generator), LaplaceMixture(clusters).build(width)
    with torch.no_grad():
        prior.centers[:true] = centers
        prior.centers[true:] = centers[torch.arange(clusters - true) % true] + 0.3 * torch.randn(
            clusters - true, width, generator=generator
        )
        prior.centers[-3:] = -1000.0
        prior.logits[true:] = -2.0
    codes = centers[torch.randint(true, (count,), generator=generator)] + torch.distributions.Laplace(0.0, 1.0).sample((count, width))
    return prior, codes


@pytest.mark.parametrize(("width", "apart"), [(4, 8.0), (32, 30.0)])
@pytest.mark.parametrize("true", [2, 3, 5, 10])
@pytest.mark.parametrize("precision", [torch.float32, torch.float64], ids=["single", "double"])
def test_pruning_keeps_the_clusters_that_are_apart(true, width, apart, precision):
    prior, codes = clustered(true, 20, width, apart)
    prior, codes = prior.to(precision), codes.to(precision)
    assert_close(prior.shares(codes).sum(1), torch.ones(600, dtype=precision))
    prior.prune(codes)
    assert prior.alive.nonzero().flatten().tolist() == list(range(true))
    weights = prior.distribution().log_weights.exp()[0, 0]
    assert_close(weights.sum(), torch.ones((), dtype=precision))
    assert not weights[~prior.alive].any()
    nearest = torch.cdist(prior.distribution().draw(500)[:, 0, 0], prior.centers[:true], p=1).min(1).values
    assert nearest.max() < 4 * width + 20
    kept = prior.alive.clone()
    prior.prune(codes)
    assert torch.equal(prior.alive, kept)


def test_pruning_leaves_two_where_all_codes_are_of_one_cluster():
    prior, _ = clustered(2, 6)
    prior.prune(prior.centers[:1].detach().repeat(50, 1))
    assert prior.alive.sum() == 2 and prior.alive[0]


def test_pruning_follows_training_and_is_kept():
    made, batch = networks(CMVAE(clusters=6)), world(sizes=(3, 3, 3)).draw(64)
    fit(made, batch, steps=2, validation=0.0, accelerator="cpu", progress=False)
    assert 2 <= made.method.prior.alive.sum() <= 6
    again = rebuild(describe(made))
    again.load_state_dict(made.state_dict())
    assert torch.equal(again.method.prior.alive, made.method.prior.alive)
    made = networks(CMVAE(clusters=6, prune=False))
    fit(made, batch, steps=2, validation=0.0, accelerator="cpu", progress=False)
    assert made.method.prior.alive.all()
    made(batch).loss().backward()


# ------------------------------------------------------------------------------------------------ held wrong


TWO = [Modality("a", (2,)), Modality("b", (4,))]
OWN = [Modality("a", (2,), private_dim=1), Modality("b", (4,))]


def called(kind):
    """MoPoE leaves its checks to CoDEVAE."""
    return "" if kind is MoPoE else kind.__name__


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda kind=kind: MultimodalVAE(OWN, 2, kind()), f"{kind.__name__}: it has no private latents, but 'a' has private_dim > 0")
            for kind in (MVAE, MVTCAE, MMJSD, MMVAE)
        ),
        *(
            (
                lambda kind=kind: MultimodalVAE(TWO, 2, kind()),
                f"{kind.__name__}: every modality needs private latents, and 'a', 'b' has none",
            )
            for kind in (MMVAEPlus, CMVAE)
        ),
        (lambda: MultimodalVAE(OWN, 2, MMVAEPlus()), "'b' has none"),
        (lambda: MMVAE(estimator="best"), r"MMVAE\(estimator\): expected 'dreg', 'iwae' or 'elbo', got 'best'"),
        (lambda: MMVAEPlus(estimator="best"), r"MMVAEPlus\(estimator\)"),
        (lambda: MMJSD(subset_posterior="sum"), r"MMJSD\(subset_posterior\): expected 'mixture' or 'geometric', got 'sum'"),
        (lambda: MVTCAE(alpha=1.5), r"MVTCAE\(alpha\): expected a number from 0 to 1, got 1.5"),
        (lambda: MVTCAE(alpha=-0.5), r"MVTCAE\(alpha\)"),
        (lambda: CMVAE(clusters=1), r"CMVAE\(clusters\): expected at least 2, got 1"),
        (lambda: MVAE(random_subsets=-1), r"MVAE\(random_subsets\)"),
        *((lambda kind=kind: kind(beta=-1.0), rf"{called(kind)}\(beta\)") for kind in NAIVE),
        *((lambda kind=kind: kind(samples=0), rf"{called(kind)}\(samples\): expected at least 1, got 0") for kind in NAIVE),
        (lambda: MoPoE(subsets=0), r"\(subsets\)"),
        (lambda: MultimodalVAE(TWO, 2, MoPoE(consensus=CoDE(rho=[0.1, 0.2, 0.3]))), "3 values for 2 latent dimensions"),
        (lambda: MultimodalVAE(TWO, 2, MMVAE(modality_weights={"a": 1.0})), "a weight for each of 'a', 'b', got 'a'"),
    ],
)
def test_what_is_said_when_it_is_held_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()
