"""The examples of every modality as HTML: strips of pictures or colours, small tables, token sequences."""

import math
from html import escape

import numpy as np

from codevae.report.examples import Gallery, Row
from codevae.report.html import NONE, fixed, image, paragraph, table
from codevae.report.pictures import data_uri, strip_of_colours, strip_of_pictures


def galleries(found: list[Gallery]) -> str:
    """All modalities, each under its name."""
    text = (
        "What the model makes is its prediction from the posterior's mean, not a draw; what is new comes from the prior and belongs to no "
        "data point. Those who have most modalities are shown, one per class where there are classes."
    )
    if any(each.kind == "strips" for each in found):
        text += (
            " A wide table is a strip of colours: a line per data point, a column per column of the table, blue below the mean of the "
            "training data and red above it, full colour at three standard deviations."
        )
    inner = "".join(f"<div><h3>{escape(each.name)}</h3>{_body(each)}</div>" for each in found)
    return f'{paragraph(text)}<div class="galleries">{inner}</div>'


def _words(gallery: Gallery) -> str:
    """Which data points are shown."""
    where = "left to right" if gallery.kind == "pictures" else "top to bottom"
    return f"From {where}, {gallery.by}: {', '.join(gallery.titles)}. {gallery.note}".rstrip()


def _body(gallery: Gallery) -> str:
    if gallery.kind in ("pictures", "strips"):
        return paragraph(_words(gallery), "note") + f'<dl class="gallery">{"".join(_strip(gallery, row) for row in gallery.rows)}</dl>'
    if gallery.kind == "tokens":
        rows = [[title, row.title, _tokens(row.values[place])] for title, place, row in _lines(gallery)]
        return f'<div class="tokens">{table(f"Examples of {gallery.name}", [gallery.by, "source", "tokens"], rows, texts=(0, 1, 2))}</div>'
    header = [gallery.by, "source", *(name for name, _ in gallery.columns)]
    rows = [[title, row.title, *_cells(gallery, row.values[place])] for title, place, row in _lines(gallery)]
    return table(f"Examples of {gallery.name}", header, rows, texts=(0, 1))


def _strip(gallery: Gallery, row: Row) -> str:
    """A row of pictures, or lines of colours, as one picture."""
    pictures = gallery.kind == "pictures"
    strip = (strip_of_pictures if pictures else strip_of_colours)(row.values, gallery.low, gallery.high)
    alt = f"{gallery.name}, {row.title}: {len(row.values)} {'pictures' if pictures else 'lines of colours'}"
    shown = image(data_uri(strip), alt, strip.shape[1], strip.shape[0], "" if pictures else "stripes")
    return f"<div><dt>{escape(row.title)}</dt><dd>{shown}</dd></div>"


def _lines(gallery: Gallery) -> list[tuple[str, int, Row]]:
    """The rows of a table: every source of the first data point, of the second …, and the new ones last."""
    *sources, new = gallery.rows
    lines = [(title, place, row) for place, title in enumerate(gallery.titles) for row in sources]
    return lines + [(NONE, place, new) for place in range(len(new.values))]


def _cells(gallery: Gallery, values: np.ndarray) -> list[str]:
    """A row of a narrow table: levels by their names, numbers with the same decimals all down a column."""
    every = np.nan_to_num(np.concatenate([row.values.reshape(len(row.values), -1) for row in gallery.rows]))
    largest, whole = np.abs(every).max(0), (every == np.round(every)).all(0)
    cells = []
    for place, ((_, levels), value) in enumerate(zip(gallery.columns, values.reshape(-1).tolist(), strict=True)):
        decimals = 0 if whole[place] else max(0, 3 - math.floor(math.log10(largest[place])))
        if levels and value == value:
            cells.append(str(levels[min(max(round(value), 0), len(levels) - 1)]))
        else:
            cells.append(fixed(value, decimals))
    return cells


def _tokens(values: np.ndarray) -> str:
    return " ".join("·" if value != value else str(round(value)) for value in values.reshape(-1).tolist())
