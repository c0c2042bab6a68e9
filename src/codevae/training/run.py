"""The run folder: plain files, each written whole or not at all, enough to use the model without its data.

config.yaml            everything that made it: model, training, data, versions
weights.safetensors    the weights at the end
best.safetensors       the weights with the best validation bound, which `load` prefers
state.safetensors      what resuming needs: weights, optimiser and counters, in one file so that they cannot disagree
history.csv            one row per evaluation
schema.json            the columns of the tables, where it was trained on tables
"""

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from codevae.axes import Tensor
from codevae.errors import InputError
from codevae.files import write_whole
from codevae.model import MultimodalVAE
from codevae.record import describe, rebuild
from codevae.training.history import History
from codevae.version import __version__

FORMAT = 1
"""Of the run folder; a newer one is refused with a word on what to do."""


class Run:
    """A run folder and its files.

    Arguments:
        path: of the folder.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.config_file = self.path / "config.yaml"
        self.weights_file = self.path / "weights.safetensors"
        self.best_file = self.path / "best.safetensors"
        self.state_file = self.path / "state.safetensors"
        self.history_file = self.path / "history.csv"
        self.schema_file = self.path / "schema.json"
        self.report_file = self.path / "report.html"

    def start(
        self, model: MultimodalVAE, training: Mapping[str, Any], data: Mapping[str, Any], schema: Mapping[str, Any] | None = None
    ) -> None:
        """Write the config, and the schema of the tables: what the run is, before it has any weights."""
        config = {
            "format": FORMAT,
            "versions": {
                "codevae": __version__,
                "python": platform.python_version(),
                "torch": str(torch.__version__),
                "numpy": np.__version__,
            },
            "data": dict(data),
            "training": dict(training),
            "model": describe(model),
        }
        if schema is not None:
            with write_whole(self.schema_file) as temporary:
                temporary.write_text(json.dumps(schema, indent=1, ensure_ascii=False), encoding="utf-8")
        with write_whole(self.config_file) as temporary:
            temporary.write_text(yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True), encoding="utf-8")

    @property
    def exists(self) -> bool:
        """Whether a run was started here; a place that can hold none is an error."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: expected a folder for the run, this is a file; choose another place.")
        return self.config_file.is_file()

    @property
    def config(self) -> dict[str, Any]:
        """The config, checked for being one that this version can read."""
        if not self.path.is_dir():
            raise InputError(f"{self.path}: there is no such run folder; train one with `codevae train … --out {self.path}`.")
        if not self.exists:
            raise InputError(f"{self.path}: not a run folder, config.yaml is missing; give the folder that was `--out` of a training.")
        try:
            config = yaml.safe_load(self.config_file.read_text(encoding="utf-8"))
            version = config["format"]
            config["model"], config["training"], config["data"]
        except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"{self.config_file}: damaged, it is not the config of a run ({reason}); restore it from a copy, or train anew."
            ) from error
        if not isinstance(version, int) or version > FORMAT:
            raise InputError(
                f"{self.config_file}: written in format {version} by codevae {config.get('versions', {}).get('codevae', '?')}, this is "
                f"codevae {__version__} with format {FORMAT}; upgrade codevae to use it."
            )
        return config

    @property
    def history(self) -> History:
        """What happened in training, so far."""
        return History.read(self.history_file) if self.history_file.is_file() else History()

    def model(self, modules: Mapping[str, tuple[Any, Any]] | None = None, trust: bool = False) -> MultimodalVAE:
        """The model that the config describes, with its first weights."""
        plain = self.config["model"]
        by_name = {part["arguments"]["name"]: part["arguments"] for part in plain["arguments"]["modalities"]}
        for name, (encoder, decoder) in (modules or {}).items():
            if name not in by_name:
                raise InputError(f"load(modules): {name!r} is not a modality of {self.path}, which has {', '.join(by_name)}.")
            by_name[name].update(encoder=encoder, decoder=decoder)
        return rebuild(plain, trust)

    def save_weights(self, model: MultimodalVAE, best: bool = False) -> None:
        """Write the weights as they stand."""
        save_tensors(self.best_file if best else self.weights_file, model.state_dict())

    def load_weights(self, model: MultimodalVAE) -> None:
        """The best weights where there was validation, else the last ones; of a run that was stopped, those of its state."""
        file = next((file for file in (self.best_file, self.weights_file) if file.is_file()), None)
        if file is None and self.state_file.is_file():
            tensors = load_tensors(self.state_file)
            put_weights(model, {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model/")}, self.state_file)
            return
        if file is None:
            raise InputError(
                f"{self.path}: half a run folder, there is a config but no weights; `codevae resume {self.path}` goes on, or train anew."
            )
        put_weights(model, load_tensors(file), file)


def load(path: str | Path, modules: Mapping[str, tuple[Any, Any]] | None = None, trust: bool = False) -> MultimodalVAE:
    """The trained model of a run folder, with its best weights; no data is needed.

    Arguments:
        path: of the run folder.
        modules: {name: (encoder, decoder)} for networks that were given as bare instances, which a config cannot rebuild.
        trust: whether classes that are not part of codevae may be imported, as the config names them.
    """
    run = Run(path)
    model = run.model(modules, trust)
    run.load_weights(model)
    return model.eval()


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> None:
    """Tensors, with a dict of plain values beside them, as one safetensors file."""
    flat = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with write_whole(path) as temporary:
        temporary.write_bytes(save(flat, {"codevae": json.dumps(about or {})}))  # as bytes: a full disk is then an OSError


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file; a damaged one is named."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: damaged or not a safetensors file ({error}); restore it from a copy, or train anew.") from error


def load_about(path: Path) -> dict[str, Any]:
    """The plain values of a file."""
    try:
        with safe_open(path, "pt") as file:
            return json.loads((file.metadata() or {}).get("codevae", "{}"))
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: damaged or not a safetensors file ({error}); restore it from a copy, or train anew.") from error


def put_weights(model: MultimodalVAE, tensors: Mapping[str, Tensor], file: Path) -> None:
    """Load weights into a model; ones that do not fit it are named."""
    try:
        model.load_state_dict(dict(tensors))
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{file}: the weights do not fit the model of config.yaml ({reason[:300]}); the two are not of one run."
        ) from error


def _plain(value: Any) -> Any:
    """Values that YAML writes without types of Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
