"""A column of a table: what its cells must be, and the numbers that stand for them.

A column is a vector of numbers to a model: numbers and counts as they are, yes/no as 1 and 0, categories as codes 0 … C − 1, NaN
where nothing is. `levels` remembers what stood in the cells for 0, 1, …, so that they can be written back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from codevae.data.sources import Raw
from codevae.data.texts import spell, texts
from codevae.errors import InputError, listed

KINDS = ("number", "count", "yes/no", "category")
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Arguments:
        name: as in the file.
        kind: "number", "count", "yes/no" or "category".
        levels: what stands in the cells for 0, 1, …; none for numbers and counts.

    Example:
        >>> Column("smoker", "yes/no", ("no", "yes")).codes(pd.Series(["yes", "No", None])).tolist()
        [1.0, 0.0, nan]
    """

    name: str
    kind: str
    levels: tuple[Any, ...] = ()

    @property
    def as_is(self) -> bool:
        """Whether a number in a cell is the number that stands for it."""
        return self.levels in ((), (0, 1)) and bool not in map(type, self.levels)

    @property
    def expected(self) -> str:
        """What may stand in its cells, for messages."""
        return f"one of {listed(self.levels)}" if self.levels else {"number": "a finite number", "count": "a count (0, 1, 2, …)"}[self.kind]

    def codes(self, cells: pd.Series) -> np.ndarray:
        """The codes of cells that hold levels; NaN where nothing is, −1 where it is something else."""
        known, found = [str(spell(level)) for level in self.levels], texts(cells)
        if self.kind == "yes/no":
            known, found = [text.casefold() for text in known], found.map(str.casefold, na_action="ignore")
        return np.where(found.isna(), np.nan, pd.Index(known, dtype=object).get_indexer(pd.Index(found, dtype=object)))

    def cells(self, values: np.ndarray) -> Any:
        """The cells for numbers that a model gives, rounded to a count or to the next level; empty for NaN."""
        missing = np.isnan(values)
        if self.levels:
            codes = np.where(missing, 0, values.round()).astype(int).clip(0, len(self.levels) - 1)
            found = np.array(self.levels, dtype=object)[codes]
            found[missing] = None
            return pd.Series(found).infer_objects().to_numpy()
        if self.kind == "number":
            return values
        whole = np.where(missing, 0, values.round()).clip(0).astype(np.int64)
        return pd.arrays.IntegerArray(whole, missing) if missing.any() else whole


def is_number(dtype: Any) -> bool:
    """Whether cells of this pandas type are numbers already; true and false are not."""
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def encode(columns: Sequence[Column], raw: Raw) -> np.ndarray:
    """The table as numbers, float64 (rows, F), in the order of the columns; a cell that is not what its column holds raises."""
    frame: pd.DataFrame = raw.data
    dtypes = dict(frame.dtypes.items())
    matrix = np.empty((len(frame), len(columns)))
    ready = [place for place, column in enumerate(columns) if column.as_is and is_number(dtypes[column.name])]
    matrix[:, ready] = frame[[columns[place].name for place in ready]].to_numpy(np.float64, na_value=np.nan)
    for place in sorted(set(range(len(columns))) - set(ready)):
        column = columns[place]
        cells = frame[column.name]
        if column.levels:
            matrix[:, place] = column.codes(cells)
        else:
            spelled = texts(cells)
            matrix[:, place] = pd.to_numeric(spelled, errors="coerce").fillna(np.inf).mask(spelled.isna())
    _require(columns, raw, matrix)
    return matrix


def _require(columns: Sequence[Column], raw: Raw, matrix: np.ndarray) -> None:
    """An error that shows the first cell which is not what its column holds."""
    bad = np.abs(matrix) > LARGEST
    whole = [place for place, column in enumerate(columns) if column.kind != "number"]
    x = matrix[:, whole]
    bad[:, whole] |= (x < 0) | ((x != np.floor(x)) & ~np.isnan(x))
    binary = [place for place, column in enumerate(columns) if column.kind == "yes/no"]
    bad[:, binary] |= matrix[:, binary] > 1
    if not bad.any():
        return
    place = int(bad.any(0).argmax())
    row, column = int(bad[:, place].argmax()), columns[place]
    cell = spell(raw.data[column.name].iloc[row])
    path, other = f"{raw.name}.{column.name}", {"number": "category", "count": "number", "yes/no": "category"}.get(column.kind)
    anew = f"train with --kind {path}={other} (kinds={{{path!r}: {other!r}}})" if other else "train with data that has it"
    raise InputError(
        f"{raw.file}: column {column.name!r}, {raw.where(row)}: expected {column.expected}, got {cell!r}; "
        f"correct the cell, empty it if its value is not known (NA, NaN and null are empty too), or {anew}."
    )
