"""MVAE (Wu and Goodman, NeurIPS 2018): products of experts, trained on the full set, on each modality alone, and on random subsets.

    L(x) = Σ_m w_m E_{q(z|x_O)} log p(x_m|z) − β KL(q(z|x_O) ‖ p)  +  Σ_{m∈O} [ E_{q(z|x_m)} log p(x_m|z) − β KL(q(z|x_m) ‖ p) ]
         + Σ_{random k⊆O} [ Σ_{m∈k} w_m E_{q(z|x_k)} log p(x_m|z) − β KL(q(z|x_k) ‖ p) ]

A sum of bounds, each on what its subset holds: with w = 1 and β = 1 it is below log p(x_O) + Σ_m log p(x_m) + …, and is no bound on
log p(x_O) itself. Every product has the prior for one more expert. The terms of one modality have no w_m, as in the published code.
Where a data point has one modality, the full set and that modality are one subset, and count once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codevae import subsets
from codevae.consensus import CoDE, PoE
from codevae.distributions import kl
from codevae.methods.base import Bound, Method, counted, positive
from codevae.subsets import Plan


class MVAE(Method):
    """The multimodal VAE with products of experts and sub-sampled training.

    Arguments:
        beta: β, the weight of the KL.
        modality_weights: w_m: "by_size", "by_root_size", a number, or a dict by name.
        random_subsets: how many further subsets of each data point are drawn in a step.
        consensus: of a subset's experts (default: `PoE(prior_expert=True)`), such as `CoDE(rho=0.4, prior_expert=True)`.
        samples: draws of z per subset and step.
    """

    def __init__(
        self,
        beta: float = 1.0,
        modality_weights: float | str | dict[str, float] = 1.0,
        random_subsets: int = 0,
        consensus: CoDE | None = None,
        samples: int = 1,
    ):
        super().__init__()
        positive("MVAE", beta=beta, random_subsets=random_subsets)
        counted(self, samples=samples)
        self.beta, self.weights, self.random_subsets, self.samples = beta, modality_weights, random_subsets, samples
        self.consensus: CoDE = PoE(prior_expert=True) if consensus is None else consensus

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "MVAE":
        self.shared_only(private_dims)
        super().build(names, latent_dim, private_dims, sizes)
        self.weigh(self.weights, sizes)
        self.consensus.build(len(names), latent_dim)
        return self

    def plan(self, batch: Any) -> Plan:
        """Rows: all that is observed, each modality alone, and the drawn subsets."""
        observed = batch.observed
        full, single = observed.unsqueeze(0), subsets.singletons(observed)
        drawn = subsets.draw_uniform(observed, self.random_subsets)
        several = observed.sum(-1) > 1  # else the full set is that one modality
        share = torch.cat([full.any(-1), single.any(-1) & several, drawn.any(-1)])
        return Plan(torch.cat([full, single, drawn]), share.to(torch.get_default_dtype()), observed)

    def bound(self, model: Any, batch: Any) -> Bound:
        plan, modalities = self.plan(batch), len(self.names)
        q = self.posterior(model.encode(batch), plan.mask)
        log_px = model.log_prob(batch, q.draw(self.samples)).mean(0)
        divergence = kl(q.shared, self.prior.distribution())
        weights = self.modality_weights.repeat(len(plan.mask), 1)
        weights[1 : 1 + modalities] = 1.0
        # each row explains what it holds
        per_row = (torch.where(plan.mask, log_px, 0.0) * weights.unsqueeze(1)).sum(-1) - self.beta * divergence
        value = torch.where(plan.share > 0, per_row, 0.0).sum(0)
        return Bound(value, value.new_zeros(()), log_px, divergence, plan)
