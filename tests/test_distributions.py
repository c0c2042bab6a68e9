"""Densities, divergences and draws, against torch.distributions, brute force and Monte Carlo."""

import math

import pytest
import torch
from torch.testing import assert_close

from codevae.distributions import Joint, Laplace, Latent, Mixture, Normal, kl, log_mean_exp

PEERS = {Normal: torch.distributions.Normal, Laplace: torch.distributions.Laplace}
both = pytest.mark.parametrize("kind", PEERS)


def make(kind, *shape):
    return kind(torch.randn(shape), torch.randn(shape).exp())


def mixture(kind=Normal, subsets=3, size=4, components=5, latent_dim=2):
    """A mixture of (K, B, C) weights, where some components take no part in some subsets."""
    weights = torch.randn(subsets, size, components)
    weights[0, :, 2:] = -torch.inf
    weights[1, 1, :4] = -torch.inf
    return Mixture(make(kind, components, size, latent_dim), weights.log_softmax(-1))


@both
def test_density_and_moments_are_the_peers(kind, double):
    q, z = make(kind, 3, 4, 2), torch.randn(5, 3, 4, 2)
    peer = PEERS[kind](q.loc, q.scale)
    assert_close(q.log_prob(z), peer.log_prob(z).sum(-1))
    assert_close(q.mean, peer.mean)
    assert_close(q.variance, peer.variance)


@both
def test_divergence_is_the_peers(kind, double):
    q, p = make(kind, 3, 4, 2), make(kind, 1, 1, 2)
    truth = torch.distributions.kl_divergence(PEERS[kind](q.loc, q.scale), PEERS[kind](p.loc, p.scale)).sum(-1)
    assert_close(kl(q, p), truth)
    assert_close(kl(q, q), torch.zeros(3, 4), rtol=0, atol=1e-12)


@both
def test_draws_follow_the_density(kind, double):
    q = make(kind, 2, 3, 2)
    z = q.draw(100_000)
    assert z.shape == (100_000, 2, 3, 2)
    error = q.variance.sqrt() / 100_000**0.5
    assert ((z.mean(0) - q.mean).abs() < 4 * error).all()
    quantiles = torch.tensor([0.05, 0.3, 0.5, 0.8, 0.99])
    share = (z.unsqueeze(-1) < PEERS[kind](q.loc[..., None], q.scale[..., None]).icdf(quantiles)).double().mean(0)
    assert_close(share, quantiles.expand_as(share), rtol=0, atol=0.007)
    # KL(q ‖ p) is the mean of log q − log p over draws of q
    p = make(kind, 1, 1, 2)
    gain = q.log_prob(z) - p.log_prob(z)
    assert ((gain.mean(0) - kl(q, p)).abs() < 4 * gain.std(0) / 100_000**0.5).all()


@both
def test_draws_carry_the_gradient(kind, double):
    loc, scale = torch.zeros(1, 1, 2, requires_grad=True), torch.ones(1, 1, 2, requires_grad=True)
    z = kind(loc, scale).draw(50_000)
    z.square().mean(0).sum().backward()
    assert_close(loc.grad, torch.zeros(1, 1, 2), rtol=0, atol=0.03)
    assert_close(scale.grad, kind(loc, 2 * scale).variance.detach() / 2, rtol=0.05, atol=0)  # d/ds of c s² at 1 is 2 c


def test_extreme_draws_are_finite(monkeypatch):
    for share in (0.0, 0.5, 1.0 - 2**-24):
        monkeypatch.setattr(torch, "rand", lambda shape, share=share, **options: torch.full(shape, share, **options))
        z = Laplace(torch.zeros(1, 1, 3), torch.ones(1, 1, 3)).draw(2)
        assert torch.isfinite(z).all()
        assert torch.isfinite(mixture().draw(2)).all()


def test_no_closed_form_is_said():
    with pytest.raises(TypeError, match=r"kl\(q, p\): no closed form for Normal against Laplace; .* mean of q.log_prob"):
        kl(make(Normal, 1, 1, 2), make(Laplace, 1, 1, 2))
    with pytest.raises(TypeError, match="Mixture against Normal"):
        kl(mixture(), make(Normal, 1, 1, 2))


@both
def test_a_mixtures_density_is_the_sum_over_its_components(kind, double):
    q, z = mixture(kind), torch.randn(6, 3, 4, 2)
    density = torch.zeros(6, 3, 4)
    for k in range(3):
        for b in range(4):
            for c in range(5):
                peer = PEERS[kind](q.components.loc[c, b], q.components.scale[c, b])
                density[:, k, b] += q.log_weights[k, b, c].exp() * peer.log_prob(z[:, k, b]).sum(-1).exp()
    assert_close(q.log_prob(z), density.log())


@both
def test_a_mixtures_draws_have_its_moments(kind, double):
    q = mixture(kind)
    z = q.draw(50_000)
    assert z.shape == (50_000, 3, 4, 2)
    assert ((z.mean(0) - q.mean).abs() < 4 * (q.variance / 50_000).sqrt()).all()
    fourth = (z - q.mean).square().std(0) / 50_000**0.5
    assert ((z.var(0) - q.variance).abs() < 4 * fourth).all()
    assert_close(q.mean[1, 1], q.components.mean[4, 1])  # the one component that takes part
    assert_close(q.variance[1, 1], q.components.variance[4, 1])


def test_a_mixtures_draws_choose_a_component_for_each_sample_subset_and_point():
    loc = 100.0 * torch.arange(5.0)[:, None, None].expand(5, 4, 2)
    q = Mixture(Normal(loc, torch.full((5, 4, 2), 1e-3)), mixture().log_weights)
    which = (q.draw(20_000) / 100).round()
    assert torch.equal(which[..., 0], which[..., 1])  # one component for all dimensions
    share = torch.stack([(which[..., 0] == c).float().mean(0) for c in range(5)], -1)
    assert_close(share, q.log_weights.exp(), rtol=0, atol=0.015)


def test_a_mixtures_variance_keeps_its_digits():
    q = Mixture(Normal(torch.tensor([1000.0, 1000.1])[:, None, None], torch.full((2, 1, 1), 0.1)), torch.full((1, 1, 2), math.log(0.5)))
    assert q.variance.item() == pytest.approx(0.01 + 0.05**2, rel=1e-3)


def test_a_component_that_takes_no_part_teaches_nothing():
    q = mixture()
    q.components.loc.requires_grad_()
    q.log_prob(torch.randn(6, 3, 4, 2))[:, 1, 1].sum().backward()
    assert torch.isfinite(q.components.loc.grad).all()
    assert not q.components.loc.grad[:4].any()
    assert q.components.loc.grad[4, 1].any()


def test_each_component_can_be_drawn():
    q = mixture()
    z = q.each(20_000)
    assert z.shape == (20_000, 5, 4, 2)
    assert_close(z.mean(0), q.components.loc, rtol=0, atol=0.2)


def test_joint_sums_its_parts():
    q = Joint(make(Normal, 3, 4, 2), {"a": make(Normal, 3, 4, 5), "b": make(Laplace, 3, 4, 1)})
    latent = q.draw(7)
    assert {name: tuple(s.shape) for name, s in latent.private.items()} == {"a": (7, 3, 4, 5), "b": (7, 3, 4, 1)}
    parts = q.private["a"].log_prob(latent.private["a"]) + q.private["b"].log_prob(latent.private["b"])
    assert_close(q.log_prob(latent), q.shared.log_prob(latent.shared) + parts)
    assert q.mean.shared.shape == (1, 3, 4, 2)
    assert torch.equal(q.mean.private["b"], q.private["b"].loc.unsqueeze(0))


def test_a_decoder_sees_the_shared_and_its_own_latents():
    latent = Latent(torch.randn(2, 3, 4, 2), {"a": torch.randn(2, 3, 4, 5)})
    assert torch.equal(latent.of("b"), latent.shared)
    assert torch.equal(latent.of("a"), torch.cat([latent.shared, latent.private["a"]], -1))


def test_log_mean_exp():
    x = torch.randn(5, 3, dtype=torch.float64)
    assert_close(log_mean_exp(x), x.exp().mean(0).log())
    assert_close(log_mean_exp(x, 1), x.exp().mean(1).log())
    assert_close(log_mean_exp(x + 1e4), log_mean_exp(x) + 1e4)
    assert_close(log_mean_exp(x - 1e4), log_mean_exp(x) - 1e4)
    assert log_mean_exp(torch.full((3,), -torch.inf)).item() == -torch.inf
