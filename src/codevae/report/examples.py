"""A few data points beside what the model makes of them: reconstructed, translated from other modalities, and drawn anew."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from codevae.axes import Tensor
from codevae.batch import Batch
from codevae.data import Schema
from codevae.likelihoods import Categorical
from codevae.metrics.imputation import Layout
from codevae.modality import Modality
from codevae.model import MultimodalVAE
from codevae.report.rows import Label, Rows

NARROW = 12
"""A table with no more columns than this is shown as numbers, a wider one as a strip of colours."""

SINGLE = 6
"""A modality is translated from each other one only up to so many of them."""

STRIPES = 240
"""A strip shows at most so many columns."""

BUDGET = 400_000
"""Bytes of raw pictures that one modality may cost the page."""


@dataclass(frozen=True)
class Row:
    """Values of the shown data points, from one source.

    Arguments:
        title: "original", "given fac", …
        values: (n, …); NaN where nothing is.
    """

    title: str
    values: np.ndarray


@dataclass(frozen=True)
class Gallery:
    """One modality's examples.

    Arguments:
        name: of the modality.
        kind: "pictures", "strips", "numbers" or "tokens".
        rows: the original first; the last one is drawn from the prior and belongs to no data point.
        by: what tells the data points apart: a label, or "data point".
        titles: one per data point.
        low: the value drawn darkest.
        high: the value drawn lightest.
        note: what else must be said.
        columns: (name, levels) of each column of a table that is shown as numbers; levels are what its codes stand for.
    """

    name: str
    kind: str
    rows: list[Row]
    by: str
    titles: list[str]
    low: float = 0.0
    high: float = 1.0
    note: str = ""
    columns: tuple[tuple[str, tuple[Any, ...]], ...] = ()


def examples(
    model: MultimodalVAE, rows: Rows, label: str | None, schema: Schema | None = None, count: int = 10, seed: int = 0
) -> list[Gallery]:
    """A gallery per modality.

    Arguments:
        model: a trained model.
        rows: the data points shown are among the judged ones, one per class where there are classes.
        label: its name.
        schema: of the tables, for the names of their columns.
        count: how many data points, at most.
        seed: of the new samples.
    """
    new = model.generate(count, draw=False, seed=seed)
    layout = Layout.learn(rows.fitted, model.modalities)
    found = [_gallery(model, part, rows.judged, label, new, _units(layout, name), count) for name, part in model.modalities.items()]
    return [replace(gallery, columns=_columns(gallery, schema)) for gallery in found]


def _gallery(
    model: MultimodalVAE, part: Modality, batch: Batch, label: str | None, new: Batch, units: tuple[np.ndarray, np.ndarray], count: int
) -> Gallery:
    name, kind = part.name, kind_of(part)
    others = [other for other in model.names if other != name]
    singles = others if 1 < len(others) <= SINGLE else []
    if kind != "pictures":
        count, singles = count if kind == "strips" else min(count, 4), []
    if kind == "pictures":
        each = part.size * (3 + len(singles) + bool(others))
        count = max(3, min(count, BUDGET // each))
    shown, by, titles = _chosen(batch, name, label, count)
    sources = {"from everything" if others else "reconstruction": model.names}
    sources |= {f"from {other} alone": [other] for other in singles}
    if others:
        sources["from the others" if len(others) > 1 else f"from {others[0]}"] = others
    original = torch.where(shown.entries[name], shown.values[name].double(), torch.nan)
    found = [Row("original", original.cpu().numpy())]
    found += [Row(title, _array(model.translate(shown, given, name))) for title, given in sources.items()]
    found.append(Row("new, from the prior", _array(new.values[name][:count])))
    if kind == "strips":
        mean, spread = units
        columns = np.unique(np.linspace(0, part.size - 1, min(part.size, STRIPES)).round().astype(int))
        found = [Row(row.title, ((row.values.reshape(len(row.values), -1) - mean) / spread)[:, columns]) for row in found]
        note = f"{len(columns):,} of the {part.size:,} columns, evenly spread." if len(columns) < part.size else ""
        return Gallery(name, kind, found, by, titles, -3.0, 3.0, note)
    if kind == "pictures":
        found = [Row(row.title, _picture(row.values, part)) for row in found]
    return Gallery(name, kind, found, by, titles, *_range(batch, name))


def _columns(gallery: Gallery, schema: Schema | None) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Names and levels of a narrow table's columns; without a schema they are numbered."""
    if gallery.kind != "numbers":
        return ()
    known = getattr(schema[gallery.name], "columns", ()) if schema is not None and gallery.name in schema.names else ()
    count = gallery.rows[0].values[0].size
    return tuple((column.name, column.levels) for column in known) or tuple((str(place), ()) for place in range(1, count + 1))


def kind_of(part: Modality) -> str:
    """How a modality's values are shown."""
    if part.picture or (len(part.shape) == 3 and part.shape[0] in (1, 3)):
        return "pictures"
    if isinstance(part.likelihood, Categorical) and len(part.shape) == 1 and part.size > NARROW:
        return "tokens"
    return "numbers" if part.size <= NARROW else "strips"


def _chosen(batch: Batch, name: str, label: str | None, count: int) -> tuple[Batch, str, list[str]]:
    """Data points that have the modality, those with most other ones first; one per class where there are classes."""
    index = batch.names.index(name)
    wealth = torch.where(batch.observed[:, index], batch.observed.sum(1), 0).cpu().numpy()
    best = np.argsort(-wealth, kind="stable")
    best = best[wealth[best] > 0] if (wealth > 0).any() else best
    by, titles = "data point", [str(text) for text in (range(len(batch)) if batch.ids is None else batch.ids)]
    known = Label.of(batch, label) if label is not None else None
    if known is not None and known.classes:
        turn = np.zeros(len(best), dtype=int)  # how many better data points of its class a data point has
        seen: dict[int, int] = {}
        for place, code in enumerate(known.codes[best].tolist()):
            turn[place] = seen[code] = seen.get(code, -1) + 1
        codes = np.where(known.codes[best] < 0, len(known.classes), known.codes[best])
        best = best[np.lexsort((codes, turn))]
        by, titles = known.name, [known.classes[code] if code >= 0 else "not known" for code in known.codes]
    chosen = best[:count]
    return batch[chosen], by, [titles[place] for place in chosen]


def _units(layout: Layout, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of a modality's entries."""
    start = sum(size for other, size in list(layout.sizes.items())[: list(layout.sizes).index(name)])
    part = slice(start, start + layout.sizes[name])
    return layout.mean[part], layout.spread[part]


def _picture(values: np.ndarray, part: Modality) -> np.ndarray:
    """(n, …) → (n, height, width, colours)."""
    if part.picture is None:
        return np.moveaxis(values.reshape(len(values), *part.shape), 1, -1)
    height, width, *colours = part.picture
    if math.prod(part.picture) != part.size:
        return values.reshape(len(values), 1, -1, 1)
    return values.reshape(len(values), height, width, *(colours or [1]))


def _range(batch: Batch, name: str) -> tuple[float, float]:
    """What is drawn darkest and lightest: 0 and 255 for bytes, 0 and 1 for what lies between, else the extremes that occur."""
    values, there = batch.values[name], batch.entries[name].expand(batch.values[name].shape)
    known = values[there].double()
    if values.dtype == torch.uint8 or not len(known):
        return 0.0, 255.0 if len(known) else 1.0
    low, high = float(known.min()), float(known.max())
    return (0.0, 1.0) if low >= 0 and 0.5 < high <= 1 else (low, high if high > low else low + 1)


def _array(values: Tensor) -> np.ndarray:
    return values.detach().cpu().double().numpy()
