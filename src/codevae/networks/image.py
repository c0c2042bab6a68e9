"""Convolutional networks for images of any size (C, H, W)."""

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.functional import interpolate

from codevae.axes import Bool, Float, Tensor
from codevae.record import Recorded


def halvings(height: int, width: int) -> list[tuple[int, int]]:
    """The sizes an image passes through, halved (rounding up) until no side is above 4."""
    sizes = [(height, width)]
    while max(sizes[-1]) > 4:
        sizes.append((math.ceil(sizes[-1][0] / 2), math.ceil(sizes[-1][1] / 2)))
    return sizes


class ImageEncoder(Recorded, nn.Module):
    """Strided convolutions down to at most 4×4, then one linear layer.

    Arguments:
        features: (C, H, W).
        outputs: how many raw numbers, 2 (D + P).
        width: channels of the first layer; doubled at every halving, at most eight times.
        sees_gaps: whether it is also told which pixels are there.
    """

    def __init__(self, features: Sequence[int], outputs: int, width: int = 32, sees_gaps: bool = False):
        super().__init__()
        self.sees_gaps = sees_gaps
        channels, height, breadth = features
        self.channels = channels
        channels = channels * (2 if sees_gaps else 1)
        sizes, blocks = halvings(height, breadth), []
        for step in range(len(sizes) - 1):
            wider = min(width * 2**step, 8 * width)
            blocks += [nn.Conv2d(channels, wider, 3, 2, 1), nn.SiLU()]
            channels = wider
        self.hidden = nn.Sequential(*blocks)
        self.out = nn.Linear(channels * math.prod(sizes[-1]), outputs)

    def forward(self, x: Float[Tensor, "B c h w"], entries: Bool[Tensor, "B ..."] | None = None) -> Float[Tensor, "B outputs"]:
        if entries is not None:
            x = torch.cat([x, entries.to(x.dtype).expand(x.shape)], 1)
        return self.out(self.hidden(x).flatten(1))


class ImageDecoder(Recorded, nn.Module):
    """One linear layer to at most 4×4, then nearest-neighbour enlargements, each followed by a convolution.

    Arguments:
        inputs: how many latent dimensions, D + P.
        shape: (C, H, W) of what is given back; a further axis holds several raw numbers a pixel.
        width: channels before the last layer; doubled at every halving, at most eight times.
    """

    def __init__(self, inputs: int, shape: Sequence[int], width: int = 32):
        super().__init__()
        self.shape = tuple(shape)
        channels, height, breadth, *each = self.shape
        self.sizes = halvings(height, breadth)
        widths = [min(width * 2**step, 8 * width) for step in range(len(self.sizes))]
        self.start = (widths[-1], *self.sizes[-1])
        self.inside = nn.Linear(inputs, math.prod(self.start))
        steps = range(len(self.sizes) - 1, 0, -1)
        self.convolutions = nn.ModuleList(nn.Conv2d(widths[step], widths[step - 1], 3, 1, 1) for step in steps)
        self.out = nn.Conv2d(widths[0], channels * math.prod(each), 3, 1, 1)

    def forward(self, z: Float[Tensor, "N D"]) -> Float[Tensor, "N ..."]:
        x = torch.nn.functional.silu(self.inside(z)).unflatten(-1, self.start)
        for convolution, size in zip(self.convolutions, self.sizes[-2::-1], strict=True):
            x = torch.nn.functional.silu(convolution(interpolate(x, size=size)))
        x = self.out(x)
        return x if len(self.shape) == 3 else x.unflatten(1, (self.shape[0], -1)).movedim(2, -1).reshape(len(z), *self.shape)
