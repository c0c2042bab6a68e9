"""The sections of the page: results → HTML. Every number in a sentence is one of the results."""

from typing import Any

from codevae import subsets
from codevae.metrics import table_by_size
from codevae.report import figures
from codevae.report.about import About
from codevae.report.codes import Maps, Probe
from codevae.report.html import NONE, details, facts, figure, number, paragraph, percent, table
from codevae.report.legend import legend
from codevae.report.results import Results
from codevae.report.rows import Omitted
from codevae.report.scores import Imputed, Likelihoods
from codevae.training import History

KINDS = (
    ("rmse", "Imputation error", "Root mean square over hidden numbers, in standard deviations of the training data; lower is better."),
    ("accuracy", "Imputation accuracy", "Share of hidden categories that were found; higher is better."),
)
CONSENSUS = {"rho": "ρ", "negative_weights": "negative weights"}
EXPLAINED = {
    "rho": "ρ is the correlation of the experts' errors.",
    "negative_weights": "Negative weights: the share of consensus means in which an expert is subtracted.",
}
KNOWN = ("step", "epoch", "bound", "validation", "seconds")


def the_run(about: About) -> str:
    """What was trained, and on what."""
    columns: dict[str, list[str]] = {
        "modality": [part.name for part in about.parts],
        "shape": [" × ".join(map(str, part.shape)) for part in about.parts],
        "likelihood": [part.likelihood for part in about.parts],
    }
    if any(part.private_dim for part in about.parts):
        columns["private dimensions"] = [str(part.private_dim) for part in about.parts]
    for header, shares in (
        ("in training", [part.trained for part in about.parts]),
        ("in what is judged", [part.judged for part in about.parts]),
    ):
        if any(share is not None for share in shares):
            columns[header] = [percent(share) for share in shares]
    rows = list(zip(*columns.values(), strict=True))
    first = [("method", about.method), *((name, about.arguments[name]) for name in ("rho", "beta") if name in about.arguments)]
    first += [("latent dimensions", str(about.latent_dim)), ("parameters", f"{about.parameters:,}"), ("steps", f"{about.step:,}")]
    first += [("duration", f"{about.seconds / 60:.1f} min")] if about.seconds is not None else []
    rest = [(name, value) for name, value in about.arguments.items() if name not in ("rho", "beta")]
    rest += [(name, str(value)) for name, value in about.training.items() if name != "steps"] + list(about.versions.items())
    caption = "The modalities" + (", and the share of the data points that have them" if len(columns) > 3 else "")
    modalities = table(caption, list(columns), rows, texts=(0, 1, 2))
    return f'<div class="panels">{modalities}{facts(first)}</div>' + details("All settings and versions", facts(rest))


def training(history: History, about: About) -> str:
    """The learning curves."""
    columns = history.columns
    bounds = {name: text for name, text in (("bound", "training"), ("validation", "validation")) if name in columns}
    sizes = {name: name.removeprefix("bound_of_") for name in columns if name.startswith("bound_of_")}
    best = best_row(history)
    caption = "The bound in nats per data point; higher is better."
    if best is not None:
        caption += f" The weights in use had the best validation bound, {number(best['validation'], 4)} at step {best['step']:,}."
    panels = [figure(figures.curves(history, bounds, "Bound", "Line chart: the bound over the training steps."), caption)]
    if len(sizes) > 1:
        alt = "Line chart: the bound by subset size over the training steps."
        drawn = figures.curves(history, sizes, "Bound by subset size", alt, scale=True)
        caption = "The bound of single subsets, averaged over those of each size that were trained; 1 is one modality given."
        if about.missing:
            caption += " Larger ones occur only where there is more to explain, so that lines of different sizes do not compare."
        panels.append(figure(drawn, caption))
    moving = [name for name in columns if name not in (*KNOWN, *sizes) and len({row.get(name) for row in history.rows}) > 1]
    together = {name: CONSENSUS[name] for name in moving if name in CONSENSUS}
    for group in [together, *({name: name} for name in moving if name not in CONSENSUS)]:
        if group:
            title = " and ".join(group.values())
            drawn = figures.curves(history, group, title, f"Line chart: {title} over the training steps.")
            last = ", ".join(f"{text} {number(history[name][-1])}" for name, text in group.items())
            panels.append(figure(drawn, " ".join([f"In the end: {last}.", *(EXPLAINED[name] for name in group if name in EXPLAINED)])))
    header = [name.replace("_", " ") for name in columns]
    cells = [[str(row.get("step", "")), *(number(row.get(name), 5) for name in columns[1:])] for row in history.rows]
    return f'<div class="panels">{"".join(panels)}</div>' + details("All values", table("The history of the training", header, cells))


def best_row(history: History) -> dict[str, Any] | None:
    """The row with the best validation bound."""
    return max((row for row in history.rows if "validation" in row), key=lambda row: row["validation"], default=None)


def embedding(maps: Maps, probe: Probe | Omitted, names: list[str]) -> str:
    """The codes in two dimensions."""
    label, first = maps.label, maps.maps[0]
    coloured = "" if label is None else f", coloured by {label.name}"
    drawn = f"{len(first.points):,} data points" + (f", drawn at random from {maps.total:,}," if maps.drawn < maps.total else "")
    alone = {row["subset"]: row["accuracy"] for row in probe.rows} if isinstance(probe, Probe) else {}
    large = figures.scatter(first, label, f"Scatter plot: {maps.how} of the codes given everything{coloured}.", 480, named=True)
    text = f"{maps.how} of the posterior means of {drawn} given all that each has{coloured}."
    if maps.how == "t-SNE":
        text += " It keeps neighbours together; distances between groups and their sizes mean little."
    inner = f"<div>{figure(large, text, 'map large')}</div>"
    small = []
    for shown in maps.maps[1:]:
        name, subset = shown.given[0], subsets.name_of(shown.given)
        alt = f"Scatter plot: {maps.how} of the codes given {name} alone{coloured}."
        caption = name + (f", probe {percent(alone[subset])}" if subset in alone else "")
        small.append(figure(figures.scatter(shown, label, alt), caption, "map"))
    if small:
        words = "The data points that have the modality, inferred from it alone."
        words += f" {len(small)} of the {len(names)} modalities are shown." if len(small) < len(names) else ""
        inner += f'<div><h3>One modality given</h3>{paragraph(words, "note")}<div class="maps">{"".join(small)}</div></div>'
    return (legend(label) if label is not None else "") + f'<div class="embedding">{inner}</div>'


def probing(probe: Probe, names: list[str]) -> str:
    """Linear probes per subset size."""
    text = (
        f"How well a logistic regression reads {probe.label} ({probe.classes} classes) off the codes: it learned from up to "
        f"{probe.learned_from:,} data points and is asked about the judged ones. The most frequent class alone gives "
        f"{percent(probe.chance)}. A data point takes part if it has anything of the subset: where data are missing, "
        "subsets are not about the same data points."
    )
    alt = "Dot plot: probe accuracy of each subset over the number of modalities given."
    drawn = figures.by_size(probe.rows, "accuracy", "Probe accuracy", alt, shares=True)
    rows = []
    for size in sorted({row["size"] for row in probe.rows}):
        group = sorted((row for row in probe.rows if row["size"] == size), key=lambda row: row["accuracy"])
        mean = sum(row["accuracy"] for row in group) / len(group)
        ends = [f"{percent(row['accuracy'])} {brief(row['subset'], names)}" if len(group) > 1 else NONE for row in (group[-1], group[0])]
        rows.append([str(size), str(len(group)), percent(mean), *ends])
    header = ["modalities given", "subsets", "mean", "best", "worst"]
    every = [[row["subset"], str(row["size"]), percent(row["accuracy"]), f"{row['points']:,}"] for row in probe.rows]
    full = details("Every subset", table("Accuracy of each subset", ["subset", "size", "accuracy", "data points"], every))
    dots = figure(drawn, "A dot per subset, a bar for their mean.")
    return paragraph(text) + f'<div class="panels">{dots}{table("Accuracy by subset size", header, rows, texts=(0, 3, 4))}</div>' + full


def brief(subset: str, names: list[str]) -> str:
    """A subset's name, the shorter way round."""
    lacking = [name for name in names if name not in subsets.parse(subset, names)]
    return "everything" if not lacking else f"all but {lacking[0]}" if len(lacking) == 1 < len(names) - 1 else subset


def imputation(found: Imputed) -> str:
    """Errors on hidden entries."""
    text = (
        f"The judged data points have {found.of:,} modality entries. Of these {found.hidden:,} ({percent(found.hidden / found.of)}) were "
        f"hidden completely at random (each with probability {found.hide:g}; every data point keeps one) and filled again from the rest. "
        "All imputers saw the same gaps; the reference ones learned from "
        f"{found.learned:,} data points that are not judged, gaps and all."
    )
    inner = paragraph(text)
    for kind, title, words in KINDS:
        model = found.errors["model"]
        names = [name for name, value in getattr(model, kind).items() if value == value]
        if not names:
            continue
        values = {
            imputer: [getattr(error, f"overall_{kind}"), *(getattr(error, kind)[name] for name in names)]
            for imputer, error in found.errors.items()
        }
        columns = list(zip(*values.values(), strict=True))
        strong = {(column.index((min if kind == "rmse" else max)(column)), place) for place, column in enumerate(columns, 1)}
        show = number if kind == "rmse" else percent
        drawn = figures.errors(found.errors, kind, title, f"Dot plot: {title.lower()} of each imputer, overall and by modality.")
        rows = [[name, *map(show, row)] for name, row in values.items()]
        cells = table(f"{title}, the best in bold", ["imputer", "overall", *names], rows, strong=strong)
        inner += f'<div class="panels">{figure(drawn, words)}{cells}</div>'
    for name, why in found.left_out.items():
        inner += paragraph(f"Left out: {name}; {why}.", "note")
    return inner


def likelihood(found: Likelihoods) -> str:
    """log p of the data."""
    text = (
        f"The mean of log p(x) in nats, by importance sampling with {found.samples:,} draws per data point from the posterior of all that "
        "is observed. In expectation it is a lower bound; it compares models of the same data whose likelihoods have the same units. "
        f"The effective number of samples is {number(found.effective, 2)} at the median; near 1 the estimate is loose."
    )
    rows = [["all that is observed", number(found.joint.mean, 5), number(found.joint.error, 2), f"{found.joint.points:,}"]]
    rows += [[name, number(each.mean, 5), number(each.error, 2), f"{each.points:,}"] for name, each in found.modalities.items()]
    return paragraph(text) + table("Log-likelihood of the judged data points", ["of", "mean", "standard error", "data points"], rows)


def subset_section(rows: list[dict[str, Any]]) -> str:
    """π and the posteriors' spread."""
    known = [key for key in ("pi", "trace", "negative_weights") if any(row[key] == row[key] for row in rows)]
    sentences = {
        "pi": "π is the weight that training gave each subset.",
        "trace": "The trace, the sum of the posterior's variances, says how much a subset leaves open; it should fall as more is given.",
        "negative_weights": "A negative weight means that an expert is subtracted rather than averaged; its share is that of data points "
        "and dimensions where this happens.",
    }
    shows = {"pi": ("π", number), "trace": ("trace", number), "negative_weights": ("negative weights", percent)}
    panels = []
    if "pi" in known:
        uniform = 1 / (2 ** max(row["size"] for row in rows) - 1)
        drawn = figures.by_size(rows, "pi", "π of a subset", "Dot plot: weight of each subset over its size.", uniform)
        panels.append(figure(drawn, f"Dashed: {number(uniform)}, all subsets alike."))
    if "trace" in known:
        drawn = figures.by_size(rows, "trace", "Trace of the posterior", "Dot plot: trace of each subset's posterior over its size.")
        panels.append(figure(drawn, "Mean over the data points that have the whole subset."))

    def cells(row: dict[str, Any]) -> list[str]:
        return [shows[key][1](row[key]) for key in known]

    names = [shows[key][0] for key in known]
    means = [[str(row["size"]), str(row["subsets"]), *cells(row)] for row in table_by_size(rows)]
    panels.append(table("Means by subset size", ["modalities given", "subsets", *names], means))
    every = table("All subsets", ["subset", *names], [[row["subset"], *cells(row)] for row in rows])
    text = " ".join(sentences[key] for key in known)
    return paragraph(text) + f'<div class="panels">{"".join(panels)}</div>' + details("Every subset", every)


def tiles(results: Results) -> list[tuple[str, str, str]]:
    """The first numbers one looks for: (name, value, what stands beside it)."""
    found = []
    if isinstance(results.probe, Probe):
        full = results.probe.rows[-1]
        beside = f"most frequent class {percent(results.probe.chance)}"
        found.append((f"probe accuracy, {results.probe.label}", percent(full["accuracy"]), beside))
    if isinstance(results.imputed, Imputed):
        errors = {name: error.overall_rmse for name, error in results.imputed.errors.items()}
        if errors["model"] == errors["model"]:
            beside = ", ".join(f"{name} {number(value)}" for name, value in errors.items() if name != "model")
            found.append(("imputation error", number(errors["model"]), beside))
    if isinstance(results.likelihoods, Likelihoods):
        joint = results.likelihoods.joint
        found.append(("log-likelihood, nats", number(joint.mean, 4), f"± {number(joint.error, 2)}"))
    if isinstance(results.history, History):
        last, best = results.history.rows[-1], best_row(results.history)
        if best is not None:
            found.append(("validation bound, nats", number(best["validation"], 4), f"best, at step {best['step']:,}"))
        elif "bound" in last:
            found.append(("training bound, nats", number(last["bound"], 4), f"last, at step {last['step']:,}"))
    return found
