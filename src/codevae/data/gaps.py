"""Making gaps: hide modalities at random, hold data points out."""

import numpy as np
import torch

from codevae.batch import Batch
from codevae.errors import InputError
from codevae.random import derive

_REMOVE, _SPLIT = 101, 102
"""The purposes of a draw: with the same seed, what is hidden has nothing to do with what is held out."""


def remove(batch: Batch, share: float, seed: int = 0) -> Batch:
    """The batch with a share of its modality entries hidden completely at random; what had something keeps at least one.

    Every observed entry (a modality of a data point) is hidden with probability `share`, whatever the others. A data point that
    would lose all M of its modalities keeps one of them, drawn evenly; so of points with M modalities the expected share hidden
    is share − shareᴹ/M: 0.399 for a share of 0.4 and six modalities, and all but one of each point for a share of 1.

    Arguments:
        batch: complete or not; what is hidden already stays hidden.
        share: 0 … 1.
        seed: of the draw.

    Example:
        >>> whole = Batch({"rna": torch.zeros(1000, 4), "protein": torch.zeros(1000, 2)})
        >>> gappy = remove(whole, 0.5)
        >>> bool(gappy.observed.any(1).all()), round(1 - gappy.observed.float().mean().item(), 1)
        (True, 0.4)
    """
    if not 0 <= share <= 1:
        raise InputError(f"remove(share): expected a number from 0 to 1, got {share!r}.")
    observed = batch.observed.cpu().numpy()
    draw = np.random.default_rng(derive(seed, _REMOVE))
    hidden = draw.random(observed.shape) < share
    kept = np.where(observed, draw.random(observed.shape), -1).argmax(1)
    losing = ~(observed & ~hidden).any(1)
    hidden[losing, kept[losing]] = False
    return batch.hide(torch.from_numpy(hidden).to(batch.device))


def split(batch: Batch, share: float, seed: int = 0) -> tuple[Batch, Batch]:
    """Two parts of the data points, drawn at random, each in the old order: (the rest, the held-out share).

    Arguments:
        batch: at least two data points.
        share: 0 … 1, held out; rounded to whole data points, and at least one stays in each part unless the share is 0.
        seed: of the draw.

    Example:
        >>> rest, held_out = split(Batch({"rna": torch.zeros(10, 4)}), 0.2)
        >>> len(rest), len(held_out)
        (8, 2)
    """
    if not 0 <= share < 1:
        raise InputError(f"split(share): expected a number of at least 0 and below 1, got {share!r}.")
    count = len(batch)
    if share and count < 2:
        raise InputError(f"split(batch): expected at least 2 data points to hold some out, got {count}; give more data or share=0.")
    held = min(max(1, round(share * count)), count - 1) if share else 0
    order = np.random.default_rng(derive(seed, _SPLIT)).permutation(count)
    return batch[np.sort(order[held:])], batch[np.sort(order[:held])]
