"""The linear probe: how much a linear classifier finds in a representation."""

from typing import Any

import numpy as np

from codevae import random
from codevae.errors import InputError


def linear_probe(train: Any, train_labels: Any, test: Any, test_labels: Any, points: int = 500, seed: int = 0) -> float:
    """Accuracy on all of `test` of a logistic regression (lbfgs) fitted to `points` random rows of `train`.

    Arguments:
        train: (N, D) codes, as they are; raw columns to compare with should be standardised first.
        train_labels: their classes.
        test: codes of other data points.
        test_labels: their classes.
        points: how many training rows are drawn, without replacement.
        seed: of that draw.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise InputError("linear_probe needs scikit-learn: pip install 'codevae[report]'.") from error
    train, test = np.asarray(train, dtype=np.float64), np.asarray(test, dtype=np.float64)
    train_labels, test_labels = np.asarray(train_labels), np.asarray(test_labels)
    rows = np.sort(random.order(len(train), seed, 0)[:points])
    if len(np.unique(train_labels[rows])) < 2:
        raise InputError("linear_probe(train_labels): the drawn training points are all of one class; give more points.")
    return float(LogisticRegression(max_iter=3000).fit(train[rows], train_labels[rows]).score(test, test_labels))
