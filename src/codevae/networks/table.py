"""Multilayer perceptrons for tables (and for anything whose values have no order)."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from codevae import random
from codevae.axes import Bool, Float, Tensor
from codevae.record import Recorded


class Dropout(nn.Module):
    """A share of the units left out in training; drawn like every draw, so that several processes drop what one would have dropped."""

    def __init__(self, share: float):
        super().__init__()
        self.share = share

    def forward(self, x: Float[Tensor, "B units"]) -> Float[Tensor, "B units"]:
        if not self.training or not self.share:
            return x
        return torch.where(random.uniform(x.shape, x, 0) < self.share, 0.0, x / (1 - self.share))


def layers(inputs: int, width: int, depth: int, dropout: float) -> nn.Sequential:
    """`depth` hidden layers of `width`."""
    blocks: list[nn.Module] = []
    for _ in range(depth):
        blocks += [nn.Linear(inputs, width), nn.SiLU(), *([Dropout(dropout)] if dropout else [])]
        inputs = width
    return nn.Sequential(*blocks)


class TableEncoder(Recorded, nn.Module):
    """Features of a row → raw numbers.

    Arguments:
        features: the shape of the features (flattened).
        outputs: how many raw numbers, 2 (D + P).
        width, depth: of the hidden layers.
        dropout: the share of hidden units left out in training.
        sees_gaps: whether it is also told which entries are there.
    """

    def __init__(
        self, features: Sequence[int], outputs: int, width: int = 256, depth: int = 1, dropout: float = 0.2, sees_gaps: bool = False
    ):
        super().__init__()
        self.sees_gaps = sees_gaps
        inputs = math.prod(features) * (2 if sees_gaps else 1)
        self.hidden = layers(inputs, width, depth, dropout)
        self.out = nn.Linear(width if depth else inputs, outputs)

    def forward(self, x: Float[Tensor, "B ..."], entries: Bool[Tensor, "B ..."] | None = None) -> Float[Tensor, "B outputs"]:
        x = x.flatten(1)
        if entries is not None:
            x = torch.cat([x, entries.to(x.dtype).flatten(1)], 1)
        return self.out(self.hidden(x))


class TableDecoder(Recorded, nn.Module):
    """Codes → raw numbers of a row.

    Arguments:
        inputs: how many latent dimensions, D + P.
        shape: the shape of what is given back.
        width, depth: of the hidden layers.
        dropout: the share of hidden units left out in training.
    """

    def __init__(self, inputs: int, shape: Sequence[int], width: int = 256, depth: int = 1, dropout: float = 0.0):
        super().__init__()
        self.shape = tuple(shape)
        self.hidden = layers(inputs, width, depth, dropout)
        self.out = nn.Linear(width if depth else inputs, math.prod(self.shape))

    def forward(self, z: Float[Tensor, "N D"]) -> Float[Tensor, "N ..."]:
        return self.out(self.hidden(z)).unflatten(-1, self.shape)
