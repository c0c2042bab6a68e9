"""The progress bar: steps, the bound by subset size, and the validation bound."""

import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars


class Progress:
    """A bar on a terminal's standard error; elsewhere (a log file, a test) nothing.

    Arguments:
        shown: whether to show it at all.
        steps: how many there will be.
        modalities: how many subset sizes there are.
    """

    def __init__(self, shown: bool, steps: int, modalities: int):
        self.modalities, self.bars = modalities, None
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
        if not self.bars:
            return
        by_size = "  ".join(
            f"{size}: {row[f'bound_of_{size}']:.1f}"
            for size in range(1, self.modalities + 1)
            if row[f"bound_of_{size}"] == row[f"bound_of_{size}"]
        )
        valid = f"  validation {row['validation']:.2f}" if "validation" in row else ""
        self.bars.update(self.task, row=f"bound {row['bound']:.2f} (by size {by_size}){valid}")
