"""What a training is made of, resolved and checked."""

import math
from dataclasses import dataclass

from codevae.errors import InputError


@dataclass(frozen=True)
class Settings:
    """What a training is, resolved: no "auto", no None that means something else."""

    steps: int
    batch_size: int
    learning_rate: float
    schedule: str
    weight_decay: float
    clip: float | None
    validation: float
    patience: int | None
    interval: int
    save_every: float
    seed: int
    accelerator: str
    devices: int
    precision: str

    def rate(self, step: int) -> float:
        """The learning rate of a step: constant, or a cosine down to zero."""
        return self.learning_rate * (1.0 if self.schedule == "constant" else 0.5 * (1 + math.cos(math.pi * step / self.steps)))

    def check(self) -> None:
        """Refuse settings that cannot be."""
        for name, good, expected in (
            ("steps", self.steps >= 1, "at least 1"),
            ("batch_size", self.batch_size >= 1, "at least 1"),
            ("learning_rate", self.learning_rate > 0, "a positive number"),
            ("schedule", self.schedule in ("cosine", "constant"), "'cosine' or 'constant'"),
            ("weight_decay", self.weight_decay >= 0, "at least 0"),
            ("clip", self.clip is None or self.clip > 0, "a positive number or None"),
            ("patience", self.patience is None or self.patience >= 1, "at least 1 or None"),
            ("interval", self.interval >= 1, "at least 1"),
        ):
            if not good:
                raise InputError(f"fit({name}): expected {expected}, got {getattr(self, name)!r}.")


def steps_of(epochs: float | None, steps: int | None, per_epoch: int) -> int:
    """How many steps: as asked, by steps or by epochs; else 3,000 or 20 epochs, whichever is more."""
    if epochs is not None and steps is not None:
        raise InputError("fit(epochs, steps): give one of them, not both.")
    if epochs is not None:
        return round(epochs * per_epoch)
    return max(2500, 20 * per_epoch) if steps is None else steps
