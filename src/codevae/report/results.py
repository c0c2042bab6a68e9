"""Everything that a report shows, as plain values: computed here, drawn and written elsewhere."""

import json
from dataclasses import dataclass
from typing import Any

from codevae.batch import Batch
from codevae.data import Schema
from codevae.metrics import subset_table
from codevae.model import MultimodalVAE
from codevae.report.about import About, about
from codevae.report.codes import Maps, Probe, maps, probe
from codevae.report.examples import Gallery, examples
from codevae.report.rows import Omitted, Rows, label_name
from codevae.report.scores import Imputed, Likelihoods, imputed, likelihoods
from codevae.training import History, Run


@dataclass(frozen=True)
class Results:
    """The content of a report; what cannot be had is `Omitted`.

    Arguments:
        about: what was trained.
        note: which data points are judged.
        history: of the training.
        subsets: the rows of `metrics.subset_table`.
        maps: the codes in two dimensions.
        probe: of a label.
        examples: per modality.
        imputed: errors on hidden entries.
        likelihoods: of the judged data points.
    """

    about: About
    note: str
    history: History | Omitted
    subsets: list[dict[str, Any]] | Omitted
    maps: Maps | Omitted
    probe: Probe | Omitted
    examples: list[Gallery] | Omitted
    imputed: Imputed | Omitted
    likelihoods: Likelihoods | Omitted


def measure(
    run: Run,
    model: MultimodalVAE,
    train: Batch | None = None,
    test: Batch | None = None,
    label: str | None = None,
    fast: bool = False,
    told: str = "",
    samples: int = 100,
    hide: float = 0.2,
    seed: int = 0,
) -> Results:
    """Compute a report; `write` explains the arguments."""
    history = run.history if run.history.rows else Omitted("The run has no history.csv, or nothing in it yet.")
    rows = Rows.of(model, train, test, told, seed)
    if isinstance(rows, Omitted):
        facts = about(run, model, train, test)
        return Results(facts, "", history, rows, rows, rows, rows, rows, rows)
    judged = rows.judged
    label = label_name(judged, label)
    several = len(model.names) > 1
    return Results(
        about=about(run, model, train, judged),
        note=rows.note,
        history=history,
        subsets=subset_table(model, judged, seed=seed) if several else Omitted("A single modality has a single subset."),
        maps=maps(model, rows, label, fast, seed),
        probe=probe(model, rows, label, seed=seed),
        examples=examples(model, rows, label, _schema(run), seed=seed),
        imputed=imputed(model, rows, hide, fast, seed),
        likelihoods=likelihoods(model, rows, min(samples, 10) if fast else samples, seed),
    )


def _schema(run: Run) -> Schema | None:
    """What training learned of its tables, if it had tables."""
    return Schema.from_json(json.loads(run.schema_file.read_text(encoding="utf-8"))) if run.schema_file.is_file() else None


def evaluate(
    model: MultimodalVAE,
    train: Batch | None = None,
    test: Batch | None = None,
    label: str | None = None,
    samples: int = 100,
    hide: float = 0.2,
    seed: int = 0,
) -> dict[str, float]:
    """The numbers of a report without the page, by name.

    Arguments:
        model: a trained model.
        train: the data points of its training; probes and reference imputers learn from them.
        test: data points that training did not see.
        label: the label that probes predict (default: the first with few values).
        samples: importance samples behind the log-likelihood.
        hide: the share of the observed modality entries that is hidden, to be imputed.
        seed: of what is hidden, and of the draws.
    """
    rows = Rows.of(model, train, test, "", seed)
    if isinstance(rows, Omitted):
        return {}
    found: dict[str, float] = {"data points": len(rows.judged)}
    likelihood = likelihoods(model, rows, samples, seed)
    found["log-likelihood"] = likelihood.joint.mean
    found |= {f"log-likelihood, {name}": estimate.mean for name, estimate in likelihood.modalities.items()}
    filled = imputed(model, rows, hide, seed=seed)
    if isinstance(filled, Imputed):
        for name, error in filled.errors.items():
            whose = "" if name == "model" else f" by {name}"
            found |= {f"imputation RMSE{whose}": error.overall_rmse, f"imputation accuracy{whose}": error.overall_accuracy}
        found |= {f"imputation RMSE, {name}": value for name, value in filled.errors["model"].rmse.items()}
        found |= {f"imputation accuracy, {name}": value for name, value in filled.errors["model"].accuracy.items()}
    probed = probe(model, rows, label_name(rows.judged, label), seed=seed)
    if isinstance(probed, Probe):
        full = probed.rows[-1]
        found[f"probe accuracy ({probed.label})"] = full["accuracy"]
        found |= {f"probe accuracy, {row['subset']}": row["accuracy"] for row in probed.rows if row["size"] == 1 and row is not full}
    return {name: value for name, value in found.items() if value == value}
