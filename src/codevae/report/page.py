"""Results → one HTML page that needs nothing but itself."""

from collections.abc import Callable
from html import escape
from importlib.resources import files
from typing import Any

from codevae.report import sections
from codevae.report.gallery import galleries
from codevae.report.html import details, paragraph, percent
from codevae.report.results import Results
from codevae.report.rows import Omitted
from codevae.version import __version__

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def page(results: Results) -> str:
    """The whole page."""
    about, names = results.about, [part.name for part in results.about.parts]
    parts: list[tuple[str, str, Any, Callable[[Any], str]]] = [
        ("run", "What was trained", about, sections.the_run),
        ("training", "Training", results.history, lambda history: sections.training(history, about)),
        ("embedding", "Embedding", results.maps, lambda maps: sections.embedding(maps, results.probe, names)),
        ("probe", "Linear probe", results.probe, lambda probe: sections.probing(probe, names)),
        ("examples", "Originals, reconstructions, translations", results.examples, galleries),
        ("imputation", "Imputation", results.imputed, sections.imputation),
        ("likelihood", "Likelihood", results.likelihoods, sections.likelihood),
        ("subsets", "Subsets", results.subsets, sections.subset_section),
        ("config", "Configuration", about.config, lambda text: details("config.yaml", f"<pre>{escape(text)}</pre>")),
    ]
    contents = "".join(f'<li><a href="#{place}">{escape(title)}</a></li>' for place, title, _, _ in parts)
    body = "".join(_section(place, title, content, write) for place, title, content, write in parts)
    style = files("codevae.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(about.name)} – codevae</title>\n<style>\n{style}</style>\n</head>\n<body>\n{_header(results)}\n"
        f'<nav aria-label="Contents"><ol>{contents}</ol></nav>\n<main>\n{body}</main>\n{_footer(about.name)}\n</body>\n</html>\n'
    )


def _header(results: Results) -> str:
    about = results.about
    count = _WORDS[len(about.parts)] if len(about.parts) < len(_WORDS) else str(len(about.parts))
    lead = f"A {about.method} with {about.latent_dim} latent dimension{'s' * (about.latent_dim > 1)} over {count} "
    lead += "modality" if len(about.parts) == 1 else "modalities"
    lead += f", trained for {about.step:,} steps" if about.step else ""
    lead += f" on {about.points:,} data points" if about.points is not None else ""
    lead += f", {percent(about.missing, 0)} of whose modality entries were missing" if about.missing else ""
    inner = f'<p class="kicker">codevae report</p><h1>{escape(about.name)}</h1>{paragraph(lead + ".", "lead")}'
    inner += paragraph(f"Judged on {results.note}", "note") if results.note else ""
    shown = sections.tiles(results)
    inner += f'<dl class="tiles">{"".join(map(_tile, shown))}</dl>' if shown else ""
    return f"<header>{inner}</header>"


def _tile(tile: tuple[str, str, str]) -> str:
    name, value, beside = map(escape, tile)
    return f'<div><dt>{name}</dt><dd><span class="value">{value}</span><span class="beside">{beside}</span></dd></div>'


def _section(place: str, title: str, content: Any, write: Callable[[Any], str]) -> str:
    inner = paragraph(f"Left out. {content.why}", "left-out") if isinstance(content, Omitted) else write(content)
    return f'<section id="{place}" aria-labelledby="{place}-title"><h2 id="{place}-title">{escape(title)}</h2>{inner}</section>\n'


def _footer(name: str) -> str:
    text = f"Written by codevae {__version__} from the run {name}. Every number on this page was computed from the run and its data."
    return f"<footer>{paragraph(text)}</footer>"
