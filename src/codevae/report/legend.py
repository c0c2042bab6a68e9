"""What the colours of a label mean, and the examples of every modality."""

from html import escape

import numpy as np

from codevae.report.figures import scale_edges
from codevae.report.html import number
from codevae.report.rows import Label
from codevae.report.svg import SCALE, SERIES


def legend(label: Label) -> str:
    """A list of colours: one per class, or the ends and the middle of a scale."""
    if label.classes:
        shown = label.classes[: len(SERIES)]
        pairs = [(f"series-{place}", name) for place, name in enumerate(shown)]
        rest = len(label.classes) > len(shown)
        other = " and ".join((["other"] if rest else []) + (["not known"] if bool((label.codes < 0).any()) else []))
    else:
        edges = scale_edges(label)
        places = (0, len(SCALE) // 2, len(SCALE) - 1)
        pairs = [(f"scale-{place}", number(float(edges[place : place + 2].mean()))) for place in places]
        other = "not known" if bool(np.isnan(label.values).any()) else ""
    pairs += [("faint", other)] if other else []
    items = "".join(f'<li><span style="background: var(--{colour})"></span>{escape(name)}</li>' for colour, name in pairs)
    return f'<ul class="legend" aria-label="{escape(label.name)}">{items}</ul>'
