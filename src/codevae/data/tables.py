"""Reading tables for training, and writing tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codevae.data.columns import KINDS
from codevae.data.labels import require_labels, take_labels
from codevae.data.learned import Images, Table
from codevae.data.recognise import empty_columns
from codevae.data.rows import identify, match
from codevae.data.schema import Schema, Tables, addressed, gather, several
from codevae.data.sources import SEPARATORS, Raw, read_sources
from codevae.errors import InputError, listed
from codevae.files import write_whole

EMPTY = "empty"
"""What is given in `ignore` to leave out every column in which nothing stands."""


def read_tables(
    sources: Any,
    id: str | None = None,
    labels: Sequence[str] | str = (),
    kinds: Mapping[str, str] | None = None,
    ignore: Sequence[str] | str = (),
) -> Tables:
    """Tables as a batch: every table a modality, rows matched by their ids, and what the columns hold.

    A table is named after its file: rna.csv.gz is "rna". Rows are matched over the tables by their ids, in the order of first
    appearance; a row that a table lacks is a missing modality, an empty cell (or NA, NaN, null, …) a missing value. The values are
    numbers: yes/no as 1 and 0, categories as codes. Of .npy and .npz files every array is a modality, named after the file or its
    key; their rows are matched by an array called "ids", or else by position.

    Arguments:
        sources: paths of .csv, .tsv (both perhaps .gz), .parquet, .npy or .npz files, or "name=path", or a dict of name → path,
            DataFrame or array.
        id: the column of ids; the first by default (or a DataFrame's own index); "none" matches rows by their position.
        labels: columns that describe the data points and are not to be modelled: in `batch.labels` instead. They may stand in
            tables of their own.
        kinds: "number", "count", "yes/no" or "category" by "table.column" (or by "table" for all its columns), where the guess is
            not wanted.
        ignore: columns to leave out, as "table.column"; "empty" stands for all in which nothing stands.

    Example:
        >>> rna = pd.DataFrame({"sample": ["a", "b"], "gene1": [0.1, None], "gene2": [1.5, 2.5]})
        >>> protein = pd.DataFrame({"sample": ["b", "c"], "level": [7.5, 8.5], "type": ["x", "y"]})
        >>> tables = read_tables({"rna": rna, "protein": protein}, labels=["type"])
        >>> tables.batch.ids.tolist(), tables.batch.observed.tolist()
        (['a', 'b', 'c'], [[True, False], [True, True], [False, True]])
        >>> tables.batch.labels["type"].tolist()
        ['', 'x', 'y']
    """
    labels, ignore, kinds = several(labels), several(ignore), dict(kinds or {})

    def as_text(name: str, column: str) -> bool:
        return kinds.get(f"{name}.{column}", kinds.get(name)) == "category"

    raws = [identify(raw, id) for raw in read_sources(sources, id, as_text)]
    require_labels(raws, labels)
    ignored = _ignored(ignore, raws)
    kept = [raw.without({*labels, *ignored.get(raw.name, ())}) for raw in raws]
    kept = [raw for raw in kept if raw.columns or isinstance(raw.data, np.ndarray)]
    if not kept:
        raise InputError("sources: no table has a column left beside its ids, labels and ignored columns; give one with values to model.")
    said = _said(kinds, kept)
    rows = match(raws, kept)
    learned = {raw.name: _learn(raw, said.get(raw.name, {}), ignored.get(raw.name, ())) for raw in kept}
    schema = Schema(
        tables=tuple(table for table, _ in learned.values()),
        id=id,
        id_name=None if rows.by_position else next(raw.id_name for raw in raws if raw.id_name),
        labels=tuple(labels),
        notes=tuple(note for name, (table, array) in learned.items() for note in _notes(table, array)),
    )
    return gather(schema, {name: array for name, (_, array) in learned.items()}, rows, take_labels(raws, labels, rows))


def _ignored(ignore: Sequence[str], raws: Sequence[Raw]) -> dict[str, list[str]]:
    found = addressed([key for key in ignore if key != EMPTY], raws, "ignore")
    if EMPTY in ignore:
        for raw in raws:
            if isinstance(raw.data, pd.DataFrame):
                found.setdefault(raw.name, []).extend(empty_columns(raw))
    return found


def _said(kinds: Mapping[str, str], raws: Sequence[Raw]) -> dict[str, dict[str, str]]:
    """Kinds by table and column; what is said of a column goes before what is said of its table."""
    found: dict[str, dict[str, str]] = {raw.name: {} for raw in raws}
    for key, kind in kinds.items():
        if kind not in KINDS:
            raise InputError(f"kinds: expected one of {listed(KINDS)} for {key!r}, got {kind!r}.")
    for key in sorted(kinds, key=lambda key: key not in found):
        for name, columns in addressed([key], raws, "kinds").items():
            found[name].update(dict.fromkeys(columns, kinds[key]))
    return found


def _learn(raw: Raw, said: Mapping[str, str], ignored: Sequence[str]) -> tuple[Table | Images, np.ndarray]:
    return Images.learn(raw) if isinstance(raw.data, np.ndarray) else Table.learn(raw, said, ignored)


def _notes(table: Table | Images, array: np.ndarray) -> list[str]:
    if isinstance(table, Images):
        return []
    constant = np.nanmin(array, 0) == np.nanmax(array, 0)
    names = [column.name for column, same in zip(table.columns, constant, strict=True) if same]
    return [f"{table.name}: the same value stands in every row of {listed(names)}, which a model can learn nothing from"] if names else []


def write_table(table: pd.DataFrame | np.ndarray, path: str | Path) -> None:
    """Write a table whole or not at all: .csv, .tsv (both perhaps .gz), .parquet, or .npy.

    The index becomes the first column, unless it only numbers the rows. An .npy file holds the values alone, and is how images
    are written.

    Arguments:
        table: a frame, such as `Schema.to_frame` gives; an array for .npy.
        path: where; folders are made as needed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "z.csv"
        >>> write_table(pd.DataFrame({"z1": [0.5, 1.5]}, index=pd.Index(["a", "b"], name="sample")), path)
        >>> print(path.read_text().strip())
        sample,z1
        a,0.5
        b,1.5
    """
    plain = str(path).removesuffix(".gz")
    ending = Path(plain).suffix.lower()
    if ending not in ((*SEPARATORS, ".parquet", ".npy") if plain == str(path) else SEPARATORS):
        raise InputError(f"{path}: expected a name that ends in .csv, .tsv (perhaps with .gz), .parquet or .npy; choose one of these.")
    with write_whole(path) as temporary:
        if ending == ".npy":
            np.save(temporary, _plain(table, path))
        elif isinstance(table, np.ndarray):
            raise InputError(f"{path}: an array has no names for its columns; write it as .npy, or make it a frame first.")
        elif ending == ".parquet":
            _write_parquet(table, temporary, path)
        else:
            table.to_csv(temporary, sep=SEPARATORS[ending], index=not _numbered(table), index_label=table.index.name or "id")


def _numbered(frame: pd.DataFrame) -> bool:
    return isinstance(frame.index, pd.RangeIndex) and frame.index.name is None


def _plain(table: pd.DataFrame | np.ndarray, path: str | Path) -> np.ndarray:
    array = table if isinstance(table, np.ndarray) else table.to_numpy()
    if array.dtype.kind not in "biuf":
        raise InputError(f"{path}: an .npy file holds numbers only, and the table has texts or empty counts; write it as .csv.")
    return array


def _write_parquet(frame: pd.DataFrame, temporary: Path, path: str | Path) -> None:
    try:
        frame.to_parquet(temporary, engine="pyarrow")
    except ImportError as error:
        raise InputError(
            f"{path}: Parquet needs pyarrow, which is not installed: pip install 'codevae[parquet]', or write a .csv."
        ) from error
