"""How well hidden entries are filled, and reference imputers for the same gaps.

    numbers       RMSE = √ mean ((x̂ − x) / sd)²      over the hidden entries; sd of each column in the training data
    categories    the share of hidden entries whose category is found

A reference imputer learns from the training rows, gaps and all, and fills the gaps of other rows. It sees one table: all modalities
side by side, numbers standardised, categories one-hot (the largest of their filled columns is the category).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from codevae.batch import Batch
from codevae.errors import InputError
from codevae.likelihoods import Bernoulli, Categorical, Columns, Likelihood
from codevae.metrics.em import Gaussian
from codevae.modality import Modality

Imputer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(training table, table with gaps), both (rows, columns) with NaN in the gaps → the second table without gaps."""


@dataclass(frozen=True)
class Layout:
    """All modalities side by side as one table, in the units of the training data.

    Arguments:
        sizes: per modality, how many entries a data point has.
        levels: (F,) how many categories each entry has; 0 for numbers.
        mean: (F,) of the training data.
        spread: (F,) standard deviations of the training data, 1 where nothing varies.

    Example:
        >>> train = Batch({"rna": [[1.0, 2.0], [3.0, 2.0]], "sick": [[1.0], [0.0]]})
        >>> layout = Layout.learn(train, {"rna": Modality("rna", (2,)), "sick": Modality("sick", (1,), Bernoulli())})
        >>> layout.table(train).tolist()
        [[-1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]
    """

    sizes: dict[str, int]
    levels: np.ndarray
    mean: np.ndarray
    spread: np.ndarray

    @classmethod
    def learn(cls, train: Batch, modalities: Mapping[str, Modality]) -> "Layout":
        """The layout of these modalities, with means and standard deviations of what is there."""
        sizes = {name: modalities[name].size for name in train.names}
        x = flat(train, list(sizes))
        there = ~np.isnan(x)
        number = there.sum(0).clip(min=1)
        mean = np.where(there, x, 0.0).sum(0) / number
        spread = np.sqrt(np.where(there, (x - mean) ** 2, 0.0).sum(0) / number)
        levels = np.concatenate([_levels(modalities[name].likelihood, sizes[name]) for name in sizes])
        return cls(sizes, levels, mean, np.where(spread > 1e-9 * np.abs(mean).clip(min=1e-30), spread, 1.0))

    @property
    def width(self) -> int:
        """How many columns the table has."""
        return int(self.levels.clip(min=1).sum())

    @property
    def _source(self) -> tuple[np.ndarray, np.ndarray]:
        """For every column of the table: which entry it shows, and the category that it stands for (−1 for a number)."""
        entry = np.repeat(np.arange(len(self.levels)), self.levels.clip(min=1))
        start = np.cumsum(self.levels.clip(min=1)) - self.levels.clip(min=1)
        return entry, np.where(self.levels[entry] > 0, np.arange(len(entry)) - start[entry], -1)

    def table(self, batch: Batch) -> np.ndarray:
        """(N, columns), NaN where nothing is."""
        entry, category = self._source
        x = flat(batch, list(self.sizes))
        standard = ((x - self.mean) / self.spread)[:, entry]
        onehot = np.where(np.isnan(standard), np.nan, x[:, entry] == category)
        return np.where(category < 0, standard, onehot)

    def batch(self, table: np.ndarray, gaps: Batch) -> Batch:
        """The batch whose gaps are filled from a table."""
        entry, category = self._source
        x = np.empty((len(table), len(self.levels)))
        numbers = self.levels == 0
        x[:, numbers] = table[:, category < 0] * self.spread[numbers] + self.mean[numbers]
        for place in np.flatnonzero(~numbers):
            x[:, place] = table[:, entry == place].argmax(1)
        filled = {}
        for name, columns in zip(self.sizes, np.split(x, np.cumsum(list(self.sizes.values()))[:-1], 1), strict=True):
            values = gaps.values[name]
            guess = torch.from_numpy(columns if values.is_floating_point() else columns.round()).reshape(values.shape)
            filled[name] = torch.where(gaps.entries[name].cpu(), values.cpu(), guess.to(values.dtype))
        return Batch(filled, labels=gaps.labels, ids=gaps.ids)


@dataclass(frozen=True)
class ImputationError:
    """What `imputation_error` found; NaN where nothing of the kind was hidden.

    Arguments:
        rmse: per modality, of the hidden numbers.
        accuracy: per modality, of the hidden categories.
        entries: per modality, how many entries were hidden.
        overall_rmse: over all hidden numbers.
        overall_accuracy: over all hidden categories.
    """

    rmse: dict[str, float]
    accuracy: dict[str, float]
    entries: dict[str, int]
    overall_rmse: float
    overall_accuracy: float


def imputation_error(truth: Batch, filled: Batch, gaps: Batch, layout: Layout) -> ImputationError:
    """The error over the entries that `truth` has and `gaps` lacks.

    Arguments:
        truth: what the data points are.
        filled: the same data points as an imputer returned them.
        gaps: the same data points as the imputer was given them.
        layout: of the training data, for the units and for what is a category.
    """
    if not len(truth) == len(filled) == len(gaps):
        raise InputError(
            f"imputation_error: truth, filled and gaps must hold the same data points, got {len(truth)}, {len(filled)} and {len(gaps)}."
        )
    names = list(layout.sizes)
    x, guess = flat(truth, names), flat(filled, names)
    hidden = ~np.isnan(x) & np.isnan(flat(gaps, names))
    numbers, categories = hidden & (layout.levels == 0), hidden & (layout.levels > 0)
    squares, right = ((guess - x) / layout.spread) ** 2, guess == x
    ends = np.cumsum(list(layout.sizes.values()))
    of = {name: slice(end - layout.sizes[name], end) for name, end in zip(names, ends, strict=True)}
    return ImputationError(
        {name: _mean(squares[:, part], numbers[:, part]) ** 0.5 for name, part in of.items()},
        {name: _mean(right[:, part], categories[:, part]) for name, part in of.items()},
        {name: int(hidden[:, part].sum()) for name, part in of.items()},
        _mean(squares, numbers) ** 0.5,
        _mean(right, categories),
    )


def fill_by(imputer: Imputer, train: Batch, gaps: Batch, layout: Layout) -> Batch:
    """The gaps filled by a reference imputer that learns from `train`.

    Arguments:
        imputer: `column_means`, `nearest_rows`, `gaussian`, `chained_regressions`, or your own.
        train: the rows to learn from, complete or not.
        gaps: the rows to fill.
        layout: of `train`.
    """
    return layout.batch(imputer(layout.table(train), layout.table(gaps)), gaps)


def column_means(train: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Every gap becomes its column's mean; a category the most frequent one."""
    there = ~np.isnan(train)
    means = np.where(there, train, 0.0).sum(0) / there.sum(0).clip(min=1)
    return np.where(np.isnan(gaps), means, gaps)


def nearest_rows(train: np.ndarray, gaps: np.ndarray, neighbours: int = 5) -> np.ndarray:
    """The mean of the nearest training rows that have the entry (scikit-learn's `KNNImputer`)."""
    _sklearn()
    from sklearn.impute import KNNImputer

    return KNNImputer(n_neighbors=neighbours, keep_empty_features=True).fit(train).transform(gaps)


def gaussian(train: np.ndarray, gaps: np.ndarray, ridge: float = 0.05, iterations: int = 20) -> np.ndarray:
    """The conditional mean of a multivariate normal that EM fitted to the training rows."""
    return Gaussian.fit(train, ridge, iterations, tolerance=1e-4).impute(gaps)


def chained_regressions(train: np.ndarray, gaps: np.ndarray, predictors: int | None = 30, rounds: int = 10, seed: int = 0) -> np.ndarray:
    """Each column regressed on others in turn (scikit-learn's `IterativeImputer`, Bayesian ridge); slow for wide tables.

    Arguments:
        train, gaps: tables.
        predictors: on how many other columns, drawn by correlation; None for all.
        rounds: over all columns.
        seed: of those draws.
    """
    _sklearn()
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    imputer = IterativeImputer(max_iter=rounds, n_nearest_features=predictors, random_state=seed, keep_empty_features=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of rounds is what was asked for
        return imputer.fit(train).transform(gaps)


def flat(batch: Batch, names: list[str]) -> np.ndarray:
    """The entries of these modalities side by side, (N, F) in double precision, NaN where nothing is."""
    pieces = []
    for name in names:
        values = batch.values[name].detach().cpu()
        there = batch.entries[name].cpu().expand(values.shape)
        pieces.append(torch.where(there, values.double(), torch.nan).flatten(1).numpy())
    return np.concatenate(pieces, 1)


def _levels(likelihood: Likelihood, size: int) -> np.ndarray:
    """How many categories each entry of a modality has."""
    if isinstance(likelihood, Columns):
        levels = np.zeros(size, dtype=int)
        for part, columns in zip(likelihood.parts, likelihood.columns, strict=True):
            levels[columns] = _levels(part, len(columns))
        return levels
    kinds = 2 if isinstance(likelihood, Bernoulli) else likelihood.categories if isinstance(likelihood, Categorical) else 0
    return np.full(size, kinds)


def _mean(values: np.ndarray, where: np.ndarray) -> float:
    return float(values[where].mean()) if where.any() else float("nan")


def _sklearn() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise InputError("reference imputers need scikit-learn: pip install 'codevae[report]'.") from error
