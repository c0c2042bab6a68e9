"""Which columns hold numbers, counts, yes/no or categories: guessed from the cells, unless it is said."""

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from codevae.data.columns import Column, encode, is_number
from codevae.data.sources import Raw
from codevae.data.texts import texts
from codevae.errors import InputError, listed

PAIRS = (("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"))


def empty_columns(raw: Raw) -> list[str]:
    """The columns in which nothing stands."""
    frame: pd.DataFrame = raw.data
    nothing = frame.isna().all().to_dict()
    nothing |= {name: texts(frame[name]).isna().all() for name, dtype in frame.dtypes.items() if not is_number(dtype)}
    return [name for name, so in nothing.items() if so]


def recognise(raw: Raw, said: Mapping[str, str]) -> tuple[tuple[Column, ...], np.ndarray]:
    """The columns of a table, each of the kind that was said or else that its cells suggest, and the table as numbers.

    Cells that are all numbers are yes/no if they are 0 and 1, counts if they look like counts, else numbers. Texts are yes/no if they
    are one of the usual pairs, and categories if few of them return again and again. Anything else is an error that asks.

    Arguments:
        raw: the table.
        said: kinds by column, where they are not to be guessed.
    """
    frame: pd.DataFrame = raw.data
    _refuse_empty(raw)
    spelled = {name: texts(frame[name]) for name, dtype in frame.dtypes.items() if not is_number(dtype)}
    asked = {name: cells for name, cells in spelled.items() if said.get(name) != "category"}  # where "01" is not 1
    parsed = {name: numbers for name, cells in asked.items() if (numbers := _parsed(cells)) is not None}
    ready = [name for name in raw.columns if name not in spelled]
    numbers = pd.DataFrame(frame[ready].to_numpy(np.float64, na_value=np.nan), columns=ready).assign(**parsed)
    whole_table = len(numbers.columns) == len(raw.columns)
    guessed = dict(zip(numbers.columns, _kinds_of_numbers(numbers.to_numpy(), whole_table), strict=True))
    kinds = {name: said.get(name) or guessed.get(name) or _kind_of_texts(raw, name, spelled[name]) for name in raw.columns}
    _refuse_texts(raw, {name: spelled[name] for name, kind in kinds.items() if kind == "text"})
    columns = []
    for name, kind in kinds.items():
        levels = () if kind in ("number", "count") else _levels(raw, name, kind, numbers[name] if name in numbers else spelled[name])
        columns.append(Column(name, kind, levels))
    return tuple(columns), encode(columns, raw)


def _refuse_empty(raw: Raw) -> None:
    empty = empty_columns(raw)
    if empty:
        raise InputError(
            f"{raw.file}: nothing stands in the columns {listed(empty)}; drop them from the file, or leave them out with "
            f"--ignore {raw.name}.{empty[0]} (ignore=['{raw.name}.{empty[0]}']); --ignore empty leaves out every such column."
        )


def _parsed(cells: pd.Series) -> pd.Series | None:
    """Texts as numbers, if all of them are."""
    numbers = pd.to_numeric(cells, errors="coerce")
    return numbers if (numbers.notna() | cells.isna()).all() else None


def _kinds_of_numbers(x: np.ndarray, whole_table: bool) -> list[str]:
    """The kind of every column of numbers (rows, F).

    A column looks like counts if it holds whole numbers from 0 up, more than ten different ones (in its first thousand rows), that
    vary more than their mean (a Poisson's variance is its mean) and reach down to a tenth of the largest: years and heights do not.
    Where counts are small most columns of a table show too few values to tell: a table of at least 20 columns, all of them of whole
    numbers from 0 up and a tenth of them plainly counts, is a table of counts throughout.
    """
    low, high = np.nanmin(x, 0), np.nanmax(x, 0)
    whole = (low >= 0) & ((x == np.floor(x)) | np.isnan(x)).all(0)
    count = whole & (high > 10) & (10 * low <= high)
    sure = x[:, count]
    different = (np.diff(np.sort(sure[:1000], axis=0), axis=0) > 0).sum(0) + 1
    count[count] = (different > 10) & (np.nanvar(sure, 0) > np.nanmean(sure, 0))
    if whole_table and x.shape[1] >= 20 and whole.all() and count.mean() >= 0.1:
        count[:] = True
    return np.where(count, "count", np.where(whole & (low == 0) & (high == 1), "yes/no", "number")).tolist()


def _kind_of_texts(raw: Raw, name: str, cells: pd.Series) -> str:
    present = cells.dropna()
    distinct = present.unique()
    if {text.casefold() for text in distinct} in map(set, PAIRS) or _truths(raw, name):
        return "yes/no"
    if pd.to_numeric(present, errors="coerce").notna().mean() >= 0.5:
        return "number"  # with some text in it: the error will show where
    if len(distinct) <= len(present) / 2 and len(distinct) <= max(20, len(present) / 20):
        return "category"
    return "text"


def _refuse_texts(raw: Raw, columns: dict[str, pd.Series]) -> None:
    """Texts of no kind, all such columns of the table at once."""
    if not columns:
        return
    name, cells = next(iter(columns.items()))
    present, paths = cells.dropna(), [f"{raw.name}.{column}" for column in columns]
    distinct, path = present.unique(), paths[0]
    others = f" (so do {listed(list(columns)[1:])})" if len(columns) > 1 else ""
    raise InputError(
        f"{raw.file}: column {name!r} holds text{others}, {len(distinct)} different ones in {len(present)} rows, such as "
        f"{listed(distinct[:2])}: too many to be categories; leave it out with --ignore {shlex.quote(','.join(paths))} (ignore={paths!r}), "
        f"or say that they are, --kind {shlex.quote(f'{path}=category')} (kinds={{{path!r}: 'category'}}); dates need to be numbers."
    )


def _truths(raw: Raw, name: str) -> bool:
    """Whether the cells are True and False themselves rather than these words."""
    return all(isinstance(value, bool | np.bool_) for value in raw.data[name].dropna().unique())


def _levels(raw: Raw, name: str, kind: str, cells: pd.Series) -> tuple[Any, ...]:
    """What stands for 0, 1, … in a column of yes/no or categories."""
    if _truths(raw, name):
        return (False, True)
    distinct = sorted(cells.dropna().unique())
    if is_number(cells.dtype):
        distinct = [int(value) if float(value).is_integer() else float(value) for value in distinct]
    if kind == "category":
        return tuple(distinct)
    if is_number(cells.dtype) and set(distinct) <= {0, 1}:
        return (0, 1)
    if not is_number(cells.dtype):
        common = {text.casefold(): text for text in cells.dropna().value_counts(ascending=True).index}  # of Yes and yes the usual one
        pair = next((pair for pair in PAIRS if set(pair) == set(common)), sorted(common))
        distinct = [common[text] for text in pair]
    if len(distinct) != 2:
        raise InputError(
            f"kinds: '{raw.name}.{name}' cannot be yes/no: expected two different values in {raw.file}, got {listed(distinct)}; "
            "make it a category."
        )
    return tuple(distinct)
