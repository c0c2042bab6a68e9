"""`codevae train` and `codevae resume`."""

import inspect
from collections.abc import Sequence
from typing import Any

from codevae import data, methods
from codevae.cli import parse
from codevae.cli.source import BUNDLED, PICTURES, Source, parts, read, read_for
from codevae.errors import InputError
from codevae.methods import Method
from codevae.model import MultimodalVAE
from codevae.training import History, Run, fit
from codevae.training import resume as go_on

METHODS = {name: cls for name, cls in vars(methods).items() if inspect.isclass(cls) and issubclass(cls, Method) and cls is not Method}


def options(
    out: str,
    id: str | None = None,
    labels: str = "",
    kind: dict[str, str] | None = None,
    ignore: str = "",
    likelihood: dict[str, str] | None = None,
    private: dict[str, int] | None = None,
    picture: dict[str, str] | None = None,
    latent_dim: int = 64,
    validation: float = 0.1,
    test: float = 0.0,
    missing: float = 0.0,
    overwrite: bool = False,
    progress: bool = True,
) -> None:
    """The data and the model.

    Arguments:
        out: the run folder to make.
        id: the column that matches rows over the tables (default: the first); `none` matches them by position.
        labels: columns, separated by commas, that describe the samples and are kept from the model.
        kind: NAME.COLUMN=KIND, where the kind that was recognised (number, count, yes/no, category) is not the right one.
        ignore: NAME.COLUMN, separated by commas: columns to leave out; `empty` stands for all in which nothing stands.
        likelihood: NAME=LIKELIHOOD, such as rna=NegativeBinomial.
        private: NAME=WIDTH, latent dimensions of this modality alone.
        picture: NAME=HEIGHTxWIDTH, to draw a table's rows as pictures in the report.
        latent_dim: D, the number of shared latent dimensions.
        validation: the share of the samples on which the best weights are chosen.
        test: the share of the samples that is kept aside for `evaluate` and `report`.
        missing: hide this share of the modality entries at random, to see how gaps are met.
        overwrite: replace a run that is already there.
        progress: show a progress bar.
    """


def train(words: Sequence[str]) -> int:
    """tables → a trained model in a run folder"""
    made = parse.parser(
        "train", "Train a model on tables, and write a run folder. A table is a modality; --config takes the options as YAML."
    )
    made.add_argument("--config", action="config", help="a YAML file with any of these options")
    made.add_argument("tables", nargs="*", help=f"files, name=file, or {BUNDLED}")
    parse.add(made, options)
    made.add_subclass_arguments(Method, "method", default={"class_path": "CoDEVAE"}, required=False, help="its arguments follow: --rho 0.4")
    parse.add(made, fit, skip=["model", "data", "validation", "out", "overwrite", "progress", "about", "schema"])
    made.appendix = parse.arguments_of(METHODS, made)
    asked = parse.parse(made, words, METHODS)
    if not asked.tables:
        raise InputError(f"name the tables to train on, or {BUNDLED}.")
    run = Run(asked.out)
    if run.exists and not asked.overwrite:
        raise InputError(f"{run.path}: there is a run already; choose another --out, `codevae resume {run.path}`, or --overwrite.")
    if not 0 <= asked.missing < 1:
        raise InputError(f"--missing: expected a share from 0 to below 1, got {asked.missing:g}.")
    if not 0 <= asked.test < 1:
        raise InputError(f"--test: expected a share from 0 to below 1, got {asked.test:g}.")
    source = read(asked.tables, asked.id, _listed(asked.labels), asked.kind or {}, _listed(asked.ignore))
    parts_of = {"seed": asked.seed, "missing": asked.missing, "test": asked.test}
    batch, test = _divide(source, **parts_of)
    model = MultimodalVAE(_modalities(source, asked), asked.latent_dim, made.instantiate(asked).method, seed=asked.seed)
    _say(source, batch, test, model, asked.validation)
    about = {"tables": list(asked.tables), **parts_of}
    chosen = {name: asked[name] for name in inspect.signature(fit).parameters if name in asked}
    schema = None if source.schema is None else source.schema.to_json()
    history = fit(model, batch, **{**chosen, "about": about, "schema": schema})
    return _done(run, history)


def resume(words: Sequence[str]) -> int:
    """go on with a training that was stopped"""
    made = parse.parser("resume", "Go on with a training that was stopped; on a CPU the result is the same to the bit.")
    made.add_argument("run", help="the run folder")
    made.add_argument("tables", nargs="*", help="the tables, if they moved")
    made.add_argument("--progress", type=bool, default=True, help="show a progress bar")
    asked = parse.parse(made, words)
    run = Run(asked.run)
    batch, _, _ = parts(run, read_for(run, asked.tables))
    _, history = go_on(run.path, batch, progress=asked.progress)
    return _done(run, history)


def _listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _divide(source: Source, seed: int, missing: float, test: float) -> tuple[Any, Any]:
    """Hide and keep aside, as asked; `source.parts` does the same again from the run's config."""
    batch = data.remove(source.batch, missing, seed) if missing else source.batch
    return data.split(batch, test, seed) if test else (batch, None)


def _modalities(source: Source, asked: Any) -> list[Any]:
    private = {name: int(width) for name, width in (asked.private or {}).items()}
    pictures = {name: _sizes(name, text) for name, text in (asked.picture or {}).items()}
    if source.schema is not None:
        return source.schema.modalities(likelihoods=asked.likelihood, private_dim=private, pictures=pictures)
    return data.modalities(source.batch, likelihoods=asked.likelihood, private_dim=private, pictures={**PICTURES, **pictures})


def _sizes(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.lower().split("x"))
    except ValueError as error:
        raise InputError(f"--picture {name}={text}: expected HEIGHTxWIDTH, such as 28x28.") from error


def _say(source: Source, batch: Any, test: Any, model: MultimodalVAE, validation: float) -> None:
    """What was read, and what will be trained on it."""
    if source.schema is not None:
        print(source.schema.describe())
    have = ", ".join(f"{name} {share:.0%}" for name, share in zip(batch.names, batch.observed.float().mean(0).tolist(), strict=True))
    aside = f", {len(test):,} kept aside for the test" if test is not None else ""
    chooses = f" (of which {validation:.0%} choose the best weights)" if validation else ""
    print(f"{len(batch):,} samples to train on{chooses}{aside}; observed: {have}")
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"{type(model.method).__name__}, {model.latent_dim} latent dimensions, {weights:,} weights")


def _done(run: Run, history: History) -> int:
    last = history.rows[-1]
    best = f", validation {max(history['validation']):.4g} at its best" if "validation" in last else ""
    print(f"{run.path}: {last['step']:,} steps, bound {last['bound']:.4g}{best}\nnext: codevae report {run.path}")
    return 0
