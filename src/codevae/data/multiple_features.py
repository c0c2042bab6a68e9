"""Multiple Features: 2,000 handwritten digits described by six tables; it comes with codevae.

UCI Machine Learning Repository, donated by Robert P.W. Duin, Department of Applied Physics, Delft; CC BY 4.0;
https://doi.org/10.24432/C5HC70.
"""

from importlib.resources import files

import numpy as np
import pandas as pd

from codevae.batch import Batch
from codevae.data.gaps import remove

NAMES = ("fac", "fou", "kar", "mor", "pix", "zer")

PICTURES = {"pix": (16, 15)}
"""Which modality can be drawn, and its height and width: `modalities(batch, pictures=PICTURES)`."""

_ORDER = 2000
"""The seed of the rows' order: the files are sorted by class, and a slice of what we give must be a fair sample."""


def multiple_features(missing: float = 0.0, seed: int = 0) -> Batch:
    """UCI Multiple Features: fac 216, fou 76, kar 64, mor 6, pix 240 (a 16 × 15 image), zer 47 columns, and the label "digit".

    The data points come in one fixed, shuffled order; `ids` are their row numbers in the original files, "0" … "1999". The
    numbers are as published: a model's likelihoods standardise them.

    Arguments:
        missing: 0 … 1, the share of the modality entries that are hidden at random, by `remove`: every digit keeps at least one
            of its six tables, so for a share s the expected share hidden is s − s⁶/6.
        seed: of what is hidden.

    Example:
        >>> digits = multiple_features(missing=0.4)
        >>> len(digits), digits.names, digits.values["pix"].shape
        (2000, ['fac', 'fou', 'kar', 'mor', 'pix', 'zer'], torch.Size([2000, 240]))
    """
    tables = {name: _table(name) for name in NAMES}
    order = np.random.default_rng(_ORDER).permutation(len(tables["fac"]))
    batch = Batch(
        {name: table[order, :-1].astype(np.float32) for name, table in tables.items()},
        labels={"digit": tables["fac"][order, -1].astype(np.int64)},
        ids=order.astype(str),
    )
    return remove(batch, missing, seed)


def _table(name: str) -> np.ndarray:
    """A file as it is: its last column is the class."""
    with files("codevae.data").joinpath(f"bundled/multiple_features/mfeat-{name}.csv.gz").open("rb") as handle:
        return pd.read_csv(handle, compression="gzip").to_numpy(np.float64)
