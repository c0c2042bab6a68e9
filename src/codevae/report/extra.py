"""Libraries that a report needs and codevae itself does not."""

import importlib
from typing import Any

from codevae.errors import InputError


def extra(module: str) -> Any:
    """A module of matplotlib or scikit-learn; without it, an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = {"sklearn": "scikit-learn"}.get(module.partition(".")[0], module.partition(".")[0])
        raise InputError(f"a report needs {library}: pip install 'codevae[report]'.") from error
