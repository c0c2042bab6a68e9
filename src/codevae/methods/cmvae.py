"""CMVAE (Palumbo, Daunhawer, Vogt et al., ICLR 2024): MMVAE+ whose prior is a mixture of clusters.

    p(z) = Σ_c π_c Laplace(z; μ_c, 1),   q(c|z) ∝ π_c p(z|c)

The published bound sums over c with the exact q(c|z); for that q the sum is log Σ_c π_c p(z|c), so that the method is exactly MMVAE+ with
this prior. After training, clusters that only blur the others are pruned: of the n heaviest, those that leave the least normalised entropy
of q(c|z) stay. No official code is public; the pruning follows the paper's description. Its diffusion decoder is not part of it.
"""

from typing import Any

from codevae.errors import InputError
from codevae.methods.mmvaeplus import MMVAEPlus
from codevae.priors import LaplaceMixture, LaplacePrior, Prior


class CMVAE(MMVAEPlus):
    """The clustering multimodal VAE; every modality needs `private_dim`.

    Arguments:
        clusters: how many there are before pruning.
        beta: β, the weight of the log-ratios of prior and posterior.
        modality_weights: w_m: "by_size", "by_root_size", a number, or a dict by name.
        samples: S, importance samples per expert and step.
        estimator: "iwae", "dreg" or "elbo", as for `MMVAE`.
        prune: whether clusters are pruned after training.
    """

    def __init__(
        self,
        clusters: int = 40,
        beta: float = 1.0,
        modality_weights: float | str | dict[str, float] = 1.0,
        samples: int = 1,
        estimator: str = "iwae",
        prune: bool = True,
    ):
        super().__init__(beta, modality_weights, samples, estimator)
        if clusters < 2:
            raise InputError(f"CMVAE(clusters): expected at least 2, got {clusters}; one cluster is MMVAEPlus.")
        self.clusters, self.prune = clusters, prune

    def make_prior(self) -> Prior:
        return LaplaceMixture(self.clusters)

    def private_prior(self) -> Prior:
        return LaplacePrior()

    def after(self, model: Any, data: Any) -> None:
        if self.prune:
            self.prior.prune(model.embed(data[data.observed.any(1)]).to(self.prior.alive.device))  # type: ignore[operator]
