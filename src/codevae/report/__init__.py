"""The report: a run and its data → numbers, drawings, and one HTML page that needs nothing but itself."""

from pathlib import Path

from codevae.batch import Batch
from codevae.files import write_whole
from codevae.model import MultimodalVAE
from codevae.report.page import page
from codevae.report.results import Results, evaluate, measure
from codevae.training import Run, load

__all__ = ["Results", "evaluate", "measure", "page", "write"]


def write(
    run: str | Path | Run,
    train: Batch | None = None,
    test: Batch | None = None,
    *,
    out: str | Path | None = None,
    label: str | None = None,
    fast: bool = False,
    shown: str = "",
    model: MultimodalVAE | None = None,
    samples: int = 100,
    hide: float = 0.2,
    seed: int = 0,
) -> Path:
    """Write everything about a run on one page; the same run, data and seed give the same bytes.

    Arguments:
        run: its folder.
        train: the data points of its training; probes and reference imputers learn from them.
        test: data points that training did not see, which every number is about. Without them (or with `train` once more), 30 % of
            `train` are judged, and the page says so.
        out: the file (default: report.html in the run folder).
        label: the label that colours and that probes predict (default: the first with few values).
        fast: leave out what takes long: t-SNE becomes PCA, reference imputers are column means, likelihoods have ten samples.
        shown: what the judged data points are, in the caller's words.
        model: the loaded model, where `load` needs more than the folder.
        samples: importance samples behind the log-likelihood.
        hide: the share of the observed modality entries that is hidden, to be imputed.
        seed: of what is hidden, and of the draws.
    """
    folder = run if isinstance(run, Run) else Run(run)
    results = measure(folder, load(folder.path) if model is None else model, train, test, label, fast, shown, samples, hide, seed)
    target = folder.report_file if out is None else Path(out)
    with write_whole(target) as temporary:
        temporary.write_text(page(results), encoding="utf-8", newline="\n")
    return target
