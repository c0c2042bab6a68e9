"""The verbs that judge a trained model: evaluate, report."""

import json
import sys
import webbrowser
from collections.abc import Sequence
from typing import Any

from codevae.cli import parse
from codevae.cli.source import parts, read_for
from codevae.data import fingerprint
from codevae.files import write_whole
from codevae.report import evaluate as judged
from codevae.report import write
from codevae.training import Run, load


def evaluate_options(out: str | None = None, label: str | None = None, samples: int = 100, hide: float = 0.2, seed: int = 0) -> None:
    """What to measure.

    Arguments:
        out: also write the numbers to this JSON file.
        label: the label that probes predict (default: the first with few values).
        samples: importance samples behind the log-likelihood.
        hide: the share of the observed modality entries that is hidden, to be imputed.
        seed: of what is hidden, and of the draws.
    """


def evaluate(words: Sequence[str]) -> int:
    """likelihood, imputation error and probes, as numbers"""
    asked, run, train, test, rows = _opened("evaluate", "Likelihood, imputation error and probes, as numbers.", words, evaluate_options)
    numbers = judged(load(run.path), train, test, label=asked.label, samples=asked.samples, hide=asked.hide, seed=asked.seed)
    print(f"on {rows}")
    for name, value in numbers.items():
        print(f"  {name:<44} {value:,.4g}" if isinstance(value, float) else f"  {name:<44} {value}")
    if asked.out:
        with write_whole(asked.out) as temporary:
            temporary.write_text(json.dumps({"on": rows, **numbers}, indent=1), encoding="utf-8")
    return 0


def report_options(out: str | None = None, label: str | None = None, fast: bool = False, open: bool = True) -> None:
    """What to show.

    Arguments:
        out: the page to write (default: report.html in the run folder).
        label: the label that colours the embedding (default: the first with few values).
        fast: leave out what takes long: neighbours' embedding and reference imputers.
        open: show it in a browser when there is a screen.
    """


def report(words: Sequence[str]) -> int:
    """everything on one HTML page, which opens offline"""
    asked, run, train, test, rows = _opened(
        "report", "Everything about a run on one HTML page, which opens offline.", words, report_options
    )
    page = write(run, train, test, out=asked.out, label=asked.label, fast=asked.fast, shown=rows)
    print(f"{page}: {page.stat().st_size / 1e6:.1f} MB, on {rows}")
    if asked.open and sys.stdout.isatty():
        webbrowser.open(page.resolve().as_uri())
    return 0


def _opened(verb: str, about: str, words: Sequence[str], options: Any) -> tuple[Any, Run, Any, Any, str]:
    """The run, what it was trained with, and what to judge it on: what was kept aside, else whatever is given."""
    made = parse.parser(verb, about)
    made.add_argument("run", help="the run folder")
    made.add_argument(
        "tables", nargs="*", help="other samples to judge it on (default: those of the training that were kept aside, else all)"
    )
    parse.add(made, options)
    asked = parse.parse(made, words)
    run = Run(asked.run)
    train, test, _ = parts(run, read_for(run, []))
    if asked.tables:
        other = read_for(run, asked.tables).batch
        if fingerprint(other) != fingerprint(read_for(run, []).batch):
            return asked, run, train, other, f"{len(other):,} other samples"
    if test is not None:
        return asked, run, train, test, f"{len(test):,} samples that were kept aside"
    return asked, run, train, train, f"the {len(train):,} samples it was trained on; train with --test 0.2 to keep some aside"
