"""A multivariate normal fitted to a table with gaps by EM: the rival that a model's imputations have to beat.

Let K = Σ⁻¹, and let m be what a row lacks and o what it has. Then, without ever inverting the covariance of what is there,

    x_m | x_o ~ N(μ_m − K_mm⁻¹ K_mo (x_o − μ_o), K_mm⁻¹)        log |Σ_oo| = log |Σ| + log |K_mm|

and with r the residual completed by those conditional means, (x_o − μ_o)ᵀ Σ_oo⁻¹ (x_o − μ_o) = rᵀ K r. Rows with the same gaps share
K_mm⁻¹. The M-step is  μ ← μ + mean r,  Σ ← (Σ_n (r_n rₙᵀ + Cov_n) + λ I) / (N + λ): λ imagined rows of covariance I keep Σ regular
where columns outnumber rows or repeat each other. EM never lowers  Σ_n log p(x_o) − λ/2 (log |Σ| + tr Σ⁻¹).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Gaussian:
    """N(μ, Σ) over the columns of a table, NaN where a cell is missing.

    Arguments:
        mean: (F,) μ.
        covariance: (F, F) Σ.
        objective: the penalised log-likelihood before every iteration; it never falls.

    Example:
        >>> table = np.random.default_rng(0).normal(size=(200, 1)) @ np.array([[1.0, 2.0]])
        >>> table[0, 1] = np.nan
        >>> fitted = Gaussian.fit(table, ridge=1e-4)
        >>> bool(abs(fitted.impute(table)[0, 1] - 2 * table[0, 0]) < 0.01)
        True
    """

    mean: np.ndarray
    covariance: np.ndarray
    objective: tuple[float, ...] = ()

    @classmethod
    def fit(cls, table: np.ndarray, ridge: float = 0.05, iterations: int = 50, tolerance: float = 1e-6) -> "Gaussian":
        """The penalised maximum-likelihood estimate by EM, from the columns' means and variances.

        Arguments:
            table: (N, F), standardised; a row with nothing in it teaches nothing.
            ridge: λ / N: how many imagined rows stand beside every real one.
            iterations: at most.
            tolerance: stop when the objective gains less than this share of itself.
        """
        table = np.asarray(table, dtype=np.float64)
        table = table[~np.isnan(table).all(1)]
        there, ridge = ~np.isnan(table), ridge * len(table)
        number = there.sum(0).clip(min=1)
        mean = np.where(there, table, 0.0).sum(0) / number
        variance = (np.where(there, table - mean, 0.0) ** 2).sum(0)
        fitted = cls(mean, np.diag((variance + ridge) / (number + ridge)))
        objective: list[float] = []
        for _ in range(iterations):
            precision, log_det = _inverse(fitted.covariance)
            residual, spread, log_prob = fitted._complete(table, precision, log_det)
            objective.append(float(log_prob.sum() - ridge / 2 * (log_det + np.trace(precision))))
            shift = residual.mean(0)
            centred = residual - shift
            covariance = (centred.T @ centred + spread + ridge * np.eye(len(mean))) / (len(table) + ridge)
            fitted = cls(fitted.mean + shift, (covariance + covariance.T) / 2, tuple(objective))
            if len(objective) > 1 and objective[-1] - objective[-2] < tolerance * abs(objective[-1]):
                break
        return fitted

    def impute(self, table: np.ndarray) -> np.ndarray:
        """The table with every gap filled by its mean given what its row has."""
        table = np.asarray(table, dtype=np.float64)
        residual, _, _ = self._complete(table, *_inverse(self.covariance))
        return np.where(np.isnan(table), self.mean + residual, table)

    def log_prob(self, table: np.ndarray) -> np.ndarray:
        """(N,) log-density of what each row has."""
        return self._complete(np.asarray(table, dtype=np.float64), *_inverse(self.covariance))[2]

    def _complete(self, table: np.ndarray, precision: np.ndarray, log_det: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals completed by their conditional means (N, F), Σ_n Cov_n (F, F), and log p of what each row has (N,)."""
        log_dets, residual, spread = np.full(len(table), log_det), np.nan_to_num(table - self.mean), np.zeros_like(self.covariance)
        for rows, lacking in _patterns(np.isnan(table)):
            block = np.ix_(lacking, lacking)
            conditional, of_block = _inverse(precision[block])
            residual[np.ix_(rows, lacking)] = -residual[rows] @ precision[:, lacking] @ conditional
            spread[block] += len(rows) * conditional
            log_dets[rows] += of_block
        quadratic = ((residual @ precision) * residual).sum(1)
        return residual, spread, -0.5 * (quadratic + log_dets + np.log(2 * np.pi) * (~np.isnan(table)).sum(1))


def _patterns(missing: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows and the missing columns of every pattern of gaps that has any."""
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    for pattern, rows in zip(patterns, np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1]), strict=True):
        if pattern.any():
            yield rows, np.flatnonzero(pattern)


def _inverse(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """The inverse and the log-determinant of a positive definite matrix, from one Cholesky factor (numpy has no such inverse)."""
    factor = torch.linalg.cholesky(torch.from_numpy(matrix))
    return torch.cholesky_inverse(factor).numpy(), 2 * float(factor.diagonal().log().sum())
