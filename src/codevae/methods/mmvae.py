"""MMVAE (Shi, Siddharth, Paige and Torr, NeurIPS 2019): a mixture of experts, with importance samples from every one of them.

    L(x) = 1/|O| Σ_{r∈O} log 1/S Σ_s exp ℓ_rs,      z_rs ~ q_r
    ℓ_rs = Σ_m w_m log p(x_m|z_rs) + β [log p(z_rs) − log 1/|O| Σ_{j∈O} q_j(z_rs)]

the "looser" bound of the paper. Experts and prior are Laplace; an expert's scales are a softmax over the dimensions, times D. Three
estimators of the bound, or of its gradient:

    "iwae"   L as above, and its own gradient
    "dreg"   L as above; the densities q_j are held fixed, and the gradient on z is multiplied once more by the normalised weights of the
             samples (by (1−β) + β · weight for β ≠ 1). It is L's own gradient in expectation for S = 1 or one modality; for a mixture and
             S > 1 it is the approximation that was published
    "elbo"   the mean over s instead of the log-mean-exp
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codevae import subsets
from codevae.axes import Bool, Float, Tensor
from codevae.distributions import Laplace, Latent, Mixture, Normal, Shared, log_mean_exp
from codevae.errors import InputError
from codevae.methods.base import Bound, Experts, Method, counted, positive
from codevae.methods.mmjsd import with_prior
from codevae.priors import LaplacePrior, Prior
from codevae.subsets import Plan


class MMVAE(Method):
    """The mixture-of-experts multimodal VAE.

    Arguments:
        beta: β, the weight of log p(z) − log q(z).
        modality_weights: w_m: "by_size", "by_root_size", a number, or a dict by name.
        samples: S, importance samples per expert and step.
        estimator: "dreg", "iwae" or "elbo", as above.
    """

    def __init__(
        self,
        beta: float = 1.0,
        modality_weights: float | str | dict[str, float] = 1.0,
        samples: int = 30,
        estimator: str = "dreg",
    ):
        super().__init__()
        positive(type(self).__name__, beta=beta)
        counted(self, samples=samples)
        if estimator not in ("dreg", "iwae", "elbo"):
            raise InputError(f"{type(self).__name__}(estimator): expected 'dreg', 'iwae' or 'elbo', got {estimator!r}.")
        self.beta, self.weights, self.samples, self.estimator = beta, modality_weights, samples, estimator

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "MMVAE":
        self.check_private(private_dims)
        super().build(names, latent_dim, private_dims, sizes)
        self.weigh(self.weights, sizes)
        return self

    def check_private(self, private_dims: Mapping[str, int]) -> None:
        """Which private latents the method can have."""
        self.shared_only(private_dims)

    def make_prior(self) -> Prior:
        return LaplacePrior()

    def expert(self, loc: Tensor, raw_scale: Tensor) -> Normal | Laplace:
        return Laplace(loc, loc.shape[-1] * raw_scale.softmax(-1) + 1e-6)

    def aggregate(self, experts: Normal | Laplace, mask: Bool[Tensor, "K B M"]) -> Shared:
        return with_prior(experts, self.prior.distribution(), mask)

    def bound(self, model: Any, batch: Any) -> Bound:
        rows = subsets.singletons(batch.observed)  # (K,B,M): row r holds modality r alone
        experts, applies = model.encode(batch), rows.any(-1)
        plan = Plan(rows, (applies / batch.observed.sum(-1).clamp(min=1)).to(torch.get_default_dtype()), batch.observed)
        q = with_prior(experts.shared, self.prior.distribution(), batch.observed.expand_as(rows))
        z = q.each(self.samples)[:, : len(rows)]
        private, gain = self.private_draws(experts, rows)
        density = _detached(q) if self.estimator == "dreg" else q
        gain = gain + self.prior.distribution().log_prob(z) - density.log_prob(z)
        log_px = model.log_prob(batch, Latent(z, private))  # (S,K,B,M)
        log_weight = log_px @ self.modality_weights + self.beta * gain  # ℓ, (S,K,B)
        value = (plan.share * torch.where(applies, self._reduce(log_weight, z), 0.0)).sum(0)
        return Bound(value, value.new_zeros(()), log_px.mean(0), -gain.mean(0), plan)

    def private_draws(self, experts: Experts, rows: Bool[Tensor, "K B M"]) -> tuple[dict[str, Tensor], Any]:
        """Draws of private latents (S, K, B, P), and log p − log q of them, where a method has any."""
        return {}, 0.0

    def _reduce(self, log_weight: Float[Tensor, "S K B"], z: Float[Tensor, "S K B D"]) -> Float[Tensor, "K B"]:
        """Over the samples, as the estimator says."""
        if self.estimator == "elbo":
            return log_weight.mean(0)
        if self.estimator == "dreg" and z.requires_grad:
            again = (1 - self.beta) + self.beta * log_weight.detach().softmax(0).unsqueeze(-1)
            z.register_hook(lambda gradient: gradient * again)
        return log_mean_exp(log_weight)


def _detached(q: Mixture) -> Mixture:
    """The same mixture, through whose parameters no gradient flows."""
    parts = q.components
    return Mixture(type(parts)(parts.loc.detach(), parts.scale.detach()), q.log_weights.detach())
