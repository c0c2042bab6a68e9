"""Residual one-dimensional convolutions for token sequences (L tokens of V kinds, one-hot)."""

from collections.abc import Sequence

from torch import nn

from codevae.axes import Bool, Float, Tensor
from codevae.record import Recorded


class Residual(nn.Module):
    """x + convolution(norm(x)), along the sequence."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Conv1d(width, width, 5, padding=2)
        self.outer = nn.Linear(width, width)

    def forward(self, x: Float[Tensor, "N L width"]) -> Float[Tensor, "N L width"]:
        inner = self.inner(self.norm(x).mT).mT
        return x + self.outer(nn.functional.silu(inner))


class TokenEncoder(Recorded, nn.Module):
    """Tokens → raw numbers.

    Arguments:
        features: (L, V).
        outputs: how many raw numbers, 2 (D + P).
        width: of a token's vector.
        depth: how many residual blocks.
    """

    def __init__(self, features: Sequence[int], outputs: int, width: int = 64, depth: int = 2):
        super().__init__()
        length, kinds = features
        self.embed = nn.Linear(kinds, width)
        self.blocks = nn.Sequential(*(Residual(width) for _ in range(depth)))
        self.out = nn.Linear(length * width, outputs)

    def forward(self, x: Float[Tensor, "B L V"], entries: Bool[Tensor, "B ..."] | None = None) -> Float[Tensor, "B outputs"]:
        return self.out(nn.functional.silu(self.blocks(self.embed(x))).flatten(1))


class TokenDecoder(Recorded, nn.Module):
    """Codes → logits of every token, all at once.

    Arguments:
        inputs: how many latent dimensions, D + P.
        shape: (L, V).
        width: of a token's vector.
        depth: how many residual blocks.
    """

    def __init__(self, inputs: int, shape: Sequence[int], width: int = 64, depth: int = 2):
        super().__init__()
        length, kinds = shape
        self.inside = nn.Sequential(nn.Linear(inputs, length * width), nn.Unflatten(-1, (length, width)))
        self.blocks = nn.Sequential(*(Residual(width) for _ in range(depth)))
        self.out = nn.Linear(width, kinds)

    def forward(self, z: Float[Tensor, "N D"]) -> Float[Tensor, "N L V"]:
        return self.out(self.blocks(self.inside(z)))
