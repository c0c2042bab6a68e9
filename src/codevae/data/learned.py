"""What training learned of one table, or of one array of images: enough to read it again and to write it back."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from codevae.data.columns import KINDS, Column, encode
from codevae.data.guess import is_binary, likelihood
from codevae.data.recognise import recognise
from codevae.data.sources import Raw
from codevae.errors import InputError, listed
from codevae.likelihoods import Bernoulli, Categorical, Columns, Laplace, Likelihood, NegativeBinomial, Normal, Poisson, StudentT

FAMILIES = {"number": (Normal, Laplace, StudentT), "count": (Poisson,), "yes/no": (Bernoulli,), "category": (Categorical,)}
PLURALS = {"number": "numbers", "count": "counts", "yes/no": "yes/no", "category": "categories"}


@dataclass(frozen=True)
class Table:
    """A table as training saw it.

    Arguments:
        name: of the modality.
        ending: of its file.
        columns: in the order that a model's values have.
        rows: how many there were.
        empty: the share of empty cells in the rows that are not wholly empty.
        ignored: columns that the file has and nobody wanted.
    """

    name: str
    ending: str
    columns: tuple[Column, ...]
    rows: int
    empty: float = 0.0
    ignored: tuple[str, ...] = ()

    @classmethod
    def learn(cls, raw: Raw, said: Mapping[str, str], ignored: Sequence[str]) -> tuple["Table", np.ndarray]:
        """The table, and its rows as numbers (rows, F)."""
        columns, matrix = recognise(raw, said)
        missing = np.isnan(matrix)
        some = ~missing.all(1)
        return cls(raw.name, raw.ending, columns, len(matrix), float(missing[some].mean()), tuple(ignored)), matrix

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.columns),)

    def numbers(self, raw: Raw) -> np.ndarray:
        """The rows of a later table as numbers (rows, F); it must have the same columns, in any order."""
        if not isinstance(raw.data, pd.DataFrame):
            raise InputError(
                f"{raw.file}: {self.name!r} was a table of {len(self.columns)} columns in training, got images; give such a table."
            )
        names = [column.name for column in self.columns]
        missing = sorted(set(names) - set(raw.columns), key=names.index)
        if missing:
            raise InputError(
                f"{raw.file}: it lacks the columns {listed(missing)}, which training knew; add them (their cells may be empty)."
            )
        known = {*names, *self.ignored}
        unknown = [name for name in raw.columns if name not in known]
        if unknown:
            path = f"{self.name}.{unknown[0]}"
            raise InputError(
                f"{raw.file}: training did not know the columns {listed(unknown)}; drop them from the file, or leave them out with "
                f"--ignore {path} (ignore=[{path!r}])."
            )
        return encode(self.columns, raw)

    def likelihood(self, asked: Any = None) -> Likelihood:
        """Normal for numbers, NegativeBinomial for counts, Bernoulli for yes/no, Categorical for categories; what is asked for instead.

        Of a table with columns of several kinds, what is asked for describes the columns of its own kind.
        """
        chosen = None if asked is None else likelihood(asked, self.name)
        groups: dict[tuple[str, int], list[int]] = {}
        for place, column in enumerate(self.columns):
            groups.setdefault((column.kind, len(column.levels)), []).append(place)
        mixed = len(groups) > 1 or self.columns[0].kind == "category"
        if not mixed or isinstance(chosen, Columns):
            return chosen or _likelihood(*next(iter(groups)))
        kind = next((kind for kind, family in FAMILIES.items() if isinstance(chosen, family)), None)
        kinds = sorted({kind for kind, _ in groups}, key=KINDS.index)
        if chosen is not None and (kind not in kinds or kind == "category"):
            raise InputError(
                f"likelihoods[{self.name!r}]: the table has columns of {listed(kinds)}, and {type(chosen).__name__} is for none of them; "
                "give likelihoods.Columns([…]), or other kinds when the tables are read."
            )
        parts = [(chosen if chosen is not None and group[0] == kind else _likelihood(*group), places) for group, places in groups.items()]
        return Columns(parts)

    def describe(self) -> str:
        """Lines for a terminal: the size, how many columns of each kind, and which ones are not of the usual kind."""
        found = Counter(column.kind for column in self.columns)
        kinds = ", ".join(f"{count:,} {PLURALS[kind] if count > 1 else kind}" for kind, count in found.most_common())
        size = f"{self.rows:,} rows × {len(self.columns):,} column{'s' if len(self.columns) > 1 else ''}"
        lines = [f"{self.name}: {size}: {kinds}; {100 * self.empty:.1f} % of cells empty"]
        for kind, _ in found.most_common()[1:]:
            lines.append(f"    {PLURALS[kind]}: {listed([column.name for column in self.columns if column.kind == kind])}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Images:
    """An array of images (C, H, W) as training saw it.

    Arguments:
        name: of the modality.
        ending: of its file.
        size: (C, H, W).
        dtype: of the pixels.
        kind: "number", or "yes/no" if there is nothing but 0 and 1.
        rows: how many there were.
        empty: the share of pixels that are NaN, in images that are not wholly so.
    """

    name: str
    ending: str
    size: tuple[int, ...]
    dtype: str
    kind: str
    rows: int
    empty: float = 0.0

    @classmethod
    def learn(cls, raw: Raw) -> tuple["Images", np.ndarray]:
        """The images' description, and the images."""
        pixels: np.ndarray = raw.data
        there = torch.from_numpy(~np.isnan(pixels))
        some = there.flatten(1).any(1)
        empty = 1 - float(there[some].double().mean()) if bool(some.any()) else 0.0
        kind = "yes/no" if is_binary(torch.as_tensor(pixels), there) else "number"
        return cls(raw.name, raw.ending, pixels.shape[1:], str(pixels.dtype), kind, len(pixels), empty), pixels

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    def numbers(self, raw: Raw) -> np.ndarray:
        """Later images, which must be of the same size and type."""
        data = raw.data
        if not isinstance(data, np.ndarray) or data.shape[1:] != self.size or str(data.dtype) != self.dtype:
            got = f"{data.shape[1:]} of {data.dtype}" if isinstance(data, np.ndarray) else f"a table of {len(raw.columns)} columns"
            raise InputError(
                f"{raw.file}: {self.name!r} was images {self.size} of {self.dtype} in training, got {got}; "
                "bring them to this size and type."
            )
        return data

    def likelihood(self, asked: Any = None) -> Likelihood:
        """Normal, or Bernoulli if there was nothing but 0 and 1; what is asked for instead."""
        return _likelihood(self.kind, 0) if asked is None else likelihood(asked, self.name)

    def describe(self) -> str:
        """A line for a terminal."""
        size = " × ".join(map(str, self.size))
        return f"{self.name}: {self.rows:,} images of {size}, {self.dtype}; {100 * self.empty:.1f} % of pixels empty"


def _likelihood(kind: str, levels: int) -> Likelihood:
    if kind == "category":
        return Categorical(levels)
    return {"number": Normal, "count": NegativeBinomial, "yes/no": Bernoulli}[kind]()
