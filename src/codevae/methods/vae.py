"""The unimodal VAE: the reference for what one modality can do alone.

L(x) = w log p(x|z) − β KL(q(z|x) ‖ p(z)),   z ~ q(z|x)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codevae.consensus import PoE
from codevae.distributions import kl
from codevae.errors import InputError, listed
from codevae.methods.base import Bound, Method, counted, positive
from codevae.subset_weights import Table
from codevae.subsets import all_subsets


class VAE(Method):
    """The variational autoencoder of Kingma and Welling, for exactly one modality.

    Arguments:
        beta: β, the weight of the KL.
        weight: w, the weight of the reconstruction.
        samples: draws of z per step.
    """

    def __init__(self, beta: float = 1.0, weight: float = 1.0, samples: int = 1):
        super().__init__()
        positive("VAE", beta=beta, weight=weight)
        counted(self, samples=samples)
        self.beta, self.weight, self.samples = beta, weight, samples
        self.consensus = PoE()

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "VAE":
        if len(names) != 1 or any(private_dims.values()):
            raise InputError(f"VAE: expected one modality without private latents, got {listed(names)}; use CoDEVAE for several.")
        super().build(names, latent_dim, private_dims, sizes)
        self.subset_weights = Table(1, learned=False)
        return self

    def bound(self, model: Any, batch: Any) -> Bound:
        plan = all_subsets(batch.observed)
        q = self.posterior(model.encode(batch), plan.mask)
        log_px = model.log_prob(batch, q.draw(self.samples)).mean(0)
        divergence = kl(q.shared, self.prior.distribution())
        value = plan.sum(self.subset_weights, self.weight * log_px.sum(-1) - self.beta * divergence)
        return Bound(value, torch.zeros_like(value.sum()), log_px, divergence, plan)
