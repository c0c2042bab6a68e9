"""Training: data in, a run folder out."""

from codevae.training.fit import fit, resume
from codevae.training.history import History
from codevae.training.run import Run, load

__all__ = ["History", "Run", "fit", "load", "resume"]
