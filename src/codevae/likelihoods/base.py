"""The frame of a likelihood: masks, shapes, sums and units."""

from collections.abc import Sequence

import torch
from torch import nn

from codevae.axes import Bool, Float, Shaped, Tensor
from codevae.record import Recorded


class Likelihood(Recorded, nn.Module):
    """The frame: masks, shapes and sums; a likelihood states its density and its views."""

    def build(self, shape: Sequence[int]) -> "Likelihood":
        """Make what is learned, for values of this shape (without the batch axis)."""
        self.shape = tuple(shape)
        return self

    @property
    def raw_shape(self) -> tuple[int, ...]:
        """The shape of what the decoder must give for one value."""
        return self.shape

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """The shape of what the encoder is given for one value."""
        return self.shape

    def calibrate(self, x: Shaped[Tensor, "B ..."], entries: Bool[Tensor, "B ..."]) -> None:
        """Learn units from training data; called once, before the first step."""

    def wrong(self, x: Shaped[Tensor, "B ..."], entries: Bool[Tensor, "B ..."]) -> str | None:
        """What is wrong with these values for this likelihood, or None."""
        bad = ~self._fits(torch.where(entries, x, 0)) & entries
        return f"{int(bad.sum())} values are not {self.support}, the first is {x[bad].flatten()[0].item():g}" if bool(bad.any()) else None

    support = "finite numbers"

    def _fits(self, x: Tensor) -> Tensor:
        return torch.isfinite(x) if x.is_floating_point() else torch.ones_like(x, dtype=torch.bool)

    def features(self, x: Shaped[Tensor, "B ..."], entries: Bool[Tensor, "B ..."]) -> Float[Tensor, "B ..."]:
        """What an encoder sees: `view` of the values, 0 where absent."""
        return torch.where(self.present(entries), self.view(torch.where(entries, x, 0)), 0.0)

    def present(self, entries: Bool[Tensor, "B ..."]) -> Bool[Tensor, "B ..."]:
        """Which features are there, in their shape: all that one entry is turned into go together."""
        each = entries.reshape(*entries.shape, *(1,) * (len(self.feature_shape) - len(self.shape)))
        return each.expand(len(entries), *self.feature_shape)

    def view(self, x: Tensor) -> Tensor:
        """Values as an encoder likes them; element by element."""
        return x.to(torch.get_default_dtype())

    def score(self, raw: Float[Tensor, "S K B ..."], x: Shaped[Tensor, "B ..."], entries: Bool[Tensor, "B ..."]) -> Float[Tensor, "S K B"]:
        """log p(x | z), summed over the entries that are there."""
        each = self.log_prob(raw, torch.where(entries, x, 0))
        return torch.where(entries, each, 0.0).flatten(3).sum(-1)

    def log_prob(self, raw: Tensor, x: Tensor) -> Tensor:
        """log p(x | z) of every entry."""
        raise NotImplementedError

    def mean(self, raw: Tensor) -> Tensor:
        """E[x | z], in the units of the data; for categories their probabilities."""
        raise NotImplementedError

    def predict(self, raw: Tensor) -> Tensor:
        """One value of the stored kind: the mean of numbers, the likeliest category."""
        return self.pool(raw.unsqueeze(0))

    def pool(self, raw: Tensor) -> Tensor:
        """One value from several draws (the first axis): the mean of numbers, the category that is likeliest on average."""
        return self.mean(raw).mean(0)

    def draw(self, raw: Tensor) -> Tensor:
        """A draw of x given z."""
        raise NotImplementedError


def moments(x: Float[Tensor, "B ..."], entries: Bool[Tensor, "B ..."], shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of what is there, per column or channel; 0 and 1 where there is nothing or nothing varies."""
    there = entries.expand(x.shape)
    over = [0, *(axis + 1 for axis, size in enumerate(shape) if size == 1 and x.shape[axis + 1] != 1)]
    wide = torch.where(there, x, 0.0).double()
    number = there.double().sum(over, keepdim=True).clamp(min=1)
    mean = wide.sum(over, keepdim=True) / number
    spread = (torch.where(there, wide - mean, 0.0).square().sum(over, keepdim=True) / number).sqrt()
    unit = torch.where(spread > 1e-6 * mean.abs().clamp(min=1e-30), spread, 1.0)
    return mean[0].to(x.dtype).reshape(tuple(shape)), unit[0].to(x.dtype).reshape(tuple(shape))
