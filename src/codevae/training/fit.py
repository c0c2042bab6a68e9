"""`fit` starts a training, `resume` goes on with one."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from codevae.batch import Batch
from codevae.data import fingerprint, split
from codevae.errors import InputError
from codevae.model import MultimodalVAE
from codevae.training.history import History
from codevae.training.loop import Training, launched
from codevae.training.run import Run, load_about, load_tensors
from codevae.training.settings import Settings, steps_of


def fit(
    model: MultimodalVAE,
    data: Batch,
    *,
    epochs: float | None = None,
    steps: int | None = None,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    schedule: str = "cosine",
    weight_decay: float = 0.0,
    clip: float | None = None,
    validation: float | Batch = 0.1,
    patience: int | None = None,
    interval: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    save_every: float = 30.0,
    seed: int = 0,
    accelerator: str = "auto",
    devices: int = 1,
    precision: str = "32-true",
    progress: bool = True,
    about: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> History:
    """Training: the model is trained in place, and left with its best weights.

    Arguments:
        model: what to train.
        data: all data points in one `Batch`; any of their modalities may be missing.
        epochs: how often every data point is seen; give this or `steps` (default: 2,500 steps or 20 epochs, whichever is more).
        steps: how many updates.
        batch_size: data points of an update, over all processes.
        learning_rate: of Adam.
        schedule: "cosine" (down to zero) or "constant".
        weight_decay: of AdamW; 0 is Adam.
        clip: largest norm of the gradient; None leaves it as it is.
        validation: the share of the data held out, or a `Batch` of its own; 0 for none. The weights with the best validation
            bound are kept.
        patience: stop after this many evaluations without a better validation bound; None never does.
        interval: steps between evaluations (default: an epoch, but at least 50 steps).
        out: the run folder; without one nothing is written.
        overwrite: whether a run that is already there may be replaced.
        save_every: seconds between saved states.
        seed: of everything random in the training.
        accelerator: what to compute on, as in lightning-fabric: "auto", "cpu", "cuda", "mps".
        devices: how many of them, one process each.
        precision: "32-true", or "bf16-mixed" for networks in half precision.
        progress: whether to show a progress bar.
        about: plain values kept with the run under `data` in its config.
        schema: what was learned of the tables, `tables.schema.to_json()`, kept with the run for the command line.

    Example:
        >>> from codevae import Modality
        >>> model = MultimodalVAE([Modality("a", (3,)), Modality("b", (2,))], latent_dim=2, seed=0)
        >>> history = fit(model, Batch({"a": torch.randn(64, 3), "b": torch.randn(64, 2)}), steps=5, progress=False)
        >>> history["step"]
        [5]
    """
    data = model.prepare(data)
    kept, checked = _held_out(model, data, validation, seed)
    size = max(1, min(batch_size, len(kept)))
    per_epoch = math.ceil(len(kept) / size)
    settings = Settings(
        steps=steps_of(epochs, steps, per_epoch),
        batch_size=min(batch_size, size),
        learning_rate=learning_rate,
        schedule=schedule,
        weight_decay=weight_decay,
        clip=clip,
        validation=0.0 if checked is None else validation if isinstance(validation, int | float) else len(checked) / len(data),
        patience=patience,
        interval=max(per_epoch, 50) if interval is None else interval,
        save_every=save_every,
        seed=seed,
        accelerator=accelerator,
        devices=devices,
        precision=precision,
    )
    settings.check()
    model.calibrate(kept)
    fabric = launched(settings)
    run = None if out is None else Run(out)
    if run is not None and fabric.is_global_zero:
        if run.exists and not overwrite:
            raise InputError(
                f"{out}: there is a run already; choose another folder, go on with `resume`, or replace it with overwrite=True."
            )
        for file in (run.config_file, run.state_file, run.weights_file, run.best_file, run.history_file, run.report_file, run.schema_file):
            file.unlink(missing_ok=True)
        facts = {**(about or {}), "points": len(data), "fingerprint": fingerprint(data), "own_validation": isinstance(validation, Batch)}
        run.start(model, asdict(settings), facts, schema)
    fabric.barrier()
    return Training(fabric, model, kept, checked, settings, run, progress).go()


def resume(
    path: str | Path,
    data: Batch,
    validation: Batch | None = None,
    modules: Mapping[str, tuple[Any, Any]] | None = None,
    trust: bool = False,
    progress: bool = True,
    **changes: Any,
) -> tuple[MultimodalVAE, History]:
    """Go on with a run from its last state; on a CPU the result has the same bits as if it had never stopped.

    Arguments:
        path: of the run folder.
        data: the same data as before (its fingerprint is compared).
        validation: the validation batch, if the run had one of its own.
        modules: networks that the config cannot rebuild, as for `load`.
        trust: as for `load`.
        progress: whether to show a progress bar.
        changes: settings that do not change the numbers: `save_every`, `accelerator`, `devices`.
    """
    run = Run(path)
    config = run.config
    wrong = set(changes) - {"save_every", "accelerator", "devices"}
    if wrong:
        raise InputError(f"resume: {', '.join(sorted(wrong))} cannot change in a run that has begun; start a new one with `fit`.")
    model = run.model(modules, trust)
    data = model.prepare(data)
    facts = config["data"]
    if fingerprint(data) != facts.get("fingerprint"):
        raise InputError(
            f"{path}: the data are not those that the run was started with ({facts.get('points')} data points then, {len(data)} now, or "
            "other values); give the same again."
        )
    if facts.get("own_validation") and validation is None:
        raise InputError(f"{path}: the run had a validation batch of its own; give it again, resume(path, data, validation=…).")
    try:
        settings = replace(Settings(**config["training"]), **changes)
    except TypeError as error:
        raise InputError(f"{run.config_file}: damaged, its training settings are not complete ({error}).") from error
    kept, checked = _held_out(model, data, settings.validation if validation is None else validation, settings.seed)
    training = Training(launched(settings), model, kept, checked, settings, run, progress)
    if not run.state_file.is_file():
        model.calibrate(kept)
        return model, training.go()
    return model, training.go(load_about(run.state_file), load_tensors(run.state_file))


def _held_out(model: MultimodalVAE, data: Batch, validation: float | Batch, seed: int) -> tuple[Batch, Batch | None]:
    """Training data and validation data, or None."""
    if isinstance(validation, Batch):
        return data, model.prepare(validation)
    if isinstance(validation, bool) or not isinstance(validation, int | float) or not 0 <= validation < 1:
        raise InputError(f"fit(validation): expected a share from 0 to below 1, or a Batch, got {validation!r}.")
    if not bool(data.observed.any()):
        raise InputError("fit(data): nothing is observed in any data point.")
    held = round(validation * len(data))
    return split(data, held / len(data), seed) if 0 < held < len(data) else (data, None)
