"""A table whose columns are of several kinds."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from codevae.axes import Tensor
from codevae.errors import InputError
from codevae.likelihoods.base import Likelihood


class Columns(Likelihood):
    """A table whose columns are of several kinds: the product of their likelihoods.

    Arguments:
        parts: pairs (likelihood, columns): which columns of the table it describes; together all of them, each once.

    Example:
        >>> from codevae.likelihoods import Categorical, Normal
        >>> mixed = Columns([(Normal(), [0, 2]), (Categorical(3), [1])]).build((3,))
        >>> mixed.raw_shape
        (5,)
    """

    back: Tensor

    def __init__(self, parts: Sequence[Sequence[Any]]):
        super().__init__()
        self.held = nn.ModuleList(part for part, _ in parts)
        self.columns = [list(columns) for _, columns in parts]

    def build(self, shape):
        super().build(shape)
        if len(self.shape) != 1:
            raise InputError(f"Columns: describes a table, whose values have the shape (columns,), not {self.shape}.")
        if sorted(sum(self.columns, [])) != list(range(*self.shape)):
            raise InputError(f"Columns(parts): each of the {self.shape[0]} columns must be in exactly one part, got {self.columns}.")
        for part, columns in zip(self.parts, self.columns, strict=True):
            part.build((len(columns),))
        order = torch.tensor(sum(self.columns, []))
        self.register_buffer("back", order.argsort(), persistent=False)
        return self

    @property
    def parts(self) -> list[Likelihood]:
        """The likelihoods of the parts."""
        return list(self.held)  # type: ignore[arg-type]

    @property
    def raw_shape(self):
        return (sum(math.prod(part.raw_shape) for part in self.parts),)

    @property
    def feature_shape(self):
        return (sum(math.prod(part.feature_shape) for part in self.parts),)

    def _each(self, x: Tensor, entries: Tensor) -> Any:
        entries = entries.expand(x.shape)
        return [(part, x[:, columns], entries[:, columns]) for part, columns in zip(self.parts, self.columns, strict=True)]

    def _split(self, raw: Tensor) -> Any:
        pieces = raw.split([math.prod(part.raw_shape) for part in self.parts], -1)
        return [(part, piece.unflatten(-1, part.raw_shape)) for part, piece in zip(self.parts, pieces, strict=True)]

    def calibrate(self, x, entries):
        for part, values, there in self._each(x, entries):
            part.calibrate(values, there)

    def wrong(self, x, entries):
        return next((message for part, values, there in self._each(x, entries) if (message := part.wrong(values, there))), None)

    def features(self, x, entries):
        return torch.cat([part.features(values, there).flatten(1) for part, values, there in self._each(x, entries)], -1)

    def present(self, entries):
        entries = entries.expand(-1, *self.shape)
        return torch.cat([part.present(entries[:, held]).flatten(1) for part, held in zip(self.parts, self.columns, strict=True)], -1)

    def score(self, raw, x, entries):
        pieces = zip(self._split(raw), self._each(x, entries), strict=True)
        return torch.stack([part.score(piece, values, there) for (part, piece), (_, values, there) in pieces]).sum(0)

    def log_prob(self, raw, x):
        pieces = [part.log_prob(piece, x[..., columns]) for (part, piece), columns in zip(self._split(raw), self.columns, strict=True)]
        return torch.cat(pieces, -1)[..., self.back]

    def _assemble(self, raw: Tensor, view: str) -> Tensor:
        return torch.cat([getattr(part, view)(piece).to(raw.dtype) for part, piece in self._split(raw)], -1)[..., self.back]

    def mean(self, raw):
        """As `predict`: a table has one number a column, so a category is given by its code."""
        return self._assemble(raw, "predict")

    def pool(self, raw):
        return self._assemble(raw, "pool")

    def draw(self, raw):
        return self._assemble(raw, "draw")
