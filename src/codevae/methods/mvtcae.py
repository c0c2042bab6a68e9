"""MVTCAE (Hwang et al., NeurIPS 2021): a product of experts that stays near each of its experts, by total correlation.

    L(x) = (n−α)/n Σ_{m∈O} w_m E_q log p(x_m|z) − β [ α/n Σ_{m∈O} KL(q ‖ q_m) + (1−α) KL(q ‖ p) ],   q = q(z|x_O), n = |O|

In the paper n = M; with modalities missing it is what is there. One modality gives (1−α) times the VAE's bound.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codevae.consensus import CoDE, PoE
from codevae.distributions import Normal, kl
from codevae.errors import InputError
from codevae.methods.base import Bound, Method, counted, positive
from codevae.subsets import Plan


class MVTCAE(Method):
    """The multi-view total correlation autoencoder.

    Arguments:
        alpha: α, how much of the regularisation goes to the experts, and how much to the prior; from 0 to 1.
        beta: β, the weight of the regularisation.
        modality_weights: w_m: "by_size", "by_root_size", a number, or a dict by name.
        consensus: of the experts (default: `PoE()`), such as `CoDE(rho=0.4)`.
        samples: draws of z per step.
    """

    def __init__(
        self,
        alpha: float = 5 / 6,
        beta: float = 2.5,
        modality_weights: float | str | dict[str, float] = 1.0,
        consensus: CoDE | None = None,
        samples: int = 1,
    ):
        super().__init__()
        positive("MVTCAE", alpha=alpha, beta=beta)
        if alpha > 1:
            raise InputError(f"MVTCAE(alpha): expected a number from 0 to 1, got {alpha}.")
        counted(self, samples=samples)
        self.alpha, self.beta, self.weights, self.samples = alpha, beta, modality_weights, samples
        self.consensus: CoDE = PoE() if consensus is None else consensus

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "MVTCAE":
        self.shared_only(private_dims)
        super().build(names, latent_dim, private_dims, sizes)
        self.weigh(self.weights, sizes)
        self.consensus.build(len(names), latent_dim)
        return self

    def bound(self, model: Any, batch: Any) -> Bound:
        experts, observed = model.encode(batch), batch.observed
        plan = Plan(observed.unsqueeze(0), observed.any(-1).unsqueeze(0).to(torch.get_default_dtype()), observed)
        q = self.posterior(experts, plan.mask)
        log_px = model.log_prob(batch, q.draw(self.samples)).mean(0)
        divergence = kl(q.shared, self.prior.distribution())
        # an expert that is not there is put in q's own place, where its divergence is zero
        there, n = observed.mT.unsqueeze(-1), observed.sum(-1).clamp(min=1)
        beside = Normal(
            torch.where(there, experts.shared.loc, q.shared.mean), torch.where(there, experts.shared.scale, q.shared.variance.sqrt())
        )
        to_experts = kl(q.shared, beside).sum(0)
        reconstruction = (n - self.alpha) / n * (log_px @ self.modality_weights)[0]
        value = reconstruction - self.beta * (self.alpha / n * to_experts + (1 - self.alpha) * divergence[0])
        return Bound(torch.where(plan.points, value, 0.0), value.new_zeros(()), log_px, divergence, plan)
