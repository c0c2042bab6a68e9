"""Files, frames and arrays as they come: a name and rows each. What the cells mean is read elsewhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from codevae.data.separated import read_separated
from codevae.data.texts import texts
from codevae.errors import InputError, listed

SEPARATORS = {".csv": ",", ".tsv": "\t"}
ENDINGS = ".csv or .tsv (perhaps with .gz), .parquet, .npy, .npz"


@dataclass(frozen=True)
class Raw:
    """One table, or one array of images, as it was found.

    Arguments:
        name: of the modality.
        file: what messages call it.
        data: a frame; images (N, C, H, W) stay an array.
        ending: of the file, or what it would be: ".csv" for a frame, ".npy" for an array.
        ids: one text per row, apart from the frame; None while they are not known, or when there are none.
        id_name: what the ids are called.
        lines: the line of the file that each row stands on, where lines can be counted.
    """

    name: str
    file: str
    data: Any
    ending: str
    ids: Any = None
    id_name: str | None = None
    lines: np.ndarray | None = None

    @property
    def array(self) -> bool:
        """Whether its columns came without names, so that the first one cannot hold ids."""
        return self.ending in (".npy", ".npz")

    @property
    def columns(self) -> list[str]:
        return list(self.data.columns) if isinstance(self.data, pd.DataFrame) else []

    def where(self, row: int) -> str:
        """How to find a row: its line, and its id."""
        place = f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"
        return place if self.ids is None else f"{place} (id {self.ids[row]!r})"

    def without(self, columns: Any) -> "Raw":
        """The same table without some of its columns."""
        gone = [name for name in self.columns if name in columns]
        return replace(self, data=self.data.drop(columns=gone)) if gone else self


def read_sources(sources: Any, id: str | None = None, as_text: Callable[[str, str], bool] = lambda name, column: False) -> list[Raw]:
    """Every table of the sources, ids not yet told from columns.

    Arguments:
        sources: `read_tables` says what they may be.
        id: the column of ids.
        as_text: whether the cells of a column, given by table and name, are texts even where they look like numbers.
    """
    if isinstance(sources, pd.DataFrame | np.ndarray):
        raise InputError(f"sources: a {type(sources).__name__} has no file to be named after; give it a name, {{'rna': …}}.")
    if isinstance(sources, Mapping):
        named: list[tuple[str | None, Any]] = [(str(name), source) for name, source in sources.items()]
    else:
        named = [_named(source) for source in ([sources] if isinstance(sources, str | Path) else sources)]
    raws = [raw for name, source in named for raw in _read(name, source, id, as_text)]
    if not raws:
        raise InputError("sources: expected at least one table, got none.")
    files: dict[str, str] = {}
    for raw in raws:
        if raw.name in files:
            raise InputError(f"{files[raw.name]} and {raw.file} would both be called {raw.name!r}; name one of them, other={raw.file}.")
        files[raw.name] = raw.file
    return raws


def _named(source: Any) -> tuple[str | None, Any]:
    """ "name=path" → (name, path), a path alone → (None, path)."""
    if not isinstance(source, str | Path):
        raise InputError(
            f"sources: expected paths or 'name=path', got {type(source).__name__}; frames and arrays need names, {{'rna': …}}."
        )
    name, equals, path = str(source).partition("=")
    if equals and name and not {"/", "\\"} & set(name) and not Path(source).exists():
        return name, path
    return None, source


def _read(name: str | None, source: Any, id: str | None, as_text: Callable[[str, str], bool]) -> list[Raw]:
    if isinstance(source, pd.DataFrame):
        return [_framed(str(name), f"the frame {name!r}", source)]
    if isinstance(source, np.ndarray):
        return [_array(str(name), f"the array {name!r}", source)]
    if not isinstance(source, str | Path):
        raise InputError(f"sources: expected a path, a pandas DataFrame or a numpy array for {name!r}, got {type(source).__name__}.")
    path = Path(source)
    if not path.is_file():
        raise InputError(
            f"{path}: {'this is a folder; give the files in it' if path.is_dir() else 'there is no such file; check the path'}."
        )
    try:
        return _read_file(name, path, id, as_text)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: it is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8.") from error
    except pd.errors.ParserError as error:
        told = str(error).strip().rpartition("C error: ")[2]
        raise InputError(f"{path}: {told}; every line must have as many cells as the header (texts with a comma need quotes).") from error
    except (ValueError, EOFError, OSError) as error:
        raise InputError(
            f"{path}: it cannot be read: {str(error).strip()}; check that it is whole and of the kind its name says."
        ) from error


def _read_file(name: str | None, path: Path, id: str | None, as_text: Callable[[str, str], bool]) -> list[Raw]:
    plain = Path(path.name.removesuffix(".gz"))
    called, ending = name or plain.stem, plain.suffix.lower()
    if ending in SEPARATORS:
        frame, lines = read_separated(path, SEPARATORS[ending], id, lambda column: as_text(called, column))
        return [Raw(called, str(path), frame, path.name[len(plain.stem) :], lines=lines)]
    if ending == ".parquet":
        return [_framed(called, str(path), read_parquet(path), ".parquet")]
    if ending not in (".npy", ".npz"):
        raise InputError(f"{path}: expected a file that ends in {ENDINGS}; save it as one of these.")
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return [_array(called, str(path), loaded)]
    with loaded:
        arrays = {key: loaded[key] for key in loaded.files}
    return _several(name, path, arrays)


def read_parquet(path: Path) -> pd.DataFrame:
    """A Parquet file; reading it needs an extra."""
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise InputError(f"{path}: Parquet needs pyarrow, which is not installed: pip install 'codevae[parquet]', or use .csv.") from error


def _framed(name: str, file: str, frame: pd.DataFrame, ending: str = ".csv") -> Raw:
    columns = [str(column) for column in frame.columns]
    twice = {column for column in columns if columns.count(column) > 1} if len(set(columns)) < len(columns) else set()
    if twice:
        raise InputError(f"{file}: more than one column is called {listed(sorted(twice))}; give each a name of its own.")
    return Raw(name, file, frame.set_axis(columns, axis=1), ending)


def _several(name: str | None, path: Path, arrays: dict[str, np.ndarray]) -> list[Raw]:
    """The arrays of an .npz; the one called `ids` names the rows of all of them."""
    ids = arrays.pop("ids", None)
    if name is not None and len(arrays) > 1:
        raise InputError(
            f"{name}={path}: it holds several arrays, {listed(arrays)}, which keep the names of their keys; give the path alone."
        )
    raws = [_array(name or key, f"{path}[{key!r}]", array) for key, array in arrays.items()]
    for raw in raws:
        if ids is not None and ids.shape != (len(raw.data),):
            raise InputError(f"{raw.file}: it has {len(raw.data)} rows, but 'ids' has the shape {ids.shape}; give one id per row.")
    return raws if ids is None else [replace(raw, ids=texts(pd.Series(ids)).to_numpy(), id_name="id") for raw in raws]


def _array(name: str, file: str, array: np.ndarray) -> Raw:
    if array.dtype.kind not in ("biufU" if array.ndim == 1 else "biuf"):
        raise InputError(f"{file}: expected numbers, got an array of {array.dtype}; texts and columns of several kinds belong into a .csv.")
    if array.ndim == 4:
        return Raw(name, file, array, ".npy")
    if array.ndim == 1:
        return Raw(name, file, pd.DataFrame({name: array}), ".npy")
    if array.ndim != 2:
        raise InputError(
            f"{file}: expected the shape (rows, columns), or (rows, channels, height, width) for images, got {array.shape}; "
            "grey images need a channel axis, x[:, None]."
        )
    return Raw(name, file, pd.DataFrame(array, columns=[str(column) for column in range(array.shape[1])]), ".npy")
