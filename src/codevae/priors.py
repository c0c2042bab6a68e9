"""p(z) inside a bound, for the shared latents and for each modality's private ones."""

import math
from typing import Any

import torch
from torch import nn

from codevae.axes import Tensor
from codevae.distributions import Laplace, Mixture, Normal
from codevae.record import Recorded


class Prior(Recorded, nn.Module):
    """A distribution over the latent space that belongs to the generative model; `build` makes what is learned."""

    zero: Tensor

    def build(self, latent_dim: int) -> "Prior":
        self.latent_dim = latent_dim
        self.register_buffer("zero", torch.zeros(1, 1, latent_dim), persistent=False)
        return self

    def distribution(self) -> Any:
        """p(z) of (1, 1, D), to broadcast over subsets and data points."""
        raise NotImplementedError


class StandardNormal(Prior):
    """p(z) = N(0, I)."""

    def distribution(self) -> Normal:
        return Normal(self.zero, torch.ones_like(self.zero))


class LaplacePrior(Prior):
    """p(z) = Laplace(0, b) with scales of mean one: b = D · softmax(v), learned or equal (MMVAE).

    Arguments:
        learned: whether the dimensions may take different scales.
    """

    def __init__(self, learned: bool = True):
        super().__init__()
        self.learned = learned

    def build(self, latent_dim: int) -> "Prior":
        super().build(latent_dim)
        self.logits = nn.Parameter(torch.zeros(latent_dim), requires_grad=self.learned)
        return self

    def distribution(self) -> Laplace:
        return Laplace(self.zero, self.latent_dim * torch.softmax(self.logits, -1).expand_as(self.zero))


class LaplaceMixture(Prior):
    """p(z) = Σ_c π_c Laplace(z; μ_c, 1): clusters, learned with everything else (CMVAE).

    Arguments:
        clusters: C, how many there are before pruning.
    """

    alive: torch.Tensor

    def __init__(self, clusters: int = 40):
        super().__init__()
        self.clusters = clusters

    def build(self, latent_dim: int) -> "Prior":
        super().build(latent_dim)
        self.logits = nn.Parameter(torch.zeros(self.clusters))
        self.centers = nn.Parameter(torch.randn(self.clusters, latent_dim))
        self.register_buffer("alive", torch.ones(self.clusters, dtype=torch.bool))
        return self

    def distribution(self) -> Mixture:
        log_weights = self.logits.masked_fill(~self.alive, -torch.inf).log_softmax(-1)
        return Mixture(Laplace(self.centers.unsqueeze(1), torch.ones_like(self.centers.unsqueeze(1))), log_weights.reshape(1, 1, -1))

    @torch.no_grad()
    def shares(self, z: torch.Tensor) -> torch.Tensor:
        """q(c | z) of codes (N, D), in proportion to π_c p(z | c): (N, C)."""
        p = self.distribution()
        return (p.components.log_prob(z.unsqueeze(0)).mT + p.log_weights[0]).softmax(-1)

    @torch.no_grad()
    def prune(self, z: torch.Tensor) -> None:
        """Keep the n heaviest clusters for which codes are told apart best: least mean entropy of q(c | z), over log n.

        A cluster that no code has for its likeliest goes first: it would add to log n and to no entropy. Of equally good n the largest.
        """
        shares = self.shares(z)
        used = shares.argmax(1).bincount(minlength=self.clusters) > 0
        order = torch.where(used, shares.mean(0), shares.mean(0) - 1).argsort(descending=True)
        scores = {}
        for n in range(2, max(2, int(used.sum())) + 1):
            self._keep(order[:n])
            scores[n] = round(float(torch.special.entr(self.shares(z)).sum(-1).mean()) / math.log(n), 6)
        self._keep(order[: min(scores, key=lambda n: (scores[n], -n))])

    def _keep(self, clusters: torch.Tensor) -> None:
        self.alive.zero_()
        self.alive[clusters] = True
