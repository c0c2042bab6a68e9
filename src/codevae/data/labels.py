"""Label columns: taken out of the tables, so that a model does not see them, and kept beside the data points."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from codevae.data.rows import Rows
from codevae.data.sources import Raw
from codevae.data.texts import texts, unspell
from codevae.errors import InputError, listed


def take_labels(raws: Sequence[Raw], wanted: Sequence[str], rows: Rows) -> dict[str, np.ndarray]:
    """The labels of every data point, out of whichever tables have them: numbers (NaN where missing) or texts ("" where missing)."""
    return {label: unspell(_label(raws, label, rows)) for label in wanted if any(label in raw.columns for raw in raws)}


def require_labels(raws: Sequence[Raw], wanted: Sequence[str]) -> None:
    """An error if no table has a column of that name."""
    absent = [label for label in wanted if not any(label in raw.columns for raw in raws)]
    if absent:
        columns = ", ".join(f"{raw.file} has {listed(raw.columns, most=6)}" for raw in raws)
        raise InputError(
            f"labels: no table has a column {listed(absent)}; {columns}. Name one of these columns, or add a table that has it."
        )


def _label(raws: Sequence[Raw], label: str, rows: Rows) -> np.ndarray:
    """The label as texts; tables may repeat it, but must agree."""
    found = np.full(len(rows.ids), np.nan, dtype=object)
    source = ""
    for raw in raws:
        if label not in raw.columns:
            continue
        take = rows.take[raw.name]
        here = np.where(take < 0, np.nan, texts(raw.data[label]).to_numpy()[take])
        missing = pd.isna(found)
        clash = ~missing & ~pd.isna(here) & (found != here)
        if clash.any():
            row = int(clash.argmax())
            raise InputError(
                f"labels: {label!r} of {str(rows.ids[row])!r} is {found[row]!r} in {source} and {here[row]!r} in {raw.file}; "
                "correct one of them, or give only one table this column."
            )
        found, source = np.where(missing, here, found), raw.file
    return found
