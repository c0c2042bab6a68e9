"""Distributions over the latent space, with our axes: what torch.distributions lacks or cannot compile.

A posterior over the shared latents is a `Normal` or `Laplace` of (K, B, D), or a `Mixture` of components shared by all subsets.
`Joint` adds the private latents of each modality. All draw (S, K, B, …) and give densities (S, K, B); nothing is ever squeezed.
"""

import math
from dataclasses import dataclass, field

import torch

from codevae import random
from codevae.axes import Float, Tensor


@dataclass(frozen=True)
class Latent:
    """One draw: shared (S, K, B, D), and private (S, K, B, P) for each modality that has private latents."""

    shared: Float[Tensor, "S K B D"]
    private: dict[str, Tensor] = field(default_factory=dict)

    def of(self, name: str) -> Float[Tensor, "S K B D"]:
        """What the decoder of a modality sees: the shared latents, and its own private ones behind them."""
        return torch.cat([self.shared, self.private[name]], -1) if name in self.private else self.shared


@dataclass(frozen=True)
class Normal:
    """Independent normals: log N(z; μ, σ²) = Σ_d −½ ((z − μ)/σ)² − log σ − ½ log 2π."""

    loc: Float[Tensor, "*batch D"]
    scale: Float[Tensor, "*batch D"]

    @property
    def mean(self) -> Float[Tensor, "*batch D"]:
        return self.loc

    @property
    def variance(self) -> Float[Tensor, "*batch D"]:
        return self.scale.square()

    def draw(self, samples: int) -> Float[Tensor, "S *batch D"]:
        """z = μ + σ ε; differentiable."""
        return self.loc + self.scale * random.normal((samples, *self.loc.shape), self.loc, -2)

    def log_prob(self, z: Float[Tensor, "... D"]) -> Float[Tensor, "..."]:
        standard = (z - self.loc) / self.scale
        return (-0.5 * standard.square() - self.scale.log() - 0.5 * math.log(2 * math.pi)).sum(-1)


@dataclass(frozen=True)
class Laplace:
    """Independent Laplaces: log p(z; μ, b) = Σ_d −|z − μ|/b − log 2b."""

    loc: Float[Tensor, "*batch D"]
    scale: Float[Tensor, "*batch D"]

    @property
    def mean(self) -> Float[Tensor, "*batch D"]:
        return self.loc

    @property
    def variance(self) -> Float[Tensor, "*batch D"]:
        return 2 * self.scale.square()

    def draw(self, samples: int) -> Float[Tensor, "S *batch D"]:
        """z = μ − b sign(u) log(1 − 2|u|), u uniform in (−½, ½); differentiable."""
        u = random.uniform((samples, *self.loc.shape), self.loc, -2) - 0.5
        return self.loc - self.scale * u.sign() * torch.log1p(-2 * u.abs())

    def log_prob(self, z: Float[Tensor, "... D"]) -> Float[Tensor, "..."]:
        return (-(z - self.loc).abs() / self.scale - (2 * self.scale).log()).sum(-1)


@dataclass(frozen=True)
class Mixture:
    """Components (C, B, D) shared by all subsets, with log-weights (K, B, C) of each subset: −inf where one takes no part."""

    components: Normal | Laplace
    log_weights: Float[Tensor, "K B C"]

    @property
    def mean(self) -> Float[Tensor, "K B D"]:
        return (self._weights * self.components.mean).sum(1)

    @property
    def variance(self) -> Float[Tensor, "K B D"]:
        apart = self.components.mean - self.mean.unsqueeze(1)  # (K,C,B,D)
        return (self._weights * (self.components.variance + apart.square())).sum(1)

    @property
    def _weights(self) -> Float[Tensor, "K C B 1"]:
        return self.log_weights.exp().movedim(-1, 1).unsqueeze(-1)

    def draw(self, samples: int) -> Float[Tensor, "S K B D"]:
        """A component per sample, subset and data point, then a draw from it (no gradient reaches the weights)."""
        shape = (samples, *self.log_weights.shape)
        which = (self.log_weights + random.gumbel(shape, self.components.loc, 2)).argmax(-1)  # (S,K,B)
        every = self.each(samples * len(self.log_weights)).unflatten(0, (samples, -1))  # (S,K,C,B,D)
        index = which[:, :, None, :, None].expand(-1, -1, 1, -1, every.shape[-1])
        return every.gather(2, index).squeeze(2)

    def each(self, samples: int) -> Float[Tensor, "S C B D"]:
        """Draws of every component: for bounds that sum over the components exactly."""
        return self.components.draw(samples)

    def log_prob(self, z: Float[Tensor, "S K B D"]) -> Float[Tensor, "S K B"]:
        """log Σ_c w_kc p_c(z), the full mixture density."""
        parts = self.components.log_prob(z.unsqueeze(2))  # (S,K,C,B)
        weights = self.log_weights.movedim(-1, 1)  # (K,C,B)
        return torch.logsumexp(torch.where(weights > -torch.inf, parts + weights, -torch.inf), 2)


Shared = Normal | Laplace | Mixture


@dataclass(frozen=True)
class Joint:
    """Shared latents with the private ones of each modality, independent of one another: a posterior, or a prior."""

    shared: Shared
    private: dict[str, Normal | Laplace] = field(default_factory=dict)

    @property
    def mean(self) -> Latent:
        """The mean as a draw, with S = 1."""
        return Latent(self.shared.mean.unsqueeze(0), {name: q.mean.unsqueeze(0) for name, q in self.private.items()})

    def draw(self, samples: int) -> Latent:
        return Latent(self.shared.draw(samples), {name: q.draw(samples) for name, q in self.private.items()})

    def log_prob(self, latent: Latent) -> Float[Tensor, "S K B"]:
        """log q(z) + Σ_m log q(s_m)."""
        total = self.shared.log_prob(latent.shared)
        for name, q in self.private.items():
            total = total + q.log_prob(latent.private[name])
        return total


def kl(q: Shared, p: Shared) -> Float[Tensor, "*batch"]:
    """KL(q ‖ p) in closed form, summed over the dimensions.

    Normals: log σ_p/σ_q + (σ_q² + (μ_q − μ_p)²) / 2σ_p² − ½.
    Laplaces, with δ = |μ_q − μ_p|: log b_p/b_q + (b_q e^{−δ/b_q} + δ) / b_p − 1.
    """
    if isinstance(q, Normal) and isinstance(p, Normal):
        ratio = q.scale / p.scale
        return (0.5 * (ratio.square() + ((q.loc - p.loc) / p.scale).square() - 1) - ratio.log()).sum(-1)
    if isinstance(q, Laplace) and isinstance(p, Laplace):
        distance = (q.loc - p.loc).abs()
        return ((p.scale / q.scale).log() + (q.scale * torch.exp(-distance / q.scale) + distance) / p.scale - 1).sum(-1)
    raise TypeError(
        f"kl(q, p): no closed form for {type(q).__name__} against {type(p).__name__}; use two of one kind, or the mean of "
        "q.log_prob(z) − p.log_prob(z) over draws of q."
    )


def log_mean_exp(x: Tensor, dim: int = 0) -> Tensor:
    """log (1/n) Σ exp x along an axis."""
    return torch.logsumexp(x, dim) - math.log(x.shape[dim])
