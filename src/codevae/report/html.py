"""Small pieces of HTML. Text goes in as text: every function here escapes it, except where an argument is called `inner`."""

import math
from collections.abc import Collection, Sequence
from html import escape

NONE = "–"


def number(value: float | None, digits: int = 3) -> str:
    """A number for reading: so many significant digits, a real minus, commas between thousands, – for NaN."""
    if value is None or value != value:
        return NONE
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e7):
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        return fixed(value, max(0, digits - 1 - math.floor(math.log10(size))) if size else digits - 1)
    return ("−" if value < 0 and text.strip("0.,") else "") + text


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals, a real minus, commas between thousands, – for NaN."""
    if value != value:
        return NONE
    text = f"{abs(value):,.{decimals}f}"
    return ("−" if value < 0 and text.strip("0.,") else "") + text


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return NONE if value is None or value != value else f"{100 * value:.{digits}f}\u202f%"


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Collection[int] = (0,),
    strong: Collection[tuple[int, int]] = (),
) -> str:
    """A table that scrolls in its own box when it is wide.

    Arguments:
        caption: what it shows.
        header: of the columns.
        rows: cells; the first one names its row.
        texts: the columns that hold text; the others hold numbers.
        strong: (row, column) of cells that stand out.
    """
    kinds = ["" if column in texts else ' class="number"' for column in range(len(header))]
    head = "".join(f'<th scope="col"{kind}>{escape(cell)}</th>' for kind, cell in zip(kinds, header, strict=True))
    body = []
    for place, row in enumerate(rows):
        cells = [f'<th scope="row">{escape(row[0])}</th>']
        for column, cell in enumerate(row[1:], 1):
            inner = f"<strong>{escape(cell)}</strong>" if (place, column) in strong else escape(cell)
            cells.append(f"<td{kinds[column]}>{inner}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<figure class="table"><figcaption>{escape(caption)}</figcaption><div class="scroll" tabindex="0">'
        f'<table aria-label="{escape(caption)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div></figure>"
    )


def figure(inner: str, caption: str, kind: str = "") -> str:
    """A drawing or picture with its caption."""
    opening = f'<figure class="{kind}">' if kind else "<figure>"
    return f"{opening}{inner}<figcaption>{escape(caption)}</figcaption></figure>"


def details(summary: str, inner: str) -> str:
    """Something folded away."""
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return f"{opening}{escape(text)}</p>"


def image(source: str, alt: str, width: int, height: int, kind: str = "") -> str:
    """A picture and what is said in its place."""
    shown = f' class="{kind}"' if kind else ""
    return f'<img{shown} src="{source}" alt="{escape(alt)}" width="{width}" height="{height}">'


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """A list of names and values."""
    return f'<dl class="facts">{"".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)}</dl>'
