"""MoPoE-VAE (Sutter, Daunhawer and Vogt, ICLR 2021): a uniform mixture of the products of experts of every subset.

    L(x) = 1/K_O Σ_{k⊆O} [ Σ_m w_m E_{q(z|x_k)} log p(x_m|z) − β KL(q(z|x_k) ‖ p(z)) ]

The mixture is summed exactly, where the published code gives every subset its own block of the batch. Seen so, the bound is CoDE-VAE's
with a uniform π, without its entropy and with products of experts; the prior expert takes part in the product of all M alone, as in the
published code.
"""

from collections.abc import Mapping, Sequence

import torch

from codevae.axes import Bool, Tensor
from codevae.consensus import CoDE, PoE
from codevae.distributions import Laplace, Normal, Shared
from codevae.methods.codevae import CoDEVAE


class MoPoE(CoDEVAE):
    """The mixture-of-products-of-experts VAE. The posterior given a subset is the product of its experts.

    Arguments:
        beta: β, the weight of the KL.
        modality_weights: w_m: "by_size", "by_root_size", a number, or a dict by name.
        consensus: of a subset's experts (default: `PoE()`), such as `CoDE(rho=0.4)`.
        subsets: how many subsets of each data point a step trains: "all", a number drawn at random, or "auto" as in `CoDEVAE`.
        samples: draws of z per subset and step.
    """

    def __init__(
        self,
        beta: float = 1.0,
        modality_weights: float | str | dict[str, float] = 1.0,
        consensus: CoDE | None = None,
        subsets: int | str = "auto",
        samples: int = 1,
    ):
        super().__init__(
            rho=0.0, beta=beta, omega=0.0, learn_weights=False, modality_weights=modality_weights, subsets=subsets, samples=samples
        )
        self.consensus = PoE() if consensus is None else consensus

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "MoPoE":
        self.shared_only(private_dims)
        super().build(names, latent_dim, private_dims, sizes)
        return self

    def aggregate(self, experts: Normal | Laplace, mask: Bool[Tensor, "K B M"]) -> Shared:
        q = super().aggregate(experts, mask)
        everything = mask.all(-1, keepdim=True)
        a = q.variance.reciprocal()
        return Normal(torch.where(everything, q.mean * a / (a + 1), q.mean), torch.where(everything, (a + 1).rsqrt(), a.rsqrt()))
