"""mmJSD (Sutter, Daunhawer and Vogt, NeurIPS 2020): a mixture of experts and the prior, held together by a Jensen-Shannon divergence.

    L(x) = Σ_m w_m E_{z ~ mixture} log p(x_m|z) − β 1/(n+1) Σ_{k∈O∪{p}} KL(q_k ‖ f),     n = |O|

The components q_k are the experts and the prior, all with weight 1/(n+1); f, the dynamic prior, is their normalised geometric mean. The
mixture is summed exactly over its components. Given a subset, two published readings of the posterior exist:

    "mixture"     1/|k| Σ_{m∈k} q(z|x_m)                                             (the code of MoPoE)
    "geometric"   the geometric mean of the subset's experts and the prior, the expert itself for one     (the code of MVTCAE)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codevae import subsets
from codevae.axes import Bool, Float, Tensor
from codevae.consensus import PoE
from codevae.distributions import Laplace, Latent, Mixture, Normal, Shared, kl
from codevae.errors import InputError
from codevae.methods.base import Bound, Method, counted, positive
from codevae.subsets import Plan


class MMJSD(Method):
    """The multimodal VAE with a Jensen-Shannon divergence and a dynamic prior.

    Arguments:
        beta: β, the weight of the divergence.
        modality_weights: w_m: "by_size", "by_root_size", a number, or a dict by name.
        subset_posterior: "mixture" or "geometric", as above.
        samples: draws of z per component and step.
    """

    def __init__(
        self,
        beta: float = 1.0,
        modality_weights: float | str | dict[str, float] = 1.0,
        subset_posterior: str = "mixture",
        samples: int = 1,
    ):
        super().__init__()
        positive("MMJSD", beta=beta)
        if subset_posterior not in ("mixture", "geometric"):
            raise InputError(f"MMJSD(subset_posterior): expected 'mixture' or 'geometric', got {subset_posterior!r}.")
        counted(self, samples=samples)
        self.beta, self.weights, self.subset_posterior, self.samples = beta, modality_weights, subset_posterior, samples

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "MMJSD":
        self.shared_only(private_dims)
        super().build(names, latent_dim, private_dims, sizes)
        self.weigh(self.weights, sizes)
        return self

    def aggregate(self, experts: Normal | Laplace, mask: Bool[Tensor, "K B M"]) -> Shared:
        if self.subset_posterior == "mixture":
            return with_prior(experts, self.prior.distribution(), mask)
        mean, single, alone = geometric_mean(experts, mask), PoE()(experts, mask), mask.sum(-1, keepdim=True) == 1
        return Normal(torch.where(alone, single.loc, mean.loc), torch.where(alone, single.scale, mean.scale))

    def bound(self, model: Any, batch: Any) -> Bound:
        experts, observed = model.encode(batch).shared, batch.observed
        rows = torch.cat([subsets.singletons(observed), torch.zeros_like(observed).unsqueeze(0)])  # every expert, and the prior
        applies = torch.cat([observed.mT, observed.any(-1).unsqueeze(0)])
        share = applies / (observed.sum(-1) + 1)
        plan = Plan(rows, share.to(torch.get_default_dtype()), observed)
        prior = self.prior.distribution()
        there = observed.mT.unsqueeze(-1)
        parts = Normal(
            torch.cat([torch.where(there, experts.loc, 0.0), prior.loc.expand_as(experts.loc[:1])]),
            torch.cat([torch.where(there, experts.scale, 1.0), prior.scale.expand_as(experts.scale[:1])]),
        )
        log_px = model.log_prob(batch, Latent(parts.draw(self.samples))).mean(0)
        divergence = kl(parts, geometric_mean(experts, observed.unsqueeze(0)))
        per_row = log_px @ self.modality_weights - self.beta * divergence
        value = (plan.share * torch.where(applies, per_row, 0.0)).sum(0)
        return Bound(value, value.new_zeros(()), log_px, divergence, plan)


def geometric_mean(experts: Normal | Laplace, mask: Bool[Tensor, "K B M"]) -> Normal:
    """∝ (p(z) Π_{m∈k} q_m(z))^{1/(|k|+1)} for p = N(0, I): precisions and precision-weighted means are averaged."""
    held, used = mask.to(experts.loc.dtype), mask.any(0).mT.unsqueeze(-1)
    precision = torch.where(used, experts.scale, 1.0).square().reciprocal()
    a = 1 + torch.einsum("kbm,mbd->kbd", held, precision)
    b: Float[Tensor, "K B D"] = torch.einsum("kbm,mbd->kbd", held, precision * torch.where(used, experts.loc, 0.0))
    return Normal(b / a, (a / (held.sum(-1, keepdim=True) + 1)).rsqrt())


def with_prior(experts: Normal | Laplace, prior: Shared, mask: Bool[Tensor, "K B M"]) -> Mixture:
    """The uniform mixture of each subset's experts; the prior's components, the last ones, stand in where a subset is empty."""
    used, size = mask.any(0).mT.unsqueeze(-1), mask.shape[1]
    last, share = (prior.components, prior.log_weights) if isinstance(prior, Mixture) else (prior, torch.zeros_like(prior.loc[..., :1]))
    loc = torch.cat([torch.where(used, experts.loc, 0.0), last.loc.expand(-1, size, -1)])
    scale = torch.cat([torch.where(used, experts.scale, 1.0), last.scale.expand(-1, size, -1)])
    number = mask.sum(-1, keepdim=True).to(loc.dtype)
    log_weights = [torch.where(mask, -number.clamp(min=1).log(), -torch.inf), torch.where(number == 0, share, -torch.inf)]
    return Mixture(type(experts)(loc, scale), torch.cat(log_weights, -1))
