"""Numbers: a location from the decoder, and errors that are normal, double-exponential or Student's."""

import math

import torch
from torch import nn
from torch.nn.functional import softplus

from codevae.axes import Tensor
from codevae.errors import InputError
from codevae.likelihoods.base import Likelihood, moments

FLOOR = -5.0
"""A learned log-scale stays above this: a constant column must not make a density without bound."""


class Located(Likelihood):
    """A location from the decoder and a scale, fixed or learned per entry (per channel of an image), in learned units."""

    offset: Tensor
    unit: Tensor

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
        return torch.full_like(self.unit, float(self.scale))

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


class Normal(Located):
    """Numbers with normal errors: log p = −½ ((x − μ)/σ)² − log σ − ½ log 2π.

    Arguments:
        scale: σ, a number or "learned" (one per column or channel).
        standardise: model (x − mean)/sd of the training data.
    """

    def density(self, e):
        return -0.5 * e.square() - 0.5 * math.log(2 * math.pi)

    def noise(self, like):
        return torch.randn_like(like)


class Laplace(Located):
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


class StudentT(Located):
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
        return 2 + softplus(self.raw_df) if self.df == "learned" else self.unit.new_tensor(float(self.df))

    def density(self, e):
        v = self.degrees()
        constant = torch.lgamma((v + 1) / 2) - torch.lgamma(v / 2) - 0.5 * (v * math.pi).log()
        return constant - (v + 1) / 2 * torch.log1p(e.square() / v)

    def noise(self, like):
        v = self.degrees().detach()
        return torch.randn_like(like) * (torch._standard_gamma((v / 2).expand(like.shape)) * 2 / v).rsqrt()
