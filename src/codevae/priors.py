"""p(z) inside a bound, for the shared latents and for each modality's private ones."""

import torch
from torch import nn

from codevae.axes import Tensor
from codevae.distributions import Laplace, Normal
from codevae.record import Recorded


class Prior(Recorded, nn.Module):
    """A distribution over the latent space that belongs to the generative model; `build` makes what is learned."""

    zero: Tensor

    def build(self, latent_dim: int) -> "Prior":
        self.latent_dim = latent_dim
        self.register_buffer("zero", torch.zeros(1, 1, latent_dim), persistent=False)
        return self

    def distribution(self) -> Normal | Laplace:
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
