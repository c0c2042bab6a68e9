"""Numbers about a trained model. Each says what it measures, on what, and by which protocol."""

from codevae.metrics.diagnostics import subset_table, table_by_size
from codevae.metrics.em import Gaussian
from codevae.metrics.imputation import (
    ImputationError,
    Layout,
    chained_regressions,
    column_means,
    fill_by,
    gaussian,
    imputation_error,
    nearest_rows,
)
from codevae.metrics.likelihood import LogLikelihood, log_likelihood
from codevae.metrics.probe import linear_probe

__all__ = [
    "Gaussian",
    "ImputationError",
    "Layout",
    "LogLikelihood",
    "chained_regressions",
    "column_means",
    "fill_by",
    "gaussian",
    "imputation_error",
    "linear_probe",
    "log_likelihood",
    "nearest_rows",
    "subset_table",
    "table_by_size",
]
