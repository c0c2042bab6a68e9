"""The consensus of dependent experts (CoDE), and the product of experts (PoE), which is its special case ρ = 0.

Expert j says: θ ≈ μ_j with standard deviation σ_j, independently for every latent dimension. The experts' errors are jointly
Gaussian with covariance Σ = diag(σ) R diag(σ), and under a flat prior the posterior of θ is N(B/A, 1/A) with

    A = 1ᵀ Σ⁻¹ 1 = pᵀ R⁻¹ p        B = 1ᵀ Σ⁻¹ μ = pᵀ R⁻¹ t        p = 1/σ,  t = μ/σ.

R does not depend on the data, so nothing of the batch is ever inverted. For one common ρ and n experts in the subset

    A = (Σ p)² / (n (1 + (n−1)ρ)) + Σ_{i<j} (p_i − p_j)²           / (n (1 − ρ))
    B = (Σ p)(Σ t) / (n (1 + (n−1)ρ)) + Σ_{i<j} (p_i − p_j)(t_i − t_j) / (n (1 − ρ)).

The first term is what the experts share, the second what distinguishes them. The differences of pairs are formed once, before any
sum over a subset, and from the differences that are exact in floating point,

    p_i − p_j = (σ_j − σ_i) / σ_iσ_j        t_i − t_j = ((μ_i − μ_j) σ_i + μ_i (σ_j − σ_i)) / σ_iσ_j,

so that every term of A is non-negative and nothing cancels, even in float32 near ρ = 1. Sums over a subset are products with masks:
every subset and every pattern of missing modalities is one call, and one expert needs no special case.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from codevae.axes import Bool, Float, Tensor
from codevae.distributions import Normal
from codevae.errors import InputError
from codevae.record import Recorded
from codevae.subsets import name_of, pack, unpack

LEARNED = ("learned", "learned_per_dimension", "learned_matrix", "learned_matrix_per_dimension")
SINGULAR = 1e-6
"""A correlation matrix with an eigenvalue below this cannot be inverted in single precision."""


class CoDE(Recorded, nn.Module):
    """Consensus of dependent experts: N(B/A, 1/A) with A = pᵀR⁻¹p, B = pᵀR⁻¹t (Lemma 2 of the CoDE-VAE paper).

    Arguments:
        rho: the correlation of the experts' errors. A number; D numbers, one per latent dimension; a matrix R (M, M); one matrix
            per dimension (D, M, M); or "learned", "learned_per_dimension", "learned_matrix", "learned_matrix_per_dimension",
            which stay positive definite by construction.
        bounds: the open interval of a learned ρ.
        prior_expert: whether N(0, I) takes part as one more, independent expert.

    Example:
        >>> from codevae.distributions import Normal
        >>> experts = Normal(torch.tensor([[[4.0]], [[8.0]]]), torch.tensor([[[3.0**0.5]], [[1.0]]]))   # (M,B,D)
        >>> q = CoDE(rho=0.6)(experts, torch.tensor([[True, True]]))                                     # (K,B,D)
        >>> round(q.loc.item(), 4), round(q.variance.item(), 4)
        (8.0817, 0.9992)
    """

    fixed: Tensor
    rest: Tensor

    def __init__(self, rho: float | str | list = "learned", bounds: Sequence[float] = (0.0, 0.95), prior_expert: bool = False):
        super().__init__()
        self.rho, self.bounds, self.prior_expert = rho, tuple(bounds), prior_expert
        if isinstance(rho, str):
            if rho not in LEARNED:
                raise InputError(f"rho: expected a number, a matrix or one of {', '.join(LEARNED)}, got {rho!r}.")
            return
        value = torch.as_tensor(rho, dtype=torch.float64)
        if not torch.isfinite(value).all():
            raise InputError("rho: expected finite numbers, got NaN or inf.")
        if value.ndim <= 1 and not bool(((value > -1) & (value < 1)).all()):
            raise InputError(
                f"rho: expected −1/(M−1) < ρ < 1 (between 0 and 0.8 in practice), got {_brief(value)}; ρ = 1 has no consensus."
            )
        if value.ndim >= 2:
            _check_matrix(value)
        self._exact, self.lowest = value, float(value.min())  # a number, since a tensor cannot be asked while a graph is traced
        self.register_buffer("fixed", value.to(torch.get_default_dtype()), persistent=False)
        self.register_buffer("rest", (1 - value).to(torch.get_default_dtype()), persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> "CoDE":
        # A change of precision starts again from the exact numbers: 1 − ρ must not be rounded twice near ρ = 1.
        super()._apply(fn, recurse)
        if not isinstance(self.rho, str):
            self.fixed, self.rest = self._exact.to(self.fixed), (1 - self._exact).to(self.rest)
        return self

    def build(self, modalities: int, latent_dim: int) -> "CoDE":
        """Make what is learned, and check what is fixed, for a number of modalities and latent dimensions."""
        self._check_size(modalities, latent_dim)
        if not isinstance(self.rho, str) or modalities == 1:
            return self
        leading = (latent_dim,) if self.rho.endswith("per_dimension") else ()
        lower, upper = self.bounds
        if "matrix" in self.rho:
            self.factor = nn.Parameter(torch.eye(modalities).expand(*leading, modalities, modalities).clone())
        else:
            if not -1 / (modalities - 1) < lower < upper < 1:
                raise InputError(
                    f"bounds: expected −1/(M−1) = {-1 / (modalities - 1):.3g} < lower < upper < 1, got {self.bounds}; use (0.0, 0.95)."
                )
            self.raw = nn.Parameter(torch.full(leading, -3.0))
        return self

    def correlation(self) -> Float[Tensor, "..."]:
        """ρ as it stands: a number or (D,) for a common ρ, (M, M) or (D, M, M) for a matrix."""
        return self._common_rho(torch.empty(0))[0] if self._is_common() else self._matrix(torch.empty(0))

    def _is_common(self) -> bool:
        return not hasattr(self, "factor") if isinstance(self.rho, str) else self._exact.ndim <= 1

    def _common_rho(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """ρ and 1 − ρ, each rounded once."""
        if not isinstance(self.rho, str):
            same = self.fixed.dtype == like.dtype
            return (self.fixed, self.rest) if same else (self._exact.to(like), (1 - self._exact).to(like))
        if not hasattr(self, "raw"):  # one modality: nothing to depend on
            return torch.zeros_like(like.sum()), torch.ones_like(like.sum())
        lower, upper = self.bounds
        rho = lower + (upper - lower) * torch.sigmoid(self.raw)
        return rho.to(like.dtype), ((1 - upper) + (upper - lower) * torch.sigmoid(-self.raw)).to(like.dtype)

    def _matrix(self, like: Tensor) -> Float[Tensor, "*dims M M"]:
        """R; a learned one is (1−ε) L Lᵀ + ε I, so that no eigenvalue of any subset's matrix is below ε = 1e-3."""
        if not isinstance(self.rho, str):
            return self.fixed if self.fixed.dtype == like.dtype else self._exact.to(like)
        lower = self.factor.tril(-1) + torch.diag_embed(nn.functional.softplus(self.factor.diagonal(dim1=-2, dim2=-1)) + 1e-6)
        rows, epsilon = nn.functional.normalize(lower, dim=-1), 1e-3
        return ((1 - epsilon) * rows @ rows.mT + epsilon * torch.eye(rows.shape[-1], dtype=rows.dtype, device=rows.device)).to(like.dtype)

    def forward(self, experts: Normal, mask: Bool[Tensor, "K M"] | Bool[Tensor, "K B M"]) -> Normal:
        """The consensus of every subset: experts (M, B, D), mask (K, M) or (K, B, M) → (K, B, D); an empty subset is N(0, I)."""
        loc, scale, mask = self._prepare(experts, mask)
        with _full_precision(loc):
            a, b = (self._common if self._is_common() else self._general)(loc, scale, mask)
        if self.prior_expert:
            a = a + 1
        else:
            empty = ~mask.any(-1, keepdim=True)
            a, b = torch.where(empty, 1.0, a), torch.where(empty, 0.0, b)
        return Normal(b / a, a.rsqrt())

    def weights(self, experts: Normal, mask: Bool[Tensor, "K M"] | Bool[Tensor, "K B M"]) -> Float[Tensor, "K M B D"]:
        """w_i = p_i (R⁻¹p)_i / A: how the consensus mean weighs the experts (negative beyond ρ = σ_min/σ_max); they sum to one,
        together with 1/A of a prior expert."""
        _, scale, mask = self._prepare(experts, mask)
        p = scale.reciprocal()
        held = mask.movedim(-1, 1).unsqueeze(-1).to(p.dtype)  # (K,M,B,1)
        if self._is_common():
            rho, rest = self._common_rho(p)
            n = mask.sum(-1, keepdim=True).clamp(min=1)
            solved = (p - (rho / (1 + (n - 1) * rho) * (held * p).sum(1)).unsqueeze(1)) / rest  # (R⁻¹p)_i, by Sherman and Morrison
        else:
            with _full_precision(p):
                solved = _solve(self._inverse(self._matrix(p), mask), p * held)
        raw = held * p * solved
        a = raw.sum(1, keepdim=True) + float(self.prior_expert)
        return raw / torch.where(mask.any(-1)[:, None, :, None], a, 1.0)

    def negative_share(self, experts: Normal, mask: Bool[Tensor, "K M"] | Bool[Tensor, "K B M"]) -> Float[Tensor, "K"]:
        """The share of (data point, dimension) pairs in which some expert has a negative weight: there the mean can leave the
        range of the experts, a sign that ρ is larger than their disagreement allows."""
        full = mask if mask.ndim == 3 else mask.unsqueeze(1).expand(-1, experts.loc.shape[1], -1)
        negative = (self.weights(experts, mask) < 0).any(1).float().mean(-1)  # (K,B)
        points = full.any(-1)
        return torch.where(points, negative, 0.0).sum(1) / points.sum(1).clamp(min=1)

    def _check_size(self, modalities: int, latent_dim: int) -> None:
        if isinstance(self.rho, str):
            return
        value = self._exact
        if value.ndim <= 1 and modalities > 1 and self.lowest <= -1 / (modalities - 1):
            raise InputError(
                f"rho: with {modalities} modalities a common ρ must be above −1/(M−1) = {-1 / (modalities - 1):.4g}, got {_brief(value)}; "
                "below it R is not positive definite."
            )
        if value.ndim >= 2 and value.shape[-1] != modalities:
            raise InputError(f"rho: the matrix is {value.shape[-1]}×{value.shape[-1]}, but there are {modalities} modalities.")
        if value.ndim in (1, 3) and value.shape[0] != latent_dim:
            raise InputError(f"rho: {value.shape[0]} values for {latent_dim} latent dimensions; give one per dimension, or a single one.")

    def _prepare(self, experts: Normal, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """μ, σ with what no subset holds set aside (`where`, so that a NaN there stays there), and the mask as (K, B, M)."""
        modalities, size, latent_dim = experts.loc.shape
        if mask.shape[-1] != modalities:
            raise InputError(f"mask: its last axis must be the {modalities} experts, got shape {tuple(mask.shape)}.")
        self._check_size(modalities, latent_dim)
        if isinstance(self.rho, str) and modalities > 1 and not (hasattr(self, "raw") or hasattr(self, "factor")):
            raise InputError(f"CoDE(rho={self.rho!r}) is learned: call .build(modalities, latent_dim) before using it on its own.")
        if mask.ndim == 2:
            mask = mask.unsqueeze(1).expand(-1, size, -1)
        used = mask.any(0).mT.unsqueeze(-1)  # (M,B,1)
        return torch.where(used, experts.loc, 0.0), torch.where(used, experts.scale, 1.0), mask

    def _common(self, loc: Tensor, scale: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """A and B for one common ρ (or one per dimension): the closed form above."""
        p = scale.reciprocal()
        t, (rho, rest) = loc * p, self._common_rho(p)
        n = mask.sum(-1, keepdim=True).clamp(min=1).to(p.dtype)  # (K,B,1)
        held = mask.to(p.dtype)
        sum_p, sum_t = torch.einsum("kbm,mbd->kbd", held, p), torch.einsum("kbm,mbd->kbd", held, t)
        shared = sum_p / (n * (1 + (n - 1) * rho))
        a, b = sum_p * shared, sum_t * shared
        if len(p) > 1:
            i, j = torch.triu_indices(len(p), len(p), 1, device=p.device)
            pairs = (mask[..., i] & mask[..., j]).to(p.dtype)  # (K,B,pairs)
            wider, product = scale[j] - scale[i], p[i] * p[j]
            apart_p = wider * product
            apart_t = ((loc[i] - loc[j]) * scale[i] + loc[i] * wider) * product
            own = 1 / (n * rest)
            a = a + own * torch.einsum("kbq,qbd->kbd", pairs, apart_p.square())
            b = b + own * torch.einsum("kbq,qbd->kbd", pairs, apart_p * apart_t)
        return a, b

    def _general(self, loc: Tensor, scale: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """A and B for a matrix R: pᵀ R_k⁻¹ p and pᵀ R_k⁻¹ t."""
        p = scale.reciprocal()
        held = mask.movedim(-1, 1).unsqueeze(-1).to(p.dtype)  # (K,M,B,1)
        solved = _solve(self._inverse(self._matrix(p), mask), p * held)
        return (solved * p).sum(1), (solved * loc * p).sum(1)

    def _inverse(self, matrix: Tensor, mask: Tensor) -> Tensor:
        """R_k⁻¹ for every row of the mask (K, B, M) → (K, B, …, M, M): factored once per subset rather than once per data point."""
        subsets = 2 ** mask.shape[-1]
        if subsets > mask.shape[0] * mask.shape[1]:
            return _inverse_within(matrix, mask)
        return _inverse_within(matrix, unpack(torch.arange(subsets, device=mask.device), mask.shape[-1]))[pack(mask)]


class PoE(CoDE):
    """Product of experts: N(B/A, 1/A) with A = Σ 1/σ², B = Σ μ/σ²; CoDE with ρ = 0.

    Arguments:
        prior_expert: whether N(0, I) takes part, as in MVAE.
    """

    def __init__(self, prior_expert: bool = False):
        super().__init__(rho=0.0, prior_expert=prior_expert)


def _full_precision(like: Tensor) -> torch.autocast:
    """No autocast inside: it would round the products with masks to half precision, and two digits are not enough for them."""
    return torch.autocast(like.device.type, enabled=False)


def _solve(inverse: Tensor, p: Float[Tensor, "K M B D"]) -> Float[Tensor, "K M B D"]:
    return torch.einsum("kbij,kjbd->kibd" if inverse.ndim == 4 else "kbdij,kjbd->kibd", inverse, p)


def _inverse_within(matrix: Float[Tensor, "*dims M M"], mask: Bool[Tensor, "*rows M"]) -> Float[Tensor, "*all M M"]:
    """The inverse of the sub-matrix of each row's own experts, zero elsewhere."""
    both = mask.unsqueeze(-1) & mask.unsqueeze(-2)
    if matrix.ndim == 3:
        both = both.unsqueeze(-3)
    eye = torch.eye(mask.shape[-1], dtype=matrix.dtype, device=matrix.device)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(torch.where(both, matrix, eye)))
    return torch.where(both, inverse, 0.0)


def _brief(value: Tensor) -> str:
    return f"{float(value):g}" if value.ndim == 0 else f"between {float(value.min()):g} and {float(value.max()):g}"


def _check_matrix(value: Float[Tensor, "..."]) -> None:
    """A correlation matrix: symmetric, ones on the diagonal, positive definite; else say which subset is the first to fail."""
    size = value.shape[-1]
    if value.ndim > 3 or value.shape[-2] != size:
        raise InputError(f"rho: expected a number, (D,), (M, M) or (D, M, M), got shape {tuple(value.shape)}.")
    if not torch.allclose(value, value.mT) or not torch.allclose(value.diagonal(dim1=-2, dim2=-1), torch.ones((), dtype=value.dtype)):
        raise InputError("rho: a matrix R must be symmetric with ones on its diagonal.")
    lowest = torch.linalg.eigvalsh(value)[..., 0].reshape(-1)  # that of a subset is never lower
    if bool((lowest > SINGULAR).all()):
        return
    bad = value.reshape(-1, size, size)[int(lowest.argmin())]
    for code in sorted(range(1, 2**size), key=lambda code: (code.bit_count(), code)):
        held = [m for m in range(size) if code >> m & 1]
        smallest = float(torch.linalg.eigvalsh(bad[held][:, held])[0])
        if smallest <= SINGULAR:
            subset = name_of([str(m) for m in held])
            raise InputError(
                f"rho: R is not positive definite: the subset of modalities {subset} has the smallest eigenvalue {smallest:.4g}; "
                "move its off-diagonal entries towards 0."
            )
