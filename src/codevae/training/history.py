"""What happened in training, one row per evaluation."""

import csv
import io
from pathlib import Path
from typing import Any

from codevae.errors import InputError
from codevae.files import write_whole


class History:
    """Rows of numbers by name; `history["bound"]` is a column.

    Example:
        >>> history = History([{"step": 50, "bound": -3.0}, {"step": 100, "bound": -2.0}])
        >>> history["bound"]
        [-3.0, -2.0]
    """

    def __init__(self, rows: list[dict[str, Any]] | None = None):
        self.rows = list(rows or [])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> list[Any]:
        if self.rows and name not in self.columns:
            raise InputError(f"history: no column {name!r}; the columns are {', '.join(self.columns)}.")
        return [row.get(name) for row in self.rows]

    def __repr__(self) -> str:
        last = ", ".join(
            f"{name} {value:.4g}" for name, value in (self.rows[-1] if self.rows else {}).items() if isinstance(value, int | float)
        )
        return f"History({len(self)} rows; {last})" if self.rows else "History(no rows)"

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order in which they first came."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def write(self, path: str | Path) -> None:
        """As CSV, whole or not at all; every number with all its digits."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns)
        writer.writeheader()
        writer.writerows({name: repr(value) if isinstance(value, float) else value for name, value in row.items()} for row in self.rows)
        with write_whole(path) as temporary:
            temporary.write_text(text.getvalue(), encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> "History":
        """The history that `write` wrote."""
        with Path(path).open(encoding="utf-8", newline="") as file:
            return cls([{name: _number(cell) for name, cell in row.items() if cell != ""} for row in csv.DictReader(file)])


def _number(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
