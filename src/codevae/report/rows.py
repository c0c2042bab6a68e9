"""Which data points a report looks at, and what their label says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codevae.batch import Batch
from codevae.data import split
from codevae.errors import InputError, listed
from codevae.model import MultimodalVAE
from codevae.random import derive, order

JUDGED, FITTED, ENTRIES = 2000, 4000, 20_000_000
"""Of more data points than this, or with more entries in all, a sample is drawn."""

FEW = 20
"""A label with no more values than this names classes; numbers with more are a scale."""


@dataclass(frozen=True)
class Omitted:
    """What stands in the place of results that cannot be had.

    Arguments:
        why: one sentence, with what to do about it.
    """

    why: str


@dataclass(frozen=True)
class Rows:
    """Data points in two parts.

    Arguments:
        fitted: what probes and reference imputers learn from.
        judged: what every number is about.
        note: a sentence that says which data points these are.
    """

    fitted: Batch
    judged: Batch
    note: str

    @classmethod
    def of(cls, model: MultimodalVAE, train: Batch | None, test: Batch | None, told: str = "", seed: int = 0) -> "Rows | Omitted":
        """The two parts of what was given.

        Arguments:
            model: what is to be judged.
            train: the data points of the training.
            test: data points that training did not see; if they are the same object as `train`, or one of the two is missing, 30 %
                of the other are judged and probes and reference imputers learn from the rest.
            told: how the caller describes the data points that are judged.
            seed: of what is drawn.
        """
        only = train if test is None or test is train else test if train is None else None
        if only is None and (train is None or test is None):
            return Omitted("It needs data points: none were given.")
        seen = test is None or test is train
        if only is not None:
            if len(only) < 4:
                return Omitted(f"It needs at least four data points, got {len(only)}.")
            train, test = split(only, 0.3, seed)
        fitted, judged = model.prepare(train), model.prepare(test)  # type: ignore[arg-type]
        note = told or (f"{len(judged):,} data points" + (" of the training data" if seen else " that training did not see"))
        if only is not None:
            note += f"; of {len(only):,} data points 30 % are judged, and probes and reference imputers learn from the rest"
        some = sample(judged, JUDGED, seed)
        if len(some) < len(judged):
            note += f"; {len(some):,} of them, drawn at random"
        if seen:
            note += ". The model was trained on them, so that the numbers flatter it"
        return cls(sample(fitted, FITTED, seed), some, note + ".")


def sample(batch: Batch, most: int, seed: int, entries: int = ENTRIES) -> Batch:
    """At most so many data points, and no more than have so many entries in all, drawn at random and in their old order."""
    each = sum(value[0:1].numel() for value in batch.values.values())
    most = max(1, min(most, entries // each))
    return batch if len(batch) <= most else batch[np.sort(order(len(batch), derive(seed, 6), 0)[:most])]


@dataclass(frozen=True)
class Label:
    """A label of some data points: classes, or a scale.

    Arguments:
        name: of the label.
        classes: their names; none for a scale.
        codes: (N,) index of each data point's class, −1 where it has no label.
        values: (N,) numbers of a scale, NaN where there is none.
    """

    name: str
    classes: list[str]
    codes: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, batch: Batch, name: str, classes: Sequence[str] | None = None) -> "Label":
        """The label of that name; with `classes` its classes are those, in that order, else sorted (many of them, by frequency)."""
        column = batch.labels[name]
        numeric = column.dtype.kind in "iufb"
        values = column.astype(np.float64) if numeric else np.full(len(column), np.nan)
        missing = np.isnan(values) if numeric else np.array([value is None or str(value) in ("", "nan", "<NA>") for value in column])
        known, counts = np.unique(column[~missing] if numeric else column[~missing].astype(str), return_counts=True)
        if numeric and len(known) > FEW and classes is None:
            return cls(name, [], np.full(len(column), -1), values)
        known = known if len(known) <= FEW else known[np.argsort(-counts, kind="stable")]
        texts = np.array([_text(value) for value in column], dtype=object)
        found = list(classes) if classes is not None else [_text(value) for value in known]
        place = {text: index for index, text in enumerate(found)}
        codes = np.array([-1 if lacks else place.get(text, -1) for text, lacks in zip(texts, missing, strict=True)])
        return cls(name, found, codes, values)


def label_name(batch: Batch, asked: str | None) -> str | None:
    """The label to show: the one that was asked for, else the first with few values, else the first."""
    if asked is not None and asked not in batch.labels:
        raise InputError(f"label: {asked!r} is not a label of these data points, which have {listed(batch.labels)}.")
    few = [name for name in batch.labels if 2 <= len(Label.of(batch, name).classes) <= FEW]
    return asked or next(iter([*few, *batch.labels]), None)


def _text(value: object) -> str:
    """A class as text: 3.0 is "3"."""
    number = isinstance(value, float | np.floating)
    return str(int(value)) if number and float(value).is_integer() else str(value)  # type: ignore[arg-type, call-overload]
