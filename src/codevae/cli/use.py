"""The verbs that use a trained model: info, embed, impute, translate, generate."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codevae import subsets
from codevae.batch import Batch
from codevae.cli import parse
from codevae.cli.source import numbered, read_for, save, save_values, schema_of
from codevae.errors import InputError, listed
from codevae.imputation import intervals as intervals_of
from codevae.model import MultimodalVAE
from codevae.training import Run, load
from codevae.training.run import load_about


def _opened(verb: str, about: str, words: Sequence[str], options: Any, tables: str = "+") -> tuple[Any, Run, MultimodalVAE]:
    made = parse.parser(verb, about)
    made.add_argument("run", help="the run folder")
    if tables:
        made.add_argument("tables", nargs=tables, help="files, name=file, or multiple_features; modalities that are not given are missing")
    parse.add(made, options)
    asked = parse.parse(made, words)
    run = Run(asked.run)
    return asked, run, load(run.path)


def _usable(batch: Batch, names: Sequence[str]) -> None:
    """Refuse to say something from nothing; say so where that is the case for some samples only."""
    columns = [batch.names.index(name) for name in names if name in batch.names]
    empty = int((~batch.observed[:, columns].any(1)).sum()) if columns else len(batch)
    if empty == len(batch):
        raise InputError(f"none of the modalities that may be used ({listed(names)}) is in the tables given; add a table of one of them.")
    if empty:
        print(f"note: {empty:,} of {len(batch):,} samples have none of {listed(names)}; what is said of them is the prior's mean")


def _given(model: MultimodalVAE, text: str | None) -> list[str] | None:
    return None if text is None else subsets.parse(text, model.names)


def info(words: Sequence[str]) -> int:
    """what a run is: data, model, training, results"""
    made = parse.parser("info", "What a run is: data, model, training, results.")
    made.add_argument("run", help="the run folder")
    run = Run(parse.parse(made, words).run)
    config, history = run.config, run.history
    model = config["model"]["arguments"]
    print(f"{run.path}: codevae {config['versions']['codevae']}, {config['data'].get('points', 0):,} samples")
    for part in model["modalities"]:
        arguments = part["arguments"]
        private = f", {arguments['private_dim']} private dimensions" if arguments["private_dim"] else ""
        likelihood = arguments["likelihood"]["class"].rpartition(".")[2]
        print(f"  {arguments['name']}: {' × '.join(map(str, arguments['shape']))}, {likelihood}{private}")
    settings = ", ".join(f"{name} {value}" for name, value in model["method"]["arguments"].items() if not isinstance(value, dict | list))
    print(f"{model['method']['class'].rpartition('.')[2]} ({settings}), {model['latent_dim']} latent dimensions")
    step = load_about(run.state_file)["step"] if run.state_file.is_file() else 0
    state = "finished" if run.weights_file.is_file() else f"stopped; codevae resume {run.path} goes on"
    last = history.rows[-1] if len(history) else {}
    bound = f": bound {last['bound']:.4g}" if last else ""
    best = f", best validation {max(history['validation']):.4g}" if "validation" in last else ""
    print(f"step {step:,} of {config['training']['steps']:,} ({state}){bound}{best}")
    return 0


def embed_options(out: str, given: str | None = None, samples: int | None = None, seed: int = 0) -> None:
    """Where to write, and from what.

    Arguments:
        out: the table to write (.csv, .tsv, .parquet, .npy).
        given: the modalities that may be used, joined by '+' (default: all that are there).
        samples: write the mean over this many draws instead of the posterior mean, and their spread beside it.
        seed: of the draws.
    """


def embed(words: Sequence[str]) -> int:
    """samples → their latent codes"""
    asked, run, model = _opened("embed", "The latent code of every sample: its posterior mean.", words, embed_options)
    source, given = read_for(run, asked.tables), _given(model, asked.given)
    _usable(source.batch, given or model.names)
    id_name = (source.schema and source.schema.id_name) or "id"
    if asked.samples is None:
        frame = numbered(model.embed(source.batch, given), source.batch.ids, "z", id_name)
    else:
        draws = model.embed(source.batch, given, samples=asked.samples, seed=asked.seed)
        mean, spread = (
            numbered(values, source.batch.ids, prefix, id_name) for values, prefix in ((draws.mean(0), "z"), (draws.std(0), "sd"))
        )
        frame = mean.join(spread)
    save(frame, asked.out)
    return 0


def impute_options(out: str, given: str | None = None, intervals: float | None = None, samples: int = 100, seed: int = 0) -> None:
    """Where to write, and from what.

    Arguments:
        out: the folder for the filled tables, one CSV file per modality, with the columns that are modelled.
        given: the modalities that may be used, joined by '+' (default: all that are there).
        intervals: also write the lower and upper ends of intervals that hold this share of the predicted values, such as 0.9.
        samples: draws behind the intervals.
        seed: of the draws.
    """


def impute(words: Sequence[str]) -> int:
    """tables with gaps → tables without"""
    asked, run, model = _opened("impute", "Fill what is missing, modalities and cells; what is there is kept.", words, impute_options)
    source = read_for(run, asked.tables)
    batch, given = source.batch, _given(model, asked.given)
    _usable(batch, given or model.names)
    ends = {}
    if asked.intervals is not None:
        lower, upper = intervals_of(model, batch, asked.intervals, given=given, samples=asked.samples, seed=asked.seed)
        ends = {"lower": lower, "upper": upper}
    filled = model.impute(batch, given)
    for name in model.names:
        file = Path(asked.out) / f"{name}.csv"
        if source.tables is not None and name in source.tables.exact:
            save(source.tables.filled(name, filled.values[name]), file)
        else:
            save_values(source.schema, name, filled.values[name], batch.ids, file)
    for end, values in ends.items():
        for name in model.names:
            save_values(source.schema, name, values.values[name], batch.ids, Path(asked.out) / f"{name}.{end}.csv")
    return 0


def translate_options(to: str, out: str, given: str | None = None) -> None:
    """Where to write, and from what.

    Arguments:
        to: the modality to predict.
        out: the table to write.
        given: the modalities that may be used, joined by '+' (default: all that are there but `to`).
    """


def translate(words: Sequence[str]) -> int:
    """some modalities → another one"""
    asked, run, model = _opened("translate", "Predict one modality from others.", words, translate_options)
    if asked.to not in model.names:
        raise InputError(f"--to {asked.to}: not a modality of {run.path}, which has {', '.join(model.names)}.")
    source = read_for(run, asked.tables)
    given = _given(model, asked.given) or [name for name in model.names if name != asked.to]
    _usable(source.batch, given)
    values = model.translate(source.batch, given, asked.to)
    save_values(source.schema, asked.to, values, source.batch.ids, Path(asked.out))
    return 0


def generate_options(out: str, count: int = 10, draw: bool = False, seed: int = 0) -> None:
    """How many, and where to.

    Arguments:
        out: the folder to write, one file per modality.
        count: how many samples (-n).
        draw: draw the values given z, instead of the likeliest ones.
        seed: of the draws.
    """


def generate(words: Sequence[str]) -> int:
    """new samples from the prior"""
    renamed = ["--count" if word == "-n" else word for word in words]
    asked, run, model = _opened("generate", "New samples: z from the prior, then a value of every modality.", renamed, generate_options, "")
    new = model.generate(asked.count, draw=asked.draw, seed=asked.seed)
    schema = schema_of(run) if run.schema_file.is_file() else None
    for name, values in new.values.items():
        save_values(schema, name, values, [f"new{row}" for row in range(asked.count)], Path(asked.out) / f"{name}.csv")
    return 0
