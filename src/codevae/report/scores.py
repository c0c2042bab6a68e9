"""How well a model predicts: hidden modalities against reference imputers, and the likelihood of the data."""

from dataclasses import dataclass

import torch

from codevae.data import remove
from codevae.metrics import log_likelihood
from codevae.metrics.imputation import ImputationError, Layout, column_means, fill_by, gaussian, imputation_error, nearest_rows
from codevae.model import MultimodalVAE
from codevae.report.rows import Omitted, Rows, sample

REFERENCES = {"column means": (column_means, 50_000), "5 nearest rows": (nearest_rows, 5_000), "Gaussian (EM)": (gaussian, 1_000)}
"""Reference imputers, and the number of columns above which each takes too long."""

DECODED = 200_000_000
"""At most so many entries, over all draws, are decoded for the likelihood."""


@dataclass(frozen=True)
class Imputed:
    """Errors of imputers on the same hidden entries.

    Arguments:
        hide: the share of the observed modality entries that was to be hidden.
        hidden: how many modality entries were.
        of: how many were observed.
        learned: from how many data points the reference imputers learned.
        errors: by imputer; the model's own is called "model".
        left_out: reference imputers that were not run, and why.
    """

    hide: float
    hidden: int
    of: int
    learned: int
    errors: dict[str, ImputationError]
    left_out: dict[str, str]


@dataclass(frozen=True)
class Estimate:
    """A mean over data points, in nats, with its standard error."""

    mean: float
    error: float
    points: int


@dataclass(frozen=True)
class Likelihoods:
    """Importance-sampled log-likelihoods.

    Arguments:
        samples: S.
        joint: of all that is observed.
        modalities: of each modality alone.
        effective: the median effective number of samples behind `joint`.
    """

    samples: int
    joint: Estimate
    modalities: dict[str, Estimate]
    effective: float


def imputed(model: MultimodalVAE, rows: Rows, hide: float = 0.2, fast: bool = False, seed: int = 0) -> Imputed | Omitted:
    """Hide observed modality entries, fill them, compare.

    Arguments:
        model: a trained model.
        rows: of the judged ones entries are hidden; reference imputers learn from the fitted ones.
        hide: the share of the observed (data point, modality) entries to hide; each data point keeps at least one.
        fast: leave out all reference imputers but the column means.
        seed: of what is hidden.
    """
    if len(model.names) < 2:
        return Omitted("With a single modality there is nothing to fill it from.")
    truth, fitted = rows.judged, rows.fitted
    gaps = remove(truth, hide, seed)
    hidden = int((truth.observed & ~gaps.observed).sum())
    if not hidden:
        return Omitted("No entry could be hidden: no data point has two modalities.")
    layout = Layout.learn(fitted, model.modalities)
    errors, left_out = {"model": imputation_error(truth, model.impute(gaps), gaps, layout)}, {}
    for name, (imputer, widest) in REFERENCES.items():
        if fast and imputer is not column_means:
            left_out[name] = "the report was asked to be fast"
        elif layout.width > widest:
            left_out[name] = f"{layout.width:,} columns would take too long"
        else:
            errors[name] = imputation_error(truth, fill_by(imputer, fitted, gaps, layout), gaps, layout)
    return Imputed(hide, hidden, int(truth.observed.sum()), len(fitted), errors, left_out)


def likelihoods(model: MultimodalVAE, rows: Rows, samples: int = 100, seed: int = 0) -> Likelihoods:
    """log p(x) of the judged data points, or of a sample of them, the posterior of all that is observed being the proposal."""
    batch = sample(rows.judged, len(rows.judged), seed, DECODED // samples)
    found = log_likelihood(model, batch, samples=samples, seed=seed)
    some = batch.observed.any(-1).cpu()
    each = {name: _estimate(values) for name, values in found.modalities.items()}
    return Likelihoods(samples, _estimate(found.joint[some]), each, float(found.effective[some].double().median()))


def _estimate(values: torch.Tensor) -> Estimate:
    known = values[~values.isnan()].double()
    error = float(known.std() / len(known) ** 0.5) if len(known) > 1 else float("nan")
    return Estimate(float(known.mean()) if len(known) else float("nan"), error, len(known))
