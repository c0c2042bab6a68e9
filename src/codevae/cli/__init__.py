"""The command line: a table of verbs. What each needs is imported when it is called."""

import difflib
import importlib
import sys
import traceback
from collections.abc import Sequence

from codevae.errors import Diverged, InputError, Interrupted
from codevae.version import __version__

VERBS = {
    "train": ("train", "TABLE… --out RUN", "tables → a trained model in a run folder"),
    "resume": ("train", "RUN [TABLE…]", "go on with a training that was stopped"),
    "info": ("use", "RUN", "what a run is: data, model, training, results"),
    "embed": ("use", "RUN TABLE… --out FILE", "samples → their latent codes"),
    "impute": ("use", "RUN TABLE… --out FOLDER", "tables with gaps → tables without"),
    "translate": ("use", "RUN TABLE… --to NAME --out FILE", "some modalities → another one"),
    "generate": ("use", "RUN -n COUNT --out FOLDER", "new samples from the prior"),
    "evaluate": ("judge", "RUN [TABLE…]", "likelihood, imputation error and probes, as numbers"),
    "report": ("judge", "RUN [TABLE…]", "everything on one HTML page, which opens offline"),
}
"""verb: (the module it lives in, what it is called with, what it does)"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb. Exit codes: 0 done, 2 the input is at fault, 1 something else, 130 interrupted (and resumable)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"codevae {__version__}")
        return 0
    verb = words[0]
    try:
        if verb not in VERBS:
            near = difflib.get_close_matches(verb, VERBS, 1)
            raise InputError(
                f"there is no verb {verb!r}{f', did you mean {near[0]!r}?' if near else ';'} the verbs are {', '.join(VERBS)}."
            )
        return int(getattr(importlib.import_module(f"codevae.cli.{VERBS[verb][0]}"), verb)(words[1:]) or 0)
    except InputError as error:
        print(f"codevae {verb}: {error}", file=sys.stderr)
        return 2
    except Interrupted as error:
        print(f"\ncodevae {verb}: {error}", file=sys.stderr)
        return 130
    except KeyboardInterrupt:
        print(f"\ncodevae {verb}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    except Diverged as error:
        print(f"codevae {verb}: {error}", file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        print(f"codevae {verb}: this is a fault of codevae {__version__}; please report it with the lines above.", file=sys.stderr)
        return 1


def overview() -> str:
    """What `codevae --help` says."""
    width = max(len(f"{verb} {usage}") for verb, (_, usage, _) in VERBS.items())
    verbs = "\n".join(f"  {f'{verb} {usage}':<{width}}  {says}" for verb, (_, usage, says) in VERBS.items())
    return f"""codevae {__version__}: one model of several modalities, some of which are missing.

usage: codevae VERB …

{verbs}

A TABLE is a .csv, .tsv, .parquet, .npy or .npz file; it is a modality, named after the file (or name=file). Rows are matched by the
first column. A row that a table lacks is a missing modality, an empty cell a missing value. Instead of tables, `multiple_features`
is a bundled data set of 2,000 handwritten digits in six modalities.

  codevae train rna.csv protein.csv --out runs/first
  codevae report runs/first

`codevae VERB --help` says more of each verb."""
