"""What was trained, and on what."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
import yaml

from codevae.batch import Batch
from codevae.likelihoods import Columns, Likelihood
from codevae.model import MultimodalVAE
from codevae.record import describe
from codevae.training import Run


@dataclass(frozen=True)
class Part:
    """A modality: its name, the shape of a value, its likelihood, P, and the shares of data points that have it (None: not known)."""

    name: str
    shape: tuple[int, ...]
    likelihood: str
    private_dim: int
    trained: float | None
    judged: float | None


@dataclass(frozen=True)
class About:
    """What a reader has to know before any number.

    Arguments:
        name: of the run folder.
        method: of the model.
        latent_dim: D.
        parts: the modalities.
        parameters: how many numbers were learned.
        points: data points of the training, validation among them; None if that is not known.
        missing: the share of their modality entries that were not there; None if the data were not given.
        step: the last one.
        training: the settings.
        seconds: how long it took; None if the history does not say.
        arguments: of the method, with what was learned of ρ.
        versions: of the software.
        config: as text.
    """

    name: str
    method: str
    latent_dim: int
    parts: list[Part]
    parameters: int
    points: int | None
    missing: float | None
    step: int
    training: dict[str, Any]
    seconds: float | None
    arguments: dict[str, str]
    versions: dict[str, str]
    config: str


def about(run: Run, model: MultimodalVAE, train: Batch | None, judged: Batch | None) -> About:
    """Read from the run, the model and the data.

    Arguments:
        run: its folder.
        model: as loaded.
        train: the data points of the training.
        judged: those that the report is about.
    """
    config, history = run.config, run.history
    last = history.rows[-1] if history.rows else {}
    seconds = [row["seconds"] for row in history.rows if isinstance(row.get("seconds"), int | float)]
    trained, shown = _shares(model, train), _shares(model, judged)
    parts = [
        Part(name, part.shape, _kind(part.likelihood), part.private_dim, trained.get(name), shown.get(name))
        for name, part in model.modalities.items()
    ]
    return About(
        name=run.path.resolve().name,
        method=type(model.method).__name__,
        latent_dim=model.latent_dim,
        parts=parts,
        parameters=sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        points=config["data"].get("points", None if train is None else len(train)),
        missing=None if train is None else 1 - sum(trained.values()) / len(trained),
        step=int(last.get("step", 0)),
        training=dict(config["training"]),
        seconds=seconds[-1] if seconds else None,
        arguments=_arguments(model),
        versions={name: str(version) for name, version in config.get("versions", {}).items()},
        config=yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
    )


def _shares(model: MultimodalVAE, batch: Batch | None) -> dict[str, float]:
    """The share of the data points that have each modality."""
    if batch is None:
        return {}
    observed = model.prepare(batch).observed.double().mean(0).tolist()
    return dict(zip(model.names, observed, strict=True))


def _kind(likelihood: Likelihood) -> str:
    """A likelihood in a few words."""
    if not isinstance(likelihood, Columns):
        return type(likelihood).__name__
    counts: Counter[str] = Counter()
    for part, columns in zip(likelihood.parts, likelihood.columns, strict=True):
        counts[type(part).__name__] += len(columns)
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _arguments(model: MultimodalVAE) -> dict[str, str]:
    """The method's settings that are single values; ρ, if learned, with its mean as it stands."""
    plain = describe(model.method)["arguments"]
    found = {name: str(value) for name, value in plain.items() if isinstance(value, str | int | float)}
    consensus = getattr(model.method, "consensus", None)
    if found.get("rho", "").startswith("learned") and consensus is not None and len(model.names) > 1:
        rho = consensus.correlation().detach()
        if rho.ndim >= 2:
            rho = rho[..., *torch.triu_indices(len(model.names), len(model.names), 1)]
        found["rho"] += f", {float(rho.mean()):.3g}" + (" on average" if rho.numel() > 1 else "")
    return found
