"""Where a verb's data come from: tables, or the bundled set, read as the run learned to read them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codevae import data
from codevae.axes import Tensor
from codevae.batch import Batch
from codevae.errors import InputError
from codevae.training import Run

BUNDLED = "multiple_features"
PICTURES = {"pix": (16, 15)}
"""Tables of the bundled data that can be drawn."""


@dataclass(frozen=True)
class Source:
    """Data points, and the tables that they came from (none, for the bundled set)."""

    batch: Batch
    tables: data.Tables | None = None

    @property
    def schema(self) -> data.Schema | None:
        return None if self.tables is None else self.tables.schema


def read(tables: Sequence[str], id: str | None, labels: Sequence[str], kinds: dict[str, str], ignore: Sequence[str]) -> Source:
    """Data for a new run: what the columns are is recognised."""
    if list(tables) == [BUNDLED]:
        return Source(data.multiple_features())
    found = data.read_tables(list(tables), id=id, labels=labels, kinds=kinds, ignore=ignore)
    return Source(found.batch, found)


def read_for(run: Run, tables: Sequence[str]) -> Source:
    """Data for a run that exists: the columns must be those it was trained on."""
    about = run.config["data"]
    asked = list(tables) or about.get("tables", [])
    if not asked:
        raise InputError(f"{run.path}: its data were given from Python, so that the command line does not know them; name the tables.")
    if asked == [BUNDLED]:
        return Source(data.multiple_features())
    if about.get("tables") == [BUNDLED]:
        raise InputError(f"{run.path}: trained on the bundled {BUNDLED}; give that name, not tables.")
    found = schema_of(run).read(asked)
    return Source(found.batch, found)


def schema_of(run: Run) -> data.Schema:
    """What training learned of its tables."""
    try:
        return data.Schema.from_json(json.loads(run.schema_file.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise InputError(
            f"{run.path}: half a run folder, schema.json is missing: how its tables are read is not known; train anew."
        ) from error
    except InputError:
        raise
    except (ValueError, AttributeError) as error:
        raise InputError(f"{run.schema_file}: damaged ({error}); restore it from a copy, or train anew.") from error


def parts(run: Run, source: Source) -> tuple[Batch, Batch | None, Batch]:
    """(what the run trained with, what it kept aside or None, everything with nothing hidden), by its own settings."""
    about = run.config["data"]
    batch = data.remove(source.batch, about["missing"], about["seed"]) if about.get("missing") else source.batch
    if not about.get("test"):
        return batch, None, source.batch
    rest, test = data.split(batch, about["test"], about["seed"])
    return rest, test, source.batch


def save(table: pd.DataFrame | np.ndarray, path: str | Path) -> None:
    """Write a table by its ending, and say so."""
    data.write_table(table, path)
    print(f"{path}: {' × '.join(f'{size:,}' for size in table.shape)}")


def save_values(schema: data.Schema | None, name: str, values: Tensor, ids: Any, path: Path) -> None:
    """Values of a modality, under the names and texts that its columns had; images as .npy."""
    if values.ndim != 2:
        save(values.numpy(), path.with_suffix(".npy"))
    else:
        save(numbered(values, ids) if schema is None else schema.to_frame(name, values, ids), path)


def numbered(values: Tensor, ids: Any, prefix: str = "", id_name: str = "id") -> pd.DataFrame:
    """Values (N, F) as a table with numbered columns."""
    columns = [f"{prefix}{column}" for column in range(values.shape[1])]
    return pd.DataFrame(values.numpy(), columns=columns, index=pd.Index(range(len(values)) if ids is None else ids, name=id_name))
