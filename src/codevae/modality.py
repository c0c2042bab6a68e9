"""Modality: a name, what its values are, and the two networks that read and write them."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from codevae.axes import Bool, Float, Shaped, Tensor
from codevae.errors import InputError
from codevae.likelihoods import Categorical, Likelihood, Normal
from codevae.networks import ImageDecoder, ImageEncoder, TableDecoder, TableEncoder, TokenDecoder, TokenEncoder
from codevae.record import Recorded


class Modality(Recorded, nn.Module):
    """One modality x_m: its likelihood p(x_m | z), its encoder and its decoder.

    Arguments:
        name: any text.
        shape: the shape of one value, without the batch axis: (F,) for a table, (C, H, W) for an image, (L,) for tokens.
        likelihood: what the decoder's numbers mean (default: `Normal()`).
        encoder: features (B, …) → (B, 2 (D + P)): an `nn.Module`, or `functools.partial(YourNet, …)` so that the config can
            keep it. Default: by the shape.
        decoder: codes (N, D + P) → (N, *likelihood.raw_shape), likewise.
        private_dim: P, the width of this modality's own latents.
        sees_gaps: whether the default encoder is told which entries are there; useful where cells are missing.
        picture: (height, width) or (height, width, colours), to draw a table's row as a picture in reports.

    Example:
        >>> Modality("rna", shape=(5000,)).name
        'rna'
    """

    def __init__(
        self,
        name: str,
        shape: int | Sequence[int],
        likelihood: Likelihood | None = None,
        encoder: Any = None,
        decoder: Any = None,
        private_dim: int = 0,
        sees_gaps: bool = False,
        picture: Sequence[int] | None = None,
    ):
        super().__init__()
        if not name or not isinstance(name, str):
            raise InputError(f"Modality(name): expected a text, got {name!r}.")
        if private_dim < 0:
            raise InputError(f"Modality(private_dim): expected 0 or more for {name!r}, got {private_dim}.")
        self.name, self.private_dim = name, private_dim
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        if not self.shape or min(self.shape) < 1:
            raise InputError(f"Modality(shape): expected sizes of at least 1 for {name!r}, such as (20,) or (3, 64, 64), got {shape}.")
        self.likelihood = Normal() if likelihood is None else likelihood
        self._arguments["likelihood"] = self.likelihood
        self.encoder, self.decoder, self.sees_gaps = encoder, decoder, sees_gaps
        self.picture = None if picture is None else tuple(picture)
        if self.picture is not None and (math.prod(self.picture) != self.size or len(self.picture) not in (2, 3)):
            raise InputError(
                f"Modality(picture): {name!r} has {self.size} values, {self.picture} holds others; give their (height, width)."
            )

    @property
    def size(self) -> int:
        """How many values it has; a text's size is its length."""
        size = 1
        for axis in self.shape:
            size *= axis
        return size

    def build(self, latent_dim: int) -> "Modality":
        """Make the likelihood's parameters and the networks, for D shared latent dimensions."""
        self.likelihood.build(self.shape)
        codes = latent_dim + self.private_dim
        encoder, decoder = self._defaults()
        features, raw_shape = self.likelihood.feature_shape, self.likelihood.raw_shape
        # a token that is not there is all zeros, which says so
        gaps = {"sees_gaps": True} if self.sees_gaps and encoder is not TokenEncoder else {}
        self.encoder = _made(self.encoder, lambda: encoder(features, 2 * codes, **gaps), f"encoder of {self.name!r}")
        self.decoder = _made(self.decoder, lambda: decoder(codes, raw_shape), f"decoder of {self.name!r}")
        return self

    def _defaults(self) -> tuple[Any, Any]:
        if isinstance(self.likelihood, Categorical) and len(self.shape) == 1 and self.shape[0] > 1:
            return TokenEncoder, TokenDecoder
        if len(self.shape) == 3 and not isinstance(self.likelihood, Categorical):
            return ImageEncoder, ImageDecoder
        return TableEncoder, TableDecoder

    def encode(self, x: Shaped[Tensor, "B ..."], entries: Bool[Tensor, "B ..."]) -> Float[Tensor, "B outputs"]:
        """Raw numbers (B, 2 (D + P)); what stands in absent entries is never seen."""
        features = self.likelihood.features(x, entries)
        if getattr(self.encoder, "sees_gaps", False):
            return _full(self.encoder(features, self.likelihood.present(entries)))
        return _full(self.encoder(features))

    def decode(self, codes: Float[Tensor, "S K B P"]) -> Float[Tensor, "S K B ..."]:
        """Raw numbers of the likelihood; samples, subsets and data points share one call of the decoder."""
        raw = self.decoder(codes.flatten(0, 2))
        if raw.shape[1:] != self.likelihood.raw_shape:
            raise InputError(
                f"decoder of {self.name!r}: expected (N, {', '.join(map(str, self.likelihood.raw_shape))}) for "
                f"{type(self.likelihood).__name__}, got {tuple(raw.shape)}."
            )
        return _full(raw).unflatten(0, codes.shape[:3])


def _full(raw: Tensor) -> Tensor:
    """Networks may run in half precision; what is made of their numbers does not."""
    return raw.to(torch.promote_types(raw.dtype, torch.float32))


def _made(network: Any, default: Any, what: str) -> nn.Module:
    if network is None:
        return default()
    made = network() if isinstance(network, functools.partial) else network
    if not isinstance(made, nn.Module):
        raise InputError(f"{what}: expected an nn.Module or functools.partial(YourNet, …), got {type(made).__name__}.")
    return made
