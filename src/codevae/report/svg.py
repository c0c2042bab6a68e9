"""Drawings as SVG inside the page: its fonts, its colours in light and dark, no numbers that change from run to run."""

import io
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING

from codevae.report.extra import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, RULE = "#010101", "#020202", "#030303"
SERIES = [f"#0400{index:02x}" for index in range(12)]
SCALE = [f"#0500{index:02x}" for index in range(12)]
"""What things are drawn in; on the page these become colours of its style sheet. SERIES tells apart, SCALE goes from low to high."""

_COLOURS = {INK: "currentColor", FAINT: "var(--faint)", RULE: "var(--rule)"}
_COLOURS |= {colour: f"var(--series-{index})" for index, colour in enumerate(SERIES)}
_COLOURS |= {colour: f"var(--scale-{index})" for index, colour in enumerate(SCALE)}

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "codevae",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}


class Drawing:
    """A drawing that is finished: `svg` is its text."""

    svg = ""


@contextmanager
def drawing(alt: str, width: int = 340, height: int = 250) -> Iterator[tuple["Axes", Drawing]]:
    """Axes to draw on, and the drawing that they become when the block ends.

    Arguments:
        alt: what the drawing shows, for those who do not see it.
        width, height: in CSS pixels; narrow enough for a phone.
    """
    done = Drawing()
    with extra("matplotlib").rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the page's fonts will have it
        figure = extra("matplotlib.figure").Figure(figsize=(width / 72, height / 72), layout="constrained")
        yield figure.subplots(), done
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    done.svg = _for_page(text.getvalue(), alt, width, height)


def _for_page(text: str, alt: str, width: int, height: int) -> str:
    """The drawing's inside with the page's font and colours; what matplotlib writes for other readers of SVG is left out."""
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r">\s+<", "><", body).replace("xlink:href", "href")
    body = re.sub(r"<[^>]*>", lambda tag: _tag(tag[0]), body)
    body = re.sub(r"<g([^>]*)>((?:<use[^>]*/>)+)</g>", _markers, body)
    for colour, name in _COLOURS.items():
        body = body.replace(colour, name)
    prefix, used = f"d{zlib.crc32((alt + body).encode()):08x}-", set(re.findall(r"(?:url\(|href=\")#([\w-]+)", body))
    body = re.sub(r' id="([^"]+)"', lambda found: f' id="{prefix}{found[1]}"' if found[1] in used else "", body)
    body = re.sub(r"(url\(|href=\")#([\w-]+)", rf"\g<1>#{prefix}\g<2>", body)
    return f'<svg role="img" aria-label="{escape(alt)}" viewBox="0 0 {width} {height}" width="{width}" height="{height}">{body}</svg>'


def _tag(tag: str) -> str:
    """One tag: a tenth of a pixel is enough, fonts are the page's."""
    tag = re.sub(r"\s+", " ", tag).replace("font-family: 'DejaVu Sans'; ", "")
    tag = re.sub(r" transform=\"rotate\(-0 [^)]*\)\"", "", tag)
    return re.sub(r"(?<![\w#.])-?\d+\.\d{2,}", _rounded, tag)


def _rounded(number: re.Match) -> str:
    return f"{float(number[0]):.{2 if abs(float(number[0])) < 10 else 1}f}".rstrip("0").rstrip(".")


def _markers(group: re.Match) -> str:
    """Markers of one kind: what they have in common is said once."""
    styles = set(re.findall(r' style="([^"]*)"', group[2]))
    if len(styles) != 1:
        return group[0]
    return f'<g{group[1]} style="{styles.pop()}">' + re.sub(r' style="[^"]*"', "", group[2]) + "</g>"
