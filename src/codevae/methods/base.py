"""The frame of a method: what an expert is, how experts become posteriors, what is maximised.

A method states six things, each with a default that most keep: `expert`, `posterior` (by `aggregate`), `prior`,
`absent_private`, `bound`, and the hooks `at` and `after`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from codevae.axes import Bool, Float, Tensor
from codevae.distributions import Joint, Laplace, Normal, Shared
from codevae.errors import InputError, listed
from codevae.priors import Prior, StandardNormal
from codevae.record import Recorded
from codevae.subsets import Plan


@dataclass(frozen=True)
class Experts:
    """What every modality says on its own: q(z | x_m) as (M, B, D), and q(s_m | x_m) as (B, P) where it has private latents."""

    shared: Normal | Laplace
    private: dict[str, Normal | Laplace]


class Bound(NamedTuple):
    """What is maximised, and the parts it is made of.

    Arguments:
        value: (B,) the bound of each data point, 0 for one that has nothing; its gradient may be an estimator's own.
        bonus: what belongs to the batch rather than to a data point (the entropy of π).
        reconstruction: (K, B, M) log p(x_m | z) of every trained subset, unweighted, averaged over the draws.
        divergence: (K, B) KL of every trained subset, unweighted.
        plan: which subsets were trained, and with what share.
    """

    value: Float[Tensor, "B"]
    bonus: Float[Tensor, ""]
    reconstruction: Float[Tensor, "K B M"]
    divergence: Float[Tensor, "K B"]
    plan: Plan

    def loss(self, points: Tensor | None = None) -> Float[Tensor, ""]:
        """−(Σ value + n · bonus) / n, n the data points that have anything: the one place where the sign turns.

        With several processes `points` is the mean of n over them, so that the mean of their losses is that of one process.
        """
        here = self.plan.points.sum()
        return -(self.value.sum() + here * self.bonus) / (here if points is None else points).clamp(min=1)


class Method(Recorded, nn.Module):
    """The method: how experts are aggregated, and what is maximised.

    The constructor stores arguments; `build` makes what is learned.
    """

    consensus: nn.Module
    modality_weights: Tensor

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "Method":
        """Called once by the model, on its own copy of the method.

        Arguments:
            names: of the modalities.
            latent_dim: D.
            private_dims: P of each modality.
            sizes: how many values each modality has.
        """
        self.names = list(names)
        self.prior = self.make_prior().build(latent_dim)
        self.private_priors = nn.ModuleDict(
            {str(m): self.private_prior().build(private_dims[n]) for m, n in enumerate(names) if private_dims[n]}
        )
        return self

    def shared_only(self, private_dims: Mapping[str, int]) -> None:
        """Refuse private latents, for a method whose paper has none."""
        if any(private_dims.values()):
            asked = listed(name for name, width in private_dims.items() if width)
            raise InputError(
                f"{type(self).__name__}: it has no private latents, but {asked} has private_dim > 0; use CoDEVAE or MMVAEPlus."
            )

    def weigh(self, weights: Any, sizes: Mapping[str, int]) -> None:
        """Make w_m, the buffer `modality_weights`, and record what it became."""
        resolved = resolve_weights(weights, self.names, sizes)
        self.note("modality_weights", resolved)
        self.register_buffer("modality_weights", torch.tensor([resolved[name] for name in self.names]), persistent=False)

    def make_prior(self) -> Prior:
        """p(z), before it is built."""
        return StandardNormal()

    def private_prior(self) -> Prior:
        """p(s_m) of private latents, before it is built: of the kind of p(z)."""
        return self.make_prior()

    def joint_prior(self) -> Joint:
        """p(z) Π_m p(s_m), of (1, 1, ·)."""
        private = {self.names[int(m)]: prior.distribution() for m, prior in self.private_priors.items()}  # type: ignore[operator]
        return Joint(self.prior.distribution(), private)

    def expert(self, loc: Tensor, raw_scale: Tensor) -> Normal | Laplace:
        """The encoder's raw numbers → an expert: a normal with log σ held between −7 and 2.

        An expert of σ = e² is as good as absent. The gradient passes the clamp as if it were not there: a data point whose σ is out of
        bounds, which the KL would bring back, is not stuck outside.
        """
        held = raw_scale.detach().clamp(-7.0, 2.0)
        return Normal(loc, (held + (raw_scale - raw_scale.detach())).exp())  # the bracket is exactly 0, however large the raw number

    def aggregate(self, experts: Normal | Laplace, mask: Bool[Tensor, "K B M"]) -> Shared:
        """Experts (M, B, D) and subsets → q(z | x_k) of (K, B, D)."""
        return self.consensus(experts, mask)

    def posterior(self, experts: Experts, mask: Bool[Tensor, "K B M"], own: Bool[Tensor, "K B M"] | None = None) -> Joint:
        """q(z | x_k) with the private latents: q(s_m | x_m) where `own` (default: the subset itself) holds m, else `absent_private`."""
        own = mask if own is None else own
        private: dict[str, Normal | Laplace] = {}
        for name, q in experts.private.items():
            held, absent = own[..., self.names.index(name)].unsqueeze(-1), self.absent_private(name)
            private[name] = type(q)(torch.where(held, q.loc, absent.loc), torch.where(held, q.scale, absent.scale))
        return Joint(self.aggregate(experts.shared, mask), private)

    def absent_private(self, name: str) -> Normal | Laplace:
        """The distribution of the private latents of a modality that is not given: p(s_m)."""
        return self.joint_prior().private[name]

    def bound(self, model: Any, batch: Any) -> Bound:
        """The bound of a batch. `model` offers `encode(batch)` and `log_prob(batch, latent)`."""
        raise NotImplementedError

    def facts(self, model: Any, batch: Any) -> dict[str, float]:
        """Numbers worth a column in the history, seen on some data points at every evaluation."""
        return {}

    def at(self, epoch: int) -> None:
        """Called before an epoch: schedules."""

    def after(self, model: Any, data: Any) -> None:
        """Called after training: what is settled then."""


def positive(method: str, **arguments: Any) -> None:
    """Refuse a setting that must be a number of at least 0."""
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InputError(f"{method}({name}): expected a number of at least 0, got {value!r}.")


def counted(method: Method, **arguments: Any) -> None:
    """Refuse a setting that must be a whole number of at least 1."""
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{type(method).__name__}({name}): expected at least 1, got {value!r}.")


def resolve_weights(weights: Any, names: Sequence[str], sizes: Mapping[str, int]) -> dict[str, float]:
    """w_m as a dict: "by_size" (the largest modality's size over this one's), "by_root_size" (its square root), one number for
    all, or given by name."""
    if isinstance(weights, str) and weights in ("by_size", "by_root_size"):
        ratio = {name: max(sizes.values()) / sizes[name] for name in names}
        return {name: value if weights == "by_size" else value**0.5 for name, value in ratio.items()}
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            raise InputError(f"modality_weights: expected a weight for each of {listed(names)}, got {listed(weights)}.")
        resolved = {name: float(weights[name]) for name in names}
    elif isinstance(weights, int | float) and not isinstance(weights, bool):
        resolved = dict.fromkeys(names, float(weights))
    else:
        raise InputError(f"modality_weights: expected 'by_size', 'by_root_size', a number or a dict by name, got {weights!r}.")
    if not all(0 < value < float("inf") for value in resolved.values()):
        raise InputError(
            f"modality_weights: expected positive numbers, got {resolved}; leave a modality out of the model instead of weighing it 0."
        )
    return resolved
