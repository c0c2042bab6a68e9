"""p(x_m | z): what a decoder's raw numbers mean, and how the values look to an encoder.

A likelihood knows the shape of one value, how many raw numbers the decoder must give for it, and four views of them: `log_prob`,
`mean`, `predict` (one value of the stored type) and `draw`. `features` is what an encoder sees: scaled, one-hot or log1p, and 0
where nothing is. Missing values inside a present modality are masked before any arithmetic, and count nothing.

Numbers are modelled in units learned from the training data (`standardise`): (x − offset) / unit, column by column for a table,
channel by channel for an image. Densities are those of the scaled values, so that they can be compared over columns.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import logsigmoid, one_hot, softplus

from codevae.axes import Bool, Float, Shaped, Tensor
from codevae.errors import InputError
from codevae.record import Recorded

FLOOR = -5.0
"""A learned log-scale stays above this: a constant column must not make a density without bound."""


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
        seen = self.view(torch.where(entries, x, 0))
        there = entries.reshape(*entries.shape, *(1,) * (seen.ndim - entries.ndim))
        return torch.where(there, seen, 0.0)

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
        return self.mean(raw)

    def draw(self, raw: Tensor) -> Tensor:
        """A draw of x given z."""
        raise NotImplementedError


class _Located(Likelihood):
    """A location from the decoder and a scale, fixed or learned per entry (per channel of an image), in learned units."""

    def __init__(self, scale: float | str = "learned", standardise: bool = True):
        super().__init__()
        if scale != "learned" and not (isinstance(scale, int | float) and 0 < scale < math.inf):
            raise InputError(f"{type(self).__name__}(scale): expected a positive number or 'learned', got {scale!r}.")
        self.scale, self.standardise = scale, standardise

    def build(self, shape):
        super().build(shape)
        unit = self.shape if len(self.shape) == 1 else (self.shape[0], *(1,) * (len(self.shape) - 1))
        self.register_buffer("offset", torch.zeros(unit))
        self.register_buffer("unit", torch.ones(unit))
        if self.scale == "learned":
            self.raw_scale = nn.Parameter(torch.zeros(unit))
        return self

    def calibrate(self, x, entries):
        if self.standardise:
            offset, unit = moments(x.to(self.offset.dtype), entries, self.offset.shape)
            self.offset.copy_(offset)
            self.unit.copy_(unit)

    def scales(self) -> Tensor:
        """σ in learned units."""
        if self.scale == "learned":
            return (FLOOR + softplus(self.raw_scale - FLOOR)).exp()
        return torch.full_like(self.unit, self.scale)

    def view(self, x):
        return (x - self.offset) / self.unit

    def log_prob(self, raw, x):
        scale = self.scales()
        return self.density((self.view(x) - raw) / scale) - scale.log()

    def density(self, e: Tensor) -> Tensor:
        """The log-density of a standardised error."""
        raise NotImplementedError

    def mean(self, raw):
        return self.offset + self.unit * raw

    def draw(self, raw):
        return self.mean(raw) + self.unit * self.scales() * self.noise(raw)

    def noise(self, like: Tensor) -> Tensor:
        """Draws of a standardised error."""
        raise NotImplementedError


class Normal(_Located):
    """Numbers with normal errors: log p = −½ ((x − μ)/σ)² − log σ − ½ log 2π.

    Arguments:
        scale: σ, a number or "learned" (one per column or channel).
        standardise: model (x − mean)/sd of the training data.
    """

    def density(self, e):
        return -0.5 * e.square() - 0.5 * math.log(2 * math.pi)

    def noise(self, like):
        return torch.randn_like(like)


class Laplace(_Located):
    """Numbers with double-exponential errors: log p = −|x − μ|/b − log 2b; the paper's images use b = 0.75, unstandardised.

    Arguments:
        scale: b, a number or "learned" (one per column or channel).
        standardise: model (x − mean)/sd of the training data.
    """

    def density(self, e):
        return -e.abs() - math.log(2)

    def noise(self, like):
        u = torch.rand_like(like).clamp(1e-7, 1 - 1e-7) - 0.5
        return -u.sign() * torch.log1p(-2 * u.abs())


class StudentT(_Located):
    """Numbers with outliers: Student's t with ν degrees of freedom.

    Arguments:
        df: ν, a number above 2 or "learned" (one for all columns, kept above 2).
        scale: σ, a number or "learned" (one per column or channel).
        standardise: model (x − mean)/sd of the training data.
    """

    def __init__(self, df: float | str = 5.0, scale: float | str = "learned", standardise: bool = True):
        super().__init__(scale, standardise)
        if df != "learned" and not (isinstance(df, int | float) and 2 < df < math.inf):
            raise InputError(f"StudentT(df): expected a number above 2 or 'learned', got {df!r}.")
        self.df = df

    def build(self, shape):
        super().build(shape)
        if self.df == "learned":
            self.raw_df = nn.Parameter(torch.tensor(3.0))
        return self

    def degrees(self) -> Tensor:
        """ν."""
        return 2 + softplus(self.raw_df) if self.df == "learned" else torch.full((), float(self.df), dtype=self.unit.dtype, device=self.unit.device)

    def density(self, e):
        v = self.degrees()
        constant = torch.lgamma((v + 1) / 2) - torch.lgamma(v / 2) - 0.5 * (v * math.pi).log()
        return constant - (v + 1) / 2 * torch.log1p(e.square() / v)

    def noise(self, like):
        v = self.degrees().detach()
        return torch.randn_like(like) * (torch._standard_gamma((v / 2).expand(like.shape)) * 2 / v).rsqrt()


class Bernoulli(Likelihood):
    """Yes or no, stored as 1 or 0: the decoder gives logits."""

    support = "0 or 1"

    def _fits(self, x):
        return (x == 0) | (x == 1)

    def view(self, x):
        return 2 * x.to(torch.get_default_dtype()) - 1

    def log_prob(self, raw, x):
        return logsigmoid(torch.where(x == 1, raw, -raw))

    def mean(self, raw):
        return torch.sigmoid(raw)

    def predict(self, raw):
        return (raw > 0).to(raw.dtype)

    def draw(self, raw):
        return (torch.rand_like(raw) < torch.sigmoid(raw)).to(raw.dtype)


class Categorical(Likelihood):
    """One of several categories, stored as codes 0 … categories − 1: a table's column, or the tokens of a sequence.

    Arguments:
        categories: how many there are.
    """

    def __init__(self, categories: int):
        super().__init__()
        if not (isinstance(categories, int) and categories >= 1):
            raise InputError(f"Categorical(categories): expected a whole number of at least 1, got {categories!r}.")
        self.categories = categories
        self.support = f"codes from 0 to {categories - 1}"

    @property
    def raw_shape(self):
        return (*self.shape, self.categories)

    @property
    def feature_shape(self):
        return (*self.shape, self.categories)

    def _fits(self, x):
        return (x >= 0) & (x < self.categories) & (x == x.floor() if x.is_floating_point() else True)

    def view(self, x):
        return one_hot(x.long().clamp(0, self.categories - 1), self.categories).to(torch.get_default_dtype())

    def log_prob(self, raw, x):
        index = x.long().clamp(0, self.categories - 1).expand(raw.shape[:-1]).unsqueeze(-1)
        return raw.log_softmax(-1).gather(-1, index).squeeze(-1)

    def mean(self, raw):
        return raw.softmax(-1)

    def predict(self, raw):
        return raw.argmax(-1)

    def draw(self, raw):
        return (raw - torch.log(-torch.log(torch.rand_like(raw).clamp(1e-7, 1 - 1e-7)))).argmax(-1)


class Poisson(Likelihood):
    """Counts whose variance is their mean: the decoder gives log λ, relative to the mean of the training data."""

    support = "counts (0, 1, 2, …)"

    def build(self, shape):
        super().build(shape)
        for name, start in (("base", 0.0), ("offset", 0.0), ("unit", 1.0)):
            self.register_buffer(name, torch.full(self.shape, start))
        return self

    def calibrate(self, x, entries):
        x = torch.where(entries, x, 0).to(self.base.dtype)
        there = entries.expand_as(x).to(x.dtype)
        self.base.copy_(((x.sum(0) + 0.5) / (there.sum(0) + 1)).log())
        offset, unit = moments(x.log1p(), entries, self.shape)
        self.offset.copy_(offset)
        self.unit.copy_(unit)

    def _fits(self, x):
        return (x >= 0) & (x == x.floor() if x.is_floating_point() else True) & torch.isfinite(x)

    def view(self, x):
        return (x.to(self.base.dtype).log1p() - self.offset) / self.unit

    def log_rate(self, raw: Tensor) -> Tensor:
        """log λ, held below e²⁰."""
        return (self.base + raw).clamp(max=20.0)

    def log_prob(self, raw, x):
        log_rate = self.log_rate(raw)
        return x * log_rate - log_rate.exp() - torch.lgamma(x + 1.0)

    def mean(self, raw):
        return self.log_rate(raw).exp()

    def draw(self, raw):
        return torch.poisson(self.mean(raw))


class NegativeBinomial(Poisson):
    """Counts with more variance than a Poisson's: mean μ from the decoder, variance μ + μ²/θ with θ learned per column.

    log p = log Γ(x+θ) − log Γ(θ) − log x! + θ log θ/(θ+μ) + x log μ/(θ+μ).
    """

    def build(self, shape):
        super().build(shape)
        self.log_theta = nn.Parameter(torch.zeros(self.shape))
        return self

    def log_prob(self, raw, x):
        return self._counts(self.log_rate(raw), x)

    def _counts(self, log_mean: Tensor, x: Tensor) -> Tensor:
        log_theta = self.log_theta.clamp(-10.0, 15.0)
        theta, both = log_theta.exp(), torch.logaddexp(log_theta, log_mean)
        ways = torch.lgamma(x + theta) - torch.lgamma(theta) - torch.lgamma(x + 1.0)
        return ways + theta * (log_theta - both) + x * (log_mean - both)

    def _draw_counts(self, mean: Tensor) -> Tensor:
        theta = self.log_theta.detach().clamp(-10.0, 15.0).exp()
        return torch.poisson(torch._standard_gamma(theta.expand(mean.shape)) * mean / theta)

    def draw(self, raw):
        return self._draw_counts(self.mean(raw))


class ZeroInflatedNegativeBinomial(NegativeBinomial):
    """Counts with more zeros than a negative binomial has: with probability ζ the count is 0 whatever its mean.

    The decoder gives two numbers an entry, in the last axis: log μ (relative) and the logit of ζ.
    """

    @property
    def raw_shape(self):
        return (*self.shape, 2)

    def log_prob(self, raw, x):
        log_mean, logit = self.log_rate(raw[..., 0]), raw[..., 1]
        counts = logsigmoid(-logit) + self._counts(log_mean, x)
        return torch.where(x == 0, torch.logaddexp(logsigmoid(logit), counts), counts)

    def mean(self, raw):
        return torch.sigmoid(-raw[..., 1]) * self.log_rate(raw[..., 0]).exp()

    def draw(self, raw):
        counts = self._draw_counts(self.log_rate(raw[..., 0]).exp())
        return torch.where(torch.rand_like(counts) < torch.sigmoid(raw[..., 1]), 0.0, counts)


class Columns(Likelihood):
    """A table whose columns are of several kinds: the product of their likelihoods.

    Arguments:
        parts: pairs (likelihood, columns): which columns of the table it describes; together all of them, each once.

    Example:
        >>> mixed = Columns([(Normal(), [0, 2]), (Categorical(3), [1])]).build((3,))
        >>> mixed.raw_shape
        (5,)
    """

    def __init__(self, parts: Sequence[tuple[Likelihood, Sequence[int]]]):
        super().__init__()
        self.parts = nn.ModuleList(part for part, _ in parts)
        self.columns = [list(columns) for _, columns in parts]

    def build(self, shape):
        super().build(shape)
        if sorted(sum(self.columns, [])) != list(range(*self.shape)):
            raise InputError(f"Columns(parts): each of the {self.shape[0]} columns must be in exactly one part, got {self.columns}.")
        for part, columns in zip(self.parts, self.columns, strict=True):
            part.build((len(columns),))
        order = torch.tensor(sum(self.columns, []))
        self.register_buffer("back", order.argsort(), persistent=False)
        return self

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

    def predict(self, raw):
        return self._assemble(raw, "predict")

    def draw(self, raw):
        return self._assemble(raw, "draw")


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
