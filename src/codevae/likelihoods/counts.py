"""Counts: Poisson, with more variance, and with more zeros. The encoder sees log1p of them, standardised."""

import torch
from torch import nn
from torch.nn.functional import logsigmoid, softplus

from codevae.axes import Tensor
from codevae.likelihoods.base import Likelihood, moments


class Poisson(Likelihood):
    """Counts whose variance is their mean: the decoder gives log λ, relative to the mean of the training data."""

    base: Tensor
    offset: Tensor
    unit: Tensor

    support = "counts (0, 1, 2, …)"

    def build(self, shape):
        super().build(shape)
        for name, start in (("base", 0.0), ("offset", 0.0), ("unit", 1.0)):
            self.register_buffer(name, torch.full(self.shape, start))
        return self

    def calibrate(self, x, entries):
        x = torch.where(entries, x, 0).to(self.base.dtype)
        there = entries.expand_as(x).to(x.dtype)
        self.base.copy_(((x.sum(0) + 0.5) / (there.sum(0) + 1)).log())
        offset, unit = moments(x.log1p(), entries, self.shape)
        self.offset.copy_(offset)
        self.unit.copy_(unit)

    def _fits(self, x):
        return (x >= 0) & (x == x.floor() if x.is_floating_point() else True) & torch.isfinite(x)

    def view(self, x):
        return (x.to(self.base.dtype).log1p() - self.offset) / self.unit

    def log_rate(self, raw: Tensor) -> Tensor:
        """log λ, held below e²⁰."""
        return (self.base + raw).clamp(max=20.0)

    def log_prob(self, raw, x):
        log_rate = self.log_rate(raw)
        return x * log_rate - log_rate.exp() - torch.lgamma(x + 1.0)

    def mean(self, raw):
        return self.log_rate(raw).exp()

    def draw(self, raw):
        return torch.poisson(self.mean(raw))


class NegativeBinomial(Poisson):
    """Counts with more variance than a Poisson's: mean μ from the decoder, variance μ + μ²/θ with θ learned per column.

    log p = log Γ(x+θ) − log Γ(θ) − log x! + θ log θ/(θ+μ) + x log μ/(θ+μ); as θ grows, a Poisson.
    """

    def build(self, shape):
        super().build(shape)
        self.log_theta = nn.Parameter(torch.zeros(self.shape))
        return self

    def log_prob(self, raw, x):
        return self._counts(self.log_rate(raw), x)

    def _counts(self, log_mean: Tensor, x: Tensor) -> Tensor:
        log_theta = self.log_theta.clamp(-10.0, 15.0)
        theta = log_theta.exp()
        # θ/(θ+μ) = 1 / (1 + μ/θ) and μ/(θ+μ) = 1 / (1 + θ/μ), which keep their digits when one of the two is small
        chance = theta * softplus(log_mean - log_theta) + x * softplus(log_theta - log_mean)
        return _log_rising(theta, x) - torch.lgamma(x + 1.0) - chance

    def _draw_counts(self, mean: Tensor) -> Tensor:
        theta = self.log_theta.detach().clamp(-10.0, 15.0).exp()
        return torch.poisson(torch._standard_gamma(theta.expand(mean.shape)) * mean / theta)

    def draw(self, raw):
        return self._draw_counts(self.mean(raw))


class ZeroInflatedNegativeBinomial(NegativeBinomial):
    """Counts with more zeros than a negative binomial has: with probability ζ the count is 0 whatever its mean.

    The decoder gives two numbers an entry, in the last axis: log μ (relative) and the logit of ζ.
    """

    @property
    def raw_shape(self):
        return (*self.shape, 2)

    def log_prob(self, raw, x):
        log_mean, logit = self.log_rate(raw[..., 0]), raw[..., 1]
        counts = logsigmoid(-logit) + self._counts(log_mean, x)
        return torch.where(x == 0, torch.logaddexp(logsigmoid(logit), counts), counts)

    def mean(self, raw):
        return torch.sigmoid(-raw[..., 1]) * self.log_rate(raw[..., 0]).exp()

    def draw(self, raw):
        counts = self._draw_counts(self.log_rate(raw[..., 0]).exp())
        return torch.where(torch.rand_like(counts) < torch.sigmoid(raw[..., 1]), 0.0, counts)


def _log_rising(theta: Tensor, x: Tensor) -> Tensor:
    """log Γ(x+θ) / Γ(θ); for large θ by Stirling's series, since the difference of two log Γ has no digits left there (in single
    precision it is off by 3 nats at θ = e¹⁵)."""
    large = theta > 32
    few, many = torch.where(large, 1.0, theta), torch.where(large, theta, 32.0)
    series = (x + many - 0.5) * torch.log1p(x / many) + x * (many.log() - 1) + _stirling(x + many) - _stirling(many)
    return torch.where(large, series, torch.lgamma(x + few) - torch.lgamma(few))


def _stirling(t: Tensor) -> Tensor:
    """What Stirling's formula leaves of log Γ(t)."""
    return (1 / 12 - 1 / (360 * t.square())) / t
