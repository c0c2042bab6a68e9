"""CoDE-VAE: the consensus of dependent experts over every subset of the modalities.

    L_k(x) = Σ_{m∈O} w_m E_{q(z|x_k)} log p(x_m|z) − β KL(q(z|x_k) ‖ p(z))
    L(x)   = Σ_{k⊆O} π̃_k L_k(x) + ω [H(π̃) − log K_O]  ≤  log p(x_O)      for w = 1, β ≥ 1, ω ≥ 0

O is what a data point has, K_O = 2^|O| − 1, and π̃ = softmax of u over the subsets of O. For complete data this is Lemma 3 of the
paper, with the constant log K inside the bracket, where it keeps L a bound whatever ω.

Private latents (z, s_m): with `private="own"` every s_m is drawn from its own q(s_m|x_m), and its KL counts once; with "prior",
s_m ~ p(s_m) where m ∉ k, and the KL counts where m ∈ k. Both are bounds. "released" weighs the KL by π̃ of the subset {m}, as the
released code does; that is not a bound.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from codevae import subsets
from codevae.axes import Float, Tensor
from codevae.consensus import CoDE
from codevae.distributions import kl
from codevae.errors import InputError
from codevae.methods.base import Bound, Experts, Method, counted, positive
from codevae.subset_weights import FORMS, SubsetWeights
from codevae.subsets import Plan

TOLERATED = 0.5
"""A larger share of consensus means with a negative weight is warned about, once."""


class NegativeWeights(UserWarning):
    """ρ is so large that experts are often subtracted rather than averaged."""


class CoDEVAE(Method):
    """CoDE-VAE (Lemma 3, and its extension to missing modalities, drawn subsets and private latents).

    Arguments:
        rho: correlation of the experts' errors, as in `CoDE`; the paper chooses it among 0, 0.2, 0.4, 0.6, 0.8.
        beta: β, the weight of the KL.
        omega: ω, the weight of the entropy of π, a temperature in nats: the best π is softmax(L_k / ω). "auto" follows the spread
            of the subsets' bounds, whatever the size of the data; the paper takes 1000.
        subset_weights: π as a "table", "by_size" or "by_modality"; "auto" is a table up to ten modalities.
        learn_weights: whether π is trained; if not it stays uniform.
        modality_weights: w_m: "by_size", "by_root_size", a number, or a dict by name.
        subsets: how many subsets of each data point a step trains: "all", or a number drawn at random; "auto" is all up to
            three modalities, else 2.
        draw: how they are drawn: "uniform" (without replacement, balanced over the batch), or "weighted" (half by π, half
            uniformly), better where π is far from uniform; "auto" is uniform up to ten modalities.
        samples: draws of z per subset and step.
        private: where private latents are drawn in training: "own" (from their expert, always), "prior" (only where the subset holds the
            modality, else from the prior), or "released" (as the released code weighs them; not a bound).
        private_beta: the weight of the private KL; None is β.
    """

    consensus: CoDE
    subset_weights: SubsetWeights
    level: Tensor
    levels: Tensor

    def __init__(
        self,
        rho: float | str | list = "learned",
        beta: float = 1.0,
        omega: float | str = "auto",
        subset_weights: str = "auto",
        learn_weights: bool = True,
        modality_weights: float | str | dict[str, float] = 1.0,
        subsets: int | str = "auto",
        draw: str = "auto",
        samples: int = 1,
        private: str = "own",
        private_beta: float | None = None,
    ):
        super().__init__()
        positive(type(self).__name__, beta=beta, omega=0.0 if omega == "auto" else omega, private_beta=private_beta or 0.0)
        _among(self, "subset_weights", subset_weights, ("auto", *FORMS))
        _among(self, "draw", draw, ("auto", "uniform", "weighted"))
        _among(self, "private", private, ("own", "prior", "released"))
        if isinstance(subsets, bool) or not (subsets in ("all", "auto") or (isinstance(subsets, int) and subsets >= 1)):
            raise InputError(f"{type(self).__name__}(subsets): expected 'all', 'auto' or a number of at least 1, got {subsets!r}.")
        counted(self, samples=samples)
        self.rho, self.beta, self.omega, self.form, self.learn_weights = rho, beta, omega, subset_weights, learn_weights
        self.weights, self.subsets, self.draw, self.samples = modality_weights, subsets, draw, samples
        self.private, self.private_beta = private, private_beta
        self.consensus, self.warned = CoDE(rho), False

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "CoDEVAE":
        super().build(names, latent_dim, private_dims, sizes)
        modalities, few = len(names), len(names) <= subsets.MOST
        self._settle(modalities, few)
        self.consensus.build(modalities, latent_dim)
        self.subset_weights = FORMS[self.form](modalities, self.learn_weights and modalities > 1)
        self.weigh(self.weights, sizes)
        self.register_buffer("level", torch.zeros(2))  # running mean of L, and the mass behind it: the baseline of drawn subsets
        if self.omega == "auto":
            self.register_buffer("levels", torch.zeros(2, 2**modalities - 1 if few else modalities))  # the same per subset, or size
        return self

    def _settle(self, modalities: int, few: bool) -> None:
        """Turn "auto" into what it means here, and refuse what cannot be."""
        self.form = ("table" if few else "by_modality") if self.form == "auto" else self.form
        chosen = ("all" if modalities <= 3 else 2) if self.subsets == "auto" else self.subsets
        draw = ("uniform" if few else "weighted") if self.draw == "auto" else self.draw
        self.settle(subsets=chosen, draw=draw)
        self.note("subset_weights", self.form)
        if few:
            return
        for name, value, wrong, instead in (
            ("subsets", chosen, "all", "subsets=2"),
            ("subset_weights", self.form, "table", "subset_weights='by_modality'"),
            ("draw", draw, "uniform", "draw='weighted'"),
        ):
            if value == wrong:
                asked = f"{type(self).__name__}({name}={wrong!r})"
                raise InputError(f"{asked}: {modalities} modalities have 2^{modalities} − 1 subsets; use {instead}.")

    def plan(self, batch: Any) -> Plan:
        """Which subsets this step trains, within what each data point has."""
        if self.subsets == "all":
            return subsets.all_subsets(batch.observed)
        if self.draw == "uniform":
            return subsets.drawn_subsets(batch.observed, int(self.subsets))
        return subsets.weighted_subsets(batch.observed, int(self.subsets), self.subset_weights)

    def bound(self, model: Any, batch: Any) -> Bound:
        experts = model.encode(batch)
        plan = self.plan(batch)
        own = None if self.private == "prior" else plan.observed.expand_as(plan.mask)
        q = self.posterior(experts, plan.mask, own)
        log_px = model.log_prob(batch, q.draw(self.samples)).mean(0)
        divergence = kl(q.shared, self.prior.distribution())
        # L_k = Σ_m w_m log p(x_m|z) − β KL(q_k ‖ p)
        per_subset = (log_px * self.modality_weights).sum(-1) - self.beta * divergence
        per_subset, outside = self._with_private(per_subset, experts, plan)
        # L = Σ_k π̃_k L_k + ω [H(π̃) − log K_O]
        value = plan.sum(self.subset_weights, per_subset, self._baseline()) - outside
        bonus = self._omega() * plan.entropy(self.subset_weights)
        if self.training:
            self._follow(value.detach() + outside.detach(), per_subset.detach(), plan)
        return Bound(value, bonus, log_px, divergence, plan)

    @torch.no_grad()
    def facts(self, model: Any, batch: Any) -> dict[str, float]:
        """ρ (its mean, off the diagonal) and the share of negative weights in the consensus of all that is observed."""
        rho = self.consensus.correlation()
        if rho.ndim >= 2:
            rho = rho[..., *torch.triu_indices(len(self.names), len(self.names), 1)]
        share = float(self.consensus.negative_share(model.encode(batch).shared, batch.observed.unsqueeze(0))[0])
        if share > TOLERATED and not self.warned:
            self.warned = True
            warnings.warn(
                f"{share:.0%} of the consensus means have an expert with a negative weight: ρ = {float(rho.mean()):.2g} is larger than the "
                "experts' differences in certainty allow, and means may leave their range; a smaller ρ, or rho='learned', mends it.",
                NegativeWeights,
                stacklevel=2,
            )
        return {"rho": float(rho.mean()) if len(self.names) > 1 else 0.0, "negative_weights": share}

    def _with_private(self, per_subset: Tensor, experts: Experts, plan: Plan) -> tuple[Tensor, Tensor]:
        """The private KLs: inside L_k for "prior", outside the sum over subsets otherwise."""
        outside = torch.zeros_like(per_subset[0])
        for name, q in experts.private.items():
            m, weight = self.names.index(name), self.beta if self.private_beta is None else self.private_beta
            divergence = kl(q, self.joint_prior().private[name])[0]
            divergence = weight * torch.where(plan.observed[:, m], divergence, 0.0)
            if self.private == "prior":
                per_subset = per_subset - torch.where(plan.mask[..., m], divergence, 0.0)
            elif self.private == "own":
                outside = outside + divergence
            else:
                alone = torch.nn.functional.one_hot(torch.full_like(plan.observed[:, 0], m, dtype=torch.long), len(self.names)).bool()
                log_weight = self.subset_weights.log_prob((alone & plan.observed).unsqueeze(0), plan.observed)[0]
                outside = outside + log_weight.exp() * divergence
        return per_subset, outside

    def _baseline(self) -> Float[Tensor, ""] | float:
        """c of `Plan.sum`: without drawing it changes nothing, so that it is left at 0."""
        return 0.0 if self.subsets == "all" else self.level[0] / self.level[1].clamp(min=1e-12)

    def _omega(self) -> Float[Tensor, ""] | float:
        """ω; "auto": the standard deviation over the subsets (above ten modalities, over their sizes) of the running mean of L_k."""
        if self.omega != "auto":
            return float(self.omega)
        known = self.levels[1] > 0
        means = self.levels[0] / self.levels[1].clamp(min=1e-12)
        number = known.sum().clamp(min=1)
        center = torch.where(known, means, 0.0).sum() / number
        return (torch.where(known, means - center, 0.0).square().sum() / number).sqrt().clamp(min=1e-3)

    @torch.no_grad()
    def _follow(self, value: Float[Tensor, "B"], per_subset: Float[Tensor, "K B"], plan: Plan) -> None:
        """Running means (0.99) of L and, for ω = "auto", of each L_k."""
        points = plan.points.to(value.dtype)
        some = points.sum().clamp(max=1)  # a batch that has nothing says nothing
        now = torch.stack([value.sum() / points.sum().clamp(min=1), some])
        self.level.lerp_(now, 0.01)
        if self.omega == "auto":
            applies = (plan.share > 0).to(value.dtype)
            few = plan.mask.shape[-1] <= subsets.MOST
            rows = ((subsets.pack(plan.mask) if few else plan.mask.sum(-1)) - 1).clamp(min=0).flatten()
            total = self.levels.new_zeros(self.levels.shape)
            total[0].index_add_(0, rows, torch.where(plan.share > 0, per_subset, 0.0).flatten())
            total[1].index_add_(0, rows, applies.flatten())
            mean = torch.stack([total[0] / total[1].clamp(min=1), torch.ones_like(total[1])])
            self.levels.copy_(torch.where(total[1] > 0, torch.lerp(self.levels, mean, 0.01), self.levels))


def _among(method: Method, name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{type(method).__name__}({name}): expected one of {', '.join(map(repr, choices))}, got {value!r}.")
