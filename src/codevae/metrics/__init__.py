"""Numbers about a trained model. Each says what it measures, on what, and by which protocol."""

from codevae.metrics.diagnostics import subset_table, table_by_size
from codevae.metrics.likelihood import LogLikelihood, log_likelihood
from codevae.metrics.probe import linear_probe

__all__ = ["LogLikelihood", "linear_probe", "log_likelihood", "subset_table", "table_by_size"]
