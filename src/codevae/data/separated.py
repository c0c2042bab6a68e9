"""CSV and TSV files as frames; what pandas would change silently is kept, and what it would shift is refused."""

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codevae.data.texts import texts
from codevae.errors import InputError

BY_POSITION = "none"
"""What is given as `id` to match rows by their position."""


def read_separated(
    path: Path, separator: str, id: str | None = None, as_text: Callable[[str], bool] = lambda column: False
) -> tuple[pd.DataFrame, np.ndarray]:
    """The table and the line that each row stands on; ids, and what passes for true and false, stay the texts they are.

    Arguments:
        path: a .csv or .tsv file, UTF-8, perhaps compressed (.gz).
        separator: between cells.
        id: the column of ids; None for the first, "none" for none.
        as_text: whether the cells of a column are texts even where they look like numbers ("01" is not 1).
    """
    columns = _header(path, separator)
    id_column = columns[0] if id is None else id
    options: dict[str, Any] = {
        "sep": separator,
        "header": None,
        "skiprows": 1,
        "names": columns,
        "encoding": "utf-8-sig",
        "skipinitialspace": True,
        "low_memory": False,
        "skip_blank_lines": id == BY_POSITION,  # else they are counted, so that messages can name lines, and dropped below
    }
    kept = [name for name in columns if name != id_column and as_text(name)]
    frame = pd.read_csv(path, dtype=dict.fromkeys([id_column, *kept], str), **options)
    frame = frame.assign(**{name: _unless_lost(frame[name]) for name in kept})
    flags = [name for name, dtype in frame.dtypes.items() if dtype in (bool, object)]
    if flags:
        frame[flags] = pd.read_csv(path, dtype=str, usecols=flags, **options)[flags]
    if id != BY_POSITION and id_column in frame:
        without_id = frame.index[frame[id_column].isna()]
        frame = frame.drop(index=without_id[frame.loc[without_id].isna().all(axis=1)])
    return frame.reset_index(drop=True), frame.index.to_numpy() + 2


def _unless_lost(cells: pd.Series) -> pd.Series:
    """Texts as numbers where that changes no more than 1.0 to 1."""
    numbers = pd.to_numeric(cells, errors="coerce")
    return numbers if (texts(numbers) == cells.str.removesuffix(".0"))[cells.notna()].all() else cells


def _header(path: Path, separator: str) -> list[str]:
    """The names of the columns. R leaves out the one of the ids."""
    encoding: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""}
    with gzip.open(path, "rt", **encoding) if path.suffix.lower() == ".gz" else path.open(**encoding) as handle:
        reader = csv.reader(handle, delimiter=separator, skipinitialspace=True)
        names, first = [name.strip() for name in next(reader, [])], next(reader, [])
    if not any(names):
        raise InputError(f"{path}: expected a first line with the names of the columns, but it is empty; write them there.")
    other = [mark for mark in (";", "\t", ",") if mark != separator and mark in names[0]]
    if len(names) == 1 and other:
        raise InputError(
            f"{path}: its cells seem to be separated by {other[0]!r}, but .csv means ',' and .tsv a tab; save it as one of these."
        )
    if len(first) == len(names) + 1 and first[-1]:
        names = ["id", *names]
    if len(first) > len(names):
        raise InputError(
            f"{path}: line 2 has {len(first)} cells, but the header names {len(names)} columns; "
            f"name them all, and let no line end in {separator!r}."
        )
    return _distinct(path, ["id" if not name and place == 0 else name for place, name in enumerate(names)])


def _distinct(path: Path, names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        if not name:
            raise InputError(f"{path}: column {place} has no name; write one into the header.")
        if name in seen:
            raise InputError(f"{path}: columns {seen[name]} and {place} are both called {name!r}; give each a name of its own.")
        seen[name] = place
    return names
