"""Numbers → drawings. Each is narrow enough for a phone; a page sets several side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from codevae.metrics.imputation import ImputationError
from codevae.report.codes import Map
from codevae.report.html import percent
from codevae.report.rows import Label
from codevae.report.svg import FAINT, INK, SCALE, SERIES, drawing
from codevae.training import History

SHAPES = ("o", "s", "D", "^", "v", "P")


def curves(history: History, columns: dict[str, str], title: str, alt: str, scale: bool = False) -> str:
    """Columns of the history over the steps.

    Arguments:
        history: of a training.
        columns: of the history, and what to call them.
        title, alt: of the drawing.
        scale: whether the columns go from low to high rather than being different things.
    """
    with drawing(alt) as (axes, done):
        shown = []
        for place, (column, name) in enumerate(columns.items()):
            pairs = [(row["step"], row[column]) for row in history.rows if row.get(column) is not None and np.isfinite(row[column])]
            if not pairs:
                continue
            x, y = np.array(pairs, dtype=float).T
            colour = SCALE[round(place * (len(SCALE) - 1) / max(len(columns) - 1, 1))] if scale else SERIES[place % len(SERIES)]
            axes.plot(x, y, color=colour, label=name, marker="o" if len(x) == 1 else None, zorder=3 - place)
            shown.append((x, y))
        _frame(axes, shown)
        axes.set_title(short(title, 40))
        axes.set_xlabel("step")
        if len(shown) > 1:
            axes.legend(frameon=False, fontsize=10, ncols=3 if scale else 1, loc="best", handlelength=1.2, columnspacing=1.0)
    return done.svg


def short(name: str, most: int = 18) -> str:
    """A name that leaves room for the drawing."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _frame(axes: Any, shown: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """A range of values that the first tenth of the training does not dwarf."""
    last = max((x.max() for x, _ in shown), default=0)
    later = [y[x >= last / 10] for x, y in shown]
    values = np.concatenate(later) if later else np.zeros(0)
    if len(values) and values.max() > values.min():
        margin = 0.06 * (values.max() - values.min())
        axes.set_ylim(values.min() - margin, values.max() + margin)
    axes.margins(x=0.02)
    axes.locator_params(axis="x", nbins=5, integer=True)
    axes.locator_params(axis="y", nbins=6)


def by_size(rows: Sequence[dict[str, Any]], key: str, title: str, alt: str, level: float | None = None, shares: bool = False) -> str:
    """A dot per subset over the subset's size, and a bar for their mean.

    Arguments:
        rows: with "size" and the key.
        key: what is drawn.
        title, alt: of the drawing.
        level: a value to compare with, as a dashed line.
        shares: whether the values are to be read as percentages.
    """
    known = [row for row in rows if row[key] == row[key]]
    sizes, spread = sorted({row["size"] for row in known}), np.ptp([row[key] for row in known])
    with drawing(alt) as (axes, done):
        for size in sizes:
            values = np.array(sorted(row[key] for row in known if row["size"] == size))
            place = size + _beside(values, spread / 40)
            axes.plot(place, values, "o", color=SERIES[0], markeredgecolor="none", markersize=5, alpha=0.65)
            axes.plot([size - 0.32, size + 0.32], [values.mean()] * 2, color=INK, linewidth=1.6)
        if level is not None:
            axes.axhline(level, color=FAINT, linestyle=(0, (4, 3)), linewidth=1.2)
        axes.set_xticks(sizes)
        axes.set_xlim(sizes[0] - 0.6, sizes[-1] + 0.6)
        axes.locator_params(axis="y", nbins=6)
        if shares:
            axes.yaxis.set_major_formatter(lambda value, _: percent(value, 0))
        axes.grid(axis="x", visible=False)
        axes.set_title(title)
        axes.set_xlabel("modalities given")
    return done.svg


def _beside(values: np.ndarray, near: float) -> np.ndarray:
    """Offsets that set dots of nearly the same height beside each other: sorted values → places in −0.3 … 0.3."""
    offsets, turn = np.zeros(len(values)), 0
    for index in range(1, len(values)):
        turn = turn + 1 if values[index] - values[index - 1] < near else 0
        offsets[index] = 0.1 * ((turn + 1) // 2) * (1 if turn % 2 else -1)
    return np.clip(offsets, -0.3, 0.3)


def scatter(shown: Map, label: Label | None, alt: str, width: int = 220, named: bool = False) -> str:
    """Codes in the plane, coloured by a label; `named` writes the classes where they lie."""
    across, up = np.ptp(shown.points, axis=0)
    height = round(width * min(max(up / max(across, 1e-12), 0.6), 1.0)) if named else width
    with drawing(alt, width, height) as (axes, done):
        x, y = shown.points.T
        size = 4.0 if named else 3.0
        for colour, where in _groups(shown, label):
            axes.plot(x[where], y[where], "o", color=colour, markeredgecolor="none", markersize=size, alpha=0.8)
        if named and label is not None:
            codes = label.codes[shown.rows]
            for code, name in enumerate(label.classes[:12]):
                if (codes == code).sum() > 2:
                    across, up = np.median(shown.points[codes == code], 0)
                    axes.text(across, up, short(name), ha="center", va="center", fontsize=15, fontweight="bold")
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()
        axes.margins(0.03)
    return done.svg


def _groups(shown: Map, label: Label | None) -> list[tuple[str, np.ndarray]]:
    """Colours, and which points have them."""
    if label is None:
        return [(SERIES[0], np.ones(len(shown.points), dtype=bool))]
    codes, values = label.codes[shown.rows], label.values[shown.rows]
    if label.classes:
        other = (codes < 0) | (codes >= len(SERIES))
        return [(FAINT, other), *((SERIES[code], codes == code) for code in range(min(len(label.classes), len(SERIES))))]
    edges = scale_edges(label)
    bins = np.digitize(values, edges[1:-1])
    return [(FAINT, np.isnan(values)), *((SCALE[place], (bins == place) & ~np.isnan(values)) for place in range(len(SCALE)))]


def scale_edges(label: Label) -> np.ndarray:
    """Ends of the value ranges that share a colour: from the 2nd to the 98th percentile."""
    known = label.values[~np.isnan(label.values)]
    low, high = np.percentile(known, [2, 98])
    return np.linspace(low, high, len(SCALE) + 1)


def errors(of: dict[str, ImputationError], kind: str, title: str, alt: str) -> str:
    """A line per modality, a mark per imputer; `kind` is "rmse" or "accuracy"."""
    first = next(iter(of.values()))
    names = [name for name, value in getattr(first, kind).items() if value == value]
    with drawing(alt, height=70 + 30 * (len(names) + 1)) as (axes, done):
        for place, (imputer, error) in enumerate(of.items()):
            values = [getattr(error, f"overall_{kind}"), *(getattr(error, kind)[name] for name in names)]
            shape, colour, size = SHAPES[place % len(SHAPES)], SERIES[place % len(SERIES)], 9 if place == 0 else 7
            axes.plot(values, range(len(values)), shape, color=colour, label=imputer, markeredgecolor="none", markersize=size)
        axes.set_yticks(range(len(names) + 1), ["overall", *map(short, names)])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        if kind == "accuracy":
            axes.set_xlim(right=1.02)
        axes.grid(axis="x", visible=False)
        axes.margins(y=0.12)
        axes.set_title(title)
        axes.legend(frameon=False, fontsize=10, ncols=2, loc="upper left", bbox_to_anchor=(0, -0.1), handletextpad=0.2, columnspacing=1.0)
    return done.svg
