"""codevae: multimodal variational autoencoders for data in which modalities are missing.

A table of contents: importing it imports nothing else, names are found when they are asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "__version__": "codevae.version",
    "Batch": "codevae.batch",
    "CoDE": "codevae.consensus",
    "PoE": "codevae.consensus",
    "Modality": "codevae.modality",
    **dict.fromkeys(("CMVAE", "CoDEVAE", "MMJSD", "MMVAE", "MMVAEPlus", "MVAE", "MVTCAE", "MoPoE", "VAE"), "codevae.methods"),
    "MultimodalVAE": "codevae.model",
    "fit": "codevae.training",
    "load": "codevae.training",
    "resume": "codevae.training",
}
_MODULES = ("data", "likelihoods", "metrics", "networks", "report")

__all__ = sorted({*_HOME, *_MODULES} - {"__version__"})  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from codevae import data, likelihoods, metrics, networks, report
    from codevae.batch import Batch
    from codevae.consensus import CoDE, PoE
    from codevae.methods import CMVAE, MMJSD, MMVAE, MVAE, MVTCAE, VAE, CoDEVAE, MMVAEPlus, MoPoE
    from codevae.modality import Modality
    from codevae.model import MultimodalVAE
    from codevae.training.fit import fit, resume
    from codevae.training.run import load
    from codevae.version import __version__


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"codevae.{name}")
    raise AttributeError(f"codevae has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
