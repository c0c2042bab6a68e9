"""Worlds in which everything is known: p(z) = N(0, I), x_m = W_m z + V_m s_m + b_m + σ_m noise, p(s_m) = N(0, I).

Whatever is observed is jointly normal with the latents, so log p(x) of any entries and the posterior given any entries are a few
lines of linear algebra, and share no code with codevae.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from codevae.batch import Batch
from codevae.consensus import PoE
from codevae.likelihoods import Normal
from codevae.methods import CoDEVAE
from codevae.modality import Modality
from codevae.model import MultimodalVAE


@dataclass(frozen=True)
class World:
    """W_m (F_m, D), V_m (F_m, P_m; P_m may be 0), b_m (F_m) and σ_m of every modality, by name."""

    shared: dict[str, Tensor]
    private: dict[str, Tensor]
    offset: dict[str, Tensor]
    sigma: dict[str, float]

    @property
    def names(self) -> list[str]:
        return list(self.shared)

    @property
    def latent_dim(self) -> int:
        return next(iter(self.shared.values())).shape[1]

    def draw(self, count: int, seed: int = 0) -> Batch:
        """Complete data points."""
        generator = torch.Generator().manual_seed(seed)

        def noise(width: int) -> Tensor:
            return torch.randn(count, width, generator=generator, dtype=torch.float64)

        z, values = noise(self.latent_dim), {}
        for name in self.names:
            means = z @ self.shared[name].T + noise(self.private[name].shape[1]) @ self.private[name].T + self.offset[name]
            values[name] = means + self.sigma[name] * noise(means.shape[1])
        return Batch(values)

    def flat(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Values and entries of all modalities side by side: (N, F)."""
        values = torch.cat([batch.values[name] for name in self.names], 1).double()
        there = torch.cat([batch.entries[name].expand(batch.values[name].shape) for name in self.names], 1)
        return values, there

    @property
    def mean(self) -> Tensor:
        return torch.cat(list(self.offset.values()))

    @property
    def loadings(self) -> Tensor:
        """W of all modalities, one above the other: (F, D)."""
        return torch.cat(list(self.shared.values()))

    @property
    def noise(self) -> Tensor:
        """The covariance of x given z, private latents integrated out: (F, F)."""
        parts = zip(self.private.values(), self.sigma.values(), strict=True)
        return torch.block_diag(*(v @ v.T + sigma**2 * torch.eye(len(v), dtype=v.dtype) for v, sigma in parts))

    def log_prob(self, batch: Batch) -> Tensor:
        """log p of the entries that are there, (N,)."""
        values, there = self.flat(batch)
        covariance = self.loadings @ self.loadings.T + self.noise
        result = torch.zeros(len(batch), dtype=torch.float64)
        for n, row in enumerate(there):
            if row.any():
                normal = torch.distributions.MultivariateNormal(self.mean[row], covariance[row][:, row])
                result[n] = normal.log_prob(values[n, row])
        return result

    def posterior(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """p(z | the entries that are there): means (N, D), covariances (N, D, D)."""
        values, there = self.flat(batch)
        means, covariances = [], []
        for n, row in enumerate(there):
            loadings, precision = self.loadings[row], torch.linalg.inv(self.noise[row][:, row])
            covariances.append(torch.linalg.inv(torch.eye(self.latent_dim, dtype=torch.float64) + loadings.T @ precision @ loadings))
            means.append(covariances[-1] @ loadings.T @ precision @ (values[n, row] - self.mean[row]))
        return torch.stack(means), torch.stack(covariances)

    def gap(self, batch: Batch, loc: Tensor, scale: Tensor) -> Tensor:
        """KL(N(loc, scale²) ‖ p(z | the entries that are there)), (N,): what a bound with that posterior lacks."""
        means, covariances = self.posterior(batch)
        q = torch.distributions.MultivariateNormal(loc.double(), torch.diag_embed(scale.double().square()))
        return torch.distributions.kl_divergence(q, torch.distributions.MultivariateNormal(means, covariances))


def world(
    sizes: tuple[int, ...] = (3, 2, 4), latent_dim: int = 2, private: tuple[int, ...] = (), orthogonal: bool = True, seed: int = 0
) -> World:
    """A world with modalities "a", "b", …; with orthogonal columns of W (and no private latents) every posterior is diagonal."""
    generator = torch.Generator().manual_seed(seed)

    def noise(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    names = "abcdefghijkl"[: len(sizes)]
    shared, offsets = {}, {}
    for name, size in zip(names, sizes, strict=True):
        columns = noise(size, latent_dim)
        shared[name] = torch.linalg.qr(columns).Q * (0.5 + noise(latent_dim).abs()) if orthogonal and size >= latent_dim else columns
        offsets[name] = noise(size)
    widths = private or (0,) * len(sizes)
    own = {name: noise(size, width) for name, size, width in zip(names, sizes, widths, strict=True)}
    return World(shared, own, offsets, {name: 0.5 + 0.25 * m for m, name in enumerate(names)})


def model(world: World, method=None, prior_share: float = 1.0, jitter: float = 0.0, seed: int = 0) -> MultimodalVAE:
    """A MultimodalVAE whose decoders are the world's, and whose encoders are linear.

    Expert m has the precision prior_share + ‖W_m,d‖²/σ_m² and the matching mean. With orthogonal columns and no private latents,
        prior_share = 1     is the exact posterior p(z | x_m);
        prior_share = 0     is the likelihood alone: a PoE with a prior expert is then exact for every subset;
        prior_share = 1/M   is exact for the full set under a PoE without one.
    `jitter` moves every weight of the encoders (and the experts of private latents, which are arbitrary anyway) at random.
    """
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for name in world.names:
        loadings = torch.cat([world.shared[name], world.private[name]], 1)
        size, codes = loadings.shape
        evidence = loadings.square().sum(0) / world.sigma[name] ** 2
        precision = prior_share + evidence
        precision[world.latent_dim :] = 1 + evidence[world.latent_dim :]
        encoder, decoder = nn.Linear(size, 2 * codes), nn.Linear(codes, size)
        with torch.no_grad():
            weight = loadings.T / world.sigma[name] ** 2 / precision[:, None]
            encoder.weight.copy_(torch.cat([weight, torch.zeros_like(weight)]))
            encoder.bias.copy_(torch.cat([-weight @ world.offset[name], -0.5 * precision.log()]))
            for parameter in encoder.parameters():
                parameter.add_(jitter * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
            decoder.weight.copy_(loadings)
            decoder.bias.copy_(world.offset[name])
        likelihood = Normal(scale=world.sigma[name], standardise=False)
        parts.append(Modality(name, (size,), likelihood, encoder, decoder, private_dim=world.private[name].shape[1]))
    return MultimodalVAE(parts, world.latent_dim, method)


def with_prior_expert(method: CoDEVAE) -> CoDEVAE:
    """The method with a product of experts in which the prior takes part: exact where the experts are likelihoods."""
    method.consensus = PoE(prior_expert=True)
    return method


def patterns(batch: Batch, observed: Tensor) -> Batch:
    """The batch with exactly these modalities observed, (N, M) or (M,)."""
    return batch.hide(~observed.expand(len(batch), -1))
