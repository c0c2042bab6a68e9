"""Schema: what training learned of the tables, kept with a run, and checked whenever tables are read again."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch

from codevae.axes import Shaped, Tensor
from codevae.batch import Batch
from codevae.data.columns import Column
from codevae.data.guess import make, named
from codevae.data.labels import take_labels
from codevae.data.learned import Images, Table
from codevae.data.rows import Rows, identify, match
from codevae.data.sources import Raw, read_sources
from codevae.errors import InputError, listed
from codevae.modality import Modality

VERSION = 1


@dataclass(frozen=True)
class Schema:
    """The tables that a model was trained on: their columns, what they hold, and what the cells are written as.

    Arguments:
        tables: a `Table` or `Images` per modality.
        id: the column of ids that was asked for; None for the first, "none" for matching by position.
        id_name: what the ids are called; None where rows are matched by position.
        labels: columns that were taken out as labels.
        notes: what a user may want to know: columns that never vary, say.

    Example:
        >>> from codevae.data import read_tables
        >>> frame = pd.DataFrame({"sample": ["a", "b", "c"], "gene": [0.5, 1.5, 2.5], "sick": ["no", "yes", "no"]})
        >>> schema = read_tables({"rna": frame}).schema
        >>> [(column.name, column.kind) for column in schema["rna"].columns]
        [('gene', 'number'), ('sick', 'yes/no')]
        >>> schema.to_frame("rna", torch.tensor([[0.25, 1.0]]), ids=["d"]).to_dict("index")
        {'d': {'gene': 0.25, 'sick': 'yes'}}
    """

    tables: tuple[Table | Images, ...]
    id: str | None = None
    id_name: str | None = None
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __getitem__(self, name: str) -> Table | Images:
        for table in self.tables:
            if table.name == name:
                return table
        raise InputError(f"{name!r} is not a modality here; the modalities are {listed(self.names)}.")

    @property
    def names(self) -> list[str]:
        return [table.name for table in self.tables]

    def read(self, sources: Any, id: str | None = None, labels: Sequence[str] | str = (), ignore: Sequence[str] | str = ()) -> "Tables":
        """Tables of the same columns as training had, of some or all of the modalities; what does not fit is an `InputError`.

        Arguments:
            sources: as for `read_tables`; the order of columns does not matter.
            id: the column of ids; by default as in training.
            labels: further columns to take out as labels; those of training are taken out where they are there.
            ignore: columns that training did not know, "rna.weight"; those ignored in training are ignored where they are there.
        """
        asked = self.id if id is None else id
        texts = {
            (table.name, column.name) for table in self.tables if isinstance(table, Table) for column in table.columns if not column.as_is
        }
        raws = [identify(raw, asked) for raw in read_sources(sources, asked, lambda *place: place in texts)]
        wanted = tuple(dict.fromkeys([*self.labels, *several(labels)]))
        ignored = addressed(several(ignore), raws, "ignore")
        kept = [raw.without({*wanted, *ignored.get(raw.name, ())}) for raw in raws]
        kept = [raw for raw in kept if raw.name in self.names or raw.columns or isinstance(raw.data, np.ndarray)]
        for raw in kept:
            if raw.name not in self.names:
                raise InputError(
                    f"{raw.file}: training knew no table {raw.name!r}, but {listed(self.names)}; leave it out, or say which it is, "
                    f"{self.names[0]}={raw.file}."
                )
        if not kept:
            raise InputError(f"sources: they hold labels only; give a table of at least one of the modalities {listed(self.names)}.")
        rows = match(raws, kept)
        return gather(self, {raw.name: self[raw.name].numbers(raw) for raw in kept}, rows, take_labels(raws, wanted, rows))

    def modalities(
        self,
        likelihoods: Mapping[str, Any] | None = None,
        private_dim: int | Mapping[str, int] = 0,
        pictures: Mapping[str, Sequence[int]] | None = None,
    ) -> list[Modality]:
        """A `Modality` per table, with the likelihood that the kinds of its columns ask for.

        Arguments:
            likelihoods: by modality, an instance of a likelihood, or its class or name ("NegativeBinomial"); of a table with columns
                of several kinds it describes those of its own kind.
            private_dim: P, the width of the modalities' own latents; one for all, or by modality.
            pictures: by modality, (height, width) or (height, width, colours), to draw a table's row as a picture in reports.
        """
        chosen = named("likelihoods", likelihoods, self.names)
        found = {table.name: table.likelihood(chosen.get(table.name)) for table in self.tables}
        shapes = {table.name: table.shape for table in self.tables}
        return make(shapes, found, {table.name: table.empty > 0 for table in self.tables}, private_dim, pictures)

    def to_frame(self, name: str, values: Shaped[Tensor, "N ..."] | np.ndarray, ids: Iterable[Any] | None = None) -> pd.DataFrame:
        """Values (N, F) of a table as it is written: its columns' names, its categories' and yes/no's texts, whole counts.

        Arguments:
            name: of the modality.
            values: as a model gives them; NaN becomes an empty cell.
            ids: one per row; without them, or where training matched rows by position, rows are only numbered.
        """
        table = self[name]
        if not isinstance(table, Table):
            raise InputError(f"{name!r} is images, which no table can hold; write the array itself, write_table(values, 'images.npy').")
        x = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
        if x.ndim != 2 or x.shape[1] != len(table.columns):
            raise InputError(
                f"values: expected (rows, {len(table.columns)}) for {name!r}, got {x.shape}; give the columns that training had."
            )
        names = [column.name for column in table.columns]
        others = {place: column for place, column in enumerate(table.columns) if column.kind != "number"}
        frame = pd.DataFrame(np.delete(x, list(others), 1), columns=np.delete(names, list(others)))
        if others:
            cells = {column.name: column.cells(x[:, place]) for place, column in others.items()}
            frame = pd.concat([frame, pd.DataFrame(cells, index=frame.index)], axis=1)[names]
        return frame.set_axis(self.index(len(x), ids))

    def index(self, count: int, ids: Iterable[Any] | None = None) -> pd.Index:
        """The index of a table to be written: the ids under their name, or plain row numbers, which are not written."""
        if ids is None or self.id_name is None:
            return pd.RangeIndex(count)
        return pd.Index(np.asarray(list(ids), dtype=object), name=self.id_name)

    def describe(self) -> str:
        """Lines for a terminal: what was found in each table, and the notes."""
        return "\n".join([*(table.describe() for table in self.tables), *(f"note: {note}" for note in self.notes)])

    def to_json(self) -> dict[str, Any]:
        """A plain form (dicts, lists, numbers, texts), for schema.json."""
        tables = [{"images" if isinstance(table, Images) else "table": asdict(table)} for table in self.tables]
        plain = {"version": VERSION, "id": self.id, "id_name": self.id_name, "labels": self.labels, "notes": self.notes, "tables": tables}
        return json.loads(json.dumps(plain))

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Schema":
        """The schema that `to_json` gave."""
        version = plain.get("version")
        if not isinstance(version, int) or version > VERSION:
            raise InputError(
                f"schema.json: expected version {VERSION} or older, got {version!r}; it needs a newer codevae: pip install -U codevae."
            )
        try:
            tables = tuple(_table(**each) for each in plain["tables"])
            return cls(tables, plain["id"], plain["id_name"], tuple(plain["labels"]), tuple(plain["notes"]))
        except (KeyError, TypeError) as error:
            raise InputError(
                f"schema.json: it is damaged ({type(error).__name__}: {error}); restore the run folder, or train anew."
            ) from error


def _table(table: dict[str, Any] | None = None, images: dict[str, Any] | None = None) -> Table | Images:
    if images is not None:
        return Images(**{**images, "size": tuple(images["size"])})
    plain = table or {}
    columns = tuple(Column(**{**column, "levels": tuple(column["levels"])}) for column in plain["columns"])
    return Table(**{**plain, "columns": columns, "ignored": tuple(plain["ignored"])})


@dataclass(frozen=True)
class Tables:
    """Tables that were read: the data points, and what is known of the columns.

    Arguments:
        batch: the data; a row that a table lacks is a missing modality, an empty cell a missing value.
        schema: what the columns are.
        exact: the tables as numbers, (N, F) in double precision, NaN where nothing is.
    """

    batch: Batch
    schema: Schema
    exact: dict[str, np.ndarray] = field(repr=False)

    def filled(self, name: str, values: Shaped[Tensor, "N F"]) -> pd.DataFrame:
        """A table as it is written, with `values` where nothing was; what was measured stays as it was, to the last digit.

        Arguments:
            name: of the modality.
            values: (N, F), such as `model.impute(tables.batch).values[name]`.
        """
        guess = values.detach().cpu().numpy()
        if name not in self.exact or guess.shape != self.exact[name].shape:
            return self.schema.to_frame(name, guess, self.batch.ids)
        whole = self.exact[name].copy()
        gaps = np.isnan(whole)
        whole[gaps] = guess[gaps].astype(str).astype(np.float64)  # 0.1 in single precision is written as 0.1, not 0.10000000149
        return self.schema.to_frame(name, whole, self.batch.ids)


def gather(schema: Schema, found: Mapping[str, np.ndarray], rows: Rows, labels: Mapping[str, np.ndarray]) -> Tables:
    """The data points of several tables, given as arrays of their rows."""
    values, entries, exact = {}, {}, {}
    for name, array in found.items():
        take = rows.take[name]
        lacking = (take < 0).reshape(-1, *(1,) * (array.ndim - 1))
        aligned = np.where(lacking, np.array(np.nan if array.dtype.kind == "f" else 0, array.dtype), array[take])
        if isinstance(schema[name], Table):
            exact[name], aligned = aligned, aligned.astype(np.float32)
        values[name] = aligned
        entries[name] = ~lacking if aligned.dtype.kind != "f" else ~np.isnan(aligned)
    return Tables(Batch(values, entries, labels=labels, ids=rows.ids), schema, exact)


def several(given: Sequence[str] | str) -> list[str]:
    """A name alone is a list of one."""
    return [given] if isinstance(given, str) else list(given)


def addressed(keys: Iterable[str], raws: Sequence[Raw], argument: str) -> dict[str, list[str]]:
    """ "rna.age" → {"rna": ["age"]}; a table's name alone stands for all of its columns."""
    found: dict[str, list[str]] = {}
    for key in keys:
        for raw in raws:
            column = key.removeprefix(f"{raw.name}.")
            if key == raw.name or (column != key and column in raw.columns):
                found.setdefault(raw.name, []).extend(raw.columns if key == raw.name else [column])
                break
        else:
            paths = [f"{raw.name}.{column}" for raw in raws for column in raw.columns]
            close = difflib.get_close_matches(key, paths[:10000], 3) or paths[:3]
            raise InputError(f"{argument}: expected TABLE.COLUMN, got {key!r}, which no table has; did you mean one of {listed(close)}?")
    return found
