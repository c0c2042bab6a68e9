"""Which rows of several tables are the same data point: ids told from columns, and matched."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from codevae.data.separated import BY_POSITION
from codevae.data.sources import Raw
from codevae.data.texts import texts
from codevae.errors import InputError, listed

CHOOSE = "name the column of ids, --id COLUMN (id='COLUMN'), or match rows by their position, --id none (id='none')"


@dataclass(frozen=True)
class Rows:
    """The data points of several tables.

    Arguments:
        ids: one text per data point, in the order of first appearance.
        take: per table, the row of every data point, and −1 where it has none.
        by_position: whether the ids are only row numbers.
    """

    ids: np.ndarray
    take: dict[str, np.ndarray]
    by_position: bool


def identify(raw: Raw, id: str | None = None) -> Raw:
    """The table with its ids apart from its columns, and checked to be ids."""
    if not raw.data.size:
        raise InputError(f"{raw.file}: expected at least one row and one column, got {len(raw.data)} rows; give a table that has some.")
    if id == BY_POSITION:
        data = raw.data.reset_index(drop=True) if isinstance(raw.data, pd.DataFrame) else raw.data
        return replace(raw, data=data, ids=None, id_name=None)
    if not raw.array:
        raw = _take_ids(raw, id)
    return _checked(raw) if raw.ids is not None else raw


def _take_ids(raw: Raw, id: str | None) -> Raw:
    frame: pd.DataFrame = raw.data
    if frame.index.nlevels > 1:
        raise InputError(f"{raw.file}: expected one id per row, got an index of {frame.index.nlevels} levels; join them into one.")
    plain = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
    if not plain and id in (None, frame.index.name):
        named, ids = frame.index.name, pd.Series(frame.index)
    else:
        named = next(iter(frame.columns), None) if id is None else id
        if named not in frame:
            raise InputError(f"{raw.file}: it has no column {named!r} for the ids, its columns are {listed(frame.columns)}; {CHOOSE}.")
        ids, frame = frame[named], frame.drop(columns=named)
    spelled = texts(ids).to_numpy()
    numbers = pd.to_numeric(pd.Series(spelled), errors="coerce")
    if id is None and numbers.notna().all() and (numbers % 1 != 0).any():
        shown = ", ".join(str(text) for text in spelled[:3])
        raise InputError(f"{raw.file}: its first column, {named!r}, holds numbers ({shown}) that do not look like ids; {CHOOSE}.")
    return replace(raw, data=frame.reset_index(drop=True), ids=spelled, id_name=str(named or "id"))


def _checked(raw: Raw) -> Raw:
    ids = pd.Series(raw.ids, dtype=object)
    unnamed = replace(raw, ids=None)  # to say where a row is without its id
    if ids.isna().any():
        row = int(ids.isna().to_numpy().argmax())
        raise InputError(
            f"{raw.file}: {unnamed.where(row)} has no id in {raw.id_name!r} (it is empty, or a word for missing such as NA); "
            f"give it one, or {CHOOSE}."
        )
    again = ids.duplicated().to_numpy()
    if again.any():
        second = int(again.argmax())
        first = int((ids == ids[second]).to_numpy().argmax())
        raise InputError(
            f"{raw.file}: the id {ids[second]!r} stands in {unnamed.where(first)} and in {unnamed.where(second)}, but ids must be unique; "
            f"correct them, or {CHOOSE}."
        )
    return raw


def match(raws: Sequence[Raw], leading: Sequence[Raw]) -> Rows:
    """Every data point of the `leading` tables, once, and where it stands in each table."""
    without = [raw for raw in raws if raw.ids is None]
    if not without:
        _some_in_common(raws)
        ids = pd.Index(pd.unique(np.concatenate([raw.ids for raw in leading])), dtype=object)
        take = {raw.name: pd.Index(raw.ids, dtype=object).get_indexer(ids) for raw in raws}
        return Rows(ids.to_numpy().astype(str), take, by_position=False)
    if len(without) < len(raws):
        named = next(raw for raw in raws if raw.ids is not None)
        raise InputError(
            f"{without[0].file} has no ids, but {named.file} has; give both ids (an .npz may hold an array called 'ids'), "
            "or match rows by their position, --id none (id='none')."
        )
    count = len(raws[0].data)
    for raw in raws:
        if len(raw.data) != count:
            raise InputError(
                f"rows are matched by their position, but {raws[0].file} has {count} rows and {raw.file} has {len(raw.data)}; "
                "leave cells empty where a row lacks something, or give the tables ids."
            )
    return Rows(np.arange(count).astype(str), {raw.name: np.arange(count) for raw in raws}, by_position=True)


def _some_in_common(raws: Sequence[Raw]) -> None:
    """An error if a table shares no id with any other."""
    for raw in raws:
        others = [other for other in raws if other is not raw]
        if others and set().union(*(other.ids for other in others)).isdisjoint(raw.ids):
            raise InputError(
                f"{raw.file} shares no id with {', '.join(other.file for other in others)}: {listed(raw.ids[:3])} against "
                f"{listed(others[0].ids[:3])}; write the ids the same way in all tables, or {CHOOSE}."
            )
