"""The progress bar: steps, the bound by subset size, and the validation bound; in a log file, a line now and then."""

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars


class Progress:
    """A bar on a terminal's standard error; elsewhere a line of an evaluation, at most every ten seconds.

    Arguments:
        shown: whether to show it at all.
        steps: how many there will be.
        modalities: how many subset sizes there are.
    """

    def __init__(self, shown: bool, steps: int, modalities: int):
        self.shown, self.steps, self.modalities, self.said = shown, steps, modalities, time.monotonic()
        self.bars = None
        if shown and sys.stderr.isatty():
            columns = (BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[row]}"))
            self.bars = Bars(*columns, console=Console(stderr=True), transient=False)
            self.task = self.bars.add_task("", total=steps, row="")

    def __enter__(self) -> "Progress":
        if self.bars:
            self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bars:
            self.bars.stop()

    def advance(self, step: int) -> None:
        """`step` steps are done."""
        if self.bars:
            self.bars.update(self.task, completed=step)

    def row(self, row: dict[str, Any]) -> None:
        """Show an evaluation: the bound, and L_k by the number of given modalities."""
        sizes = {size: row[f"bound_of_{size}"] for size in range(1, self.modalities + 1)}
        by_size = "  ".join(f"{size}: {value:.1f}" for size, value in sizes.items() if value == value)
        valid = f"  validation {row['validation']:.2f}" if "validation" in row else ""
        text = f"bound {row['bound']:.2f} (by size {by_size}){valid}"
        if self.bars:
            self.bars.update(self.task, row=text)
        elif self.shown and time.monotonic() - self.said > 10:
            self.said = time.monotonic()
            sys.stderr.write(f"step {row['step']:,} of {self.steps:,}: {text}\n")
