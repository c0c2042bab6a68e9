"""MMVAE+ (Palumbo, Daunhawer and Vogt, ICLR 2023): MMVAE with private latents that cannot be a way around the shared ones.

    ℓ_rs = Σ_m w_m log p(x_m|z_rs, w_m) + β [ log p(z_rs) + log p(w_r) − log 1/|O| Σ_{j∈O} q_j(z_rs) − log q_r(w_r|x_r) ]

with z_rs ~ q_r and w_r ~ q_r(w|x_r); for m ≠ r the private w_m comes from a learned auxiliary prior r_m, so that x_m has to be explained by
z. At test time, for a modality that is not given, w_m comes from p(w). With β = w = 1 and r_m = p it is a bound on log p(x); with r_m ≠ p
each r has a model of its own (w_r ~ p, w_m ~ r_m for m ≠ r), and L may exceed log p(x).
"""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from codevae.axes import Bool, Tensor
from codevae.errors import InputError
from codevae.methods.base import Experts
from codevae.methods.mmvae import MMVAE


class MMVAEPlus(MMVAE):
    """The mixture-of-experts multimodal VAE with private latents and auxiliary priors; every modality needs `private_dim`.

    Arguments:
        beta: β, the weight of the log-ratios of prior and posterior.
        modality_weights: w_m: "by_size", "by_root_size", a number, or a dict by name.
        samples: S, importance samples per expert and step.
        estimator: "iwae", "dreg" or "elbo", as for `MMVAE`; the paper's S = 1 makes them one.
    """

    def __init__(
        self,
        beta: float = 1.0,
        modality_weights: float | str | dict[str, float] = 1.0,
        samples: int = 1,
        estimator: str = "iwae",
    ):
        super().__init__(beta, modality_weights, samples, estimator)

    def build(self, names: Sequence[str], latent_dim: int, private_dims: Mapping[str, int], sizes: Mapping[str, int]) -> "MMVAEPlus":
        super().build(names, latent_dim, private_dims, sizes)
        self.auxiliary = nn.ModuleList(self.private_prior().build(private_dims[name]) for name in names)
        return self

    def check_private(self, private_dims: Mapping[str, int]) -> None:
        without = [name for name, width in private_dims.items() if not width]
        if without:
            raise InputError(
                f"{type(self).__name__}: every modality needs private latents, and {', '.join(map(repr, without))} has none; give "
                "Modality(private_dim=…), on the command line --private NAME=WIDTH, or use MMVAE."
            )

    def private_draws(self, experts: Experts, rows: Bool[Tensor, "K B M"]) -> tuple[dict[str, Tensor], Tensor]:
        draws, gain = {}, torch.zeros((), device=rows.device)
        for m, (name, prior) in enumerate(self.joint_prior().private.items()):
            q, other, held = experts.private[name], self.auxiliary[m].distribution(), rows[..., m]  # type: ignore[operator]
            shape = (*rows.shape[:2], q.loc.shape[-1])
            own = type(q)(q.loc.expand(shape), q.scale.expand(shape)).draw(self.samples)
            aside = type(q)(other.loc.expand(shape), other.scale.expand(shape)).draw(self.samples)
            draws[name] = torch.where(held.unsqueeze(-1), own, aside)
            gain = gain + torch.where(held, prior.log_prob(draws[name]) - q.log_prob(draws[name]), 0.0)
        return draws, gain
