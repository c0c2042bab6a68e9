"""What a model's codes hold: maps in two dimensions, and linear probes, for several subsets of the modalities."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch

from codevae import subsets
from codevae.axes import Bool, Float, Tensor
from codevae.batch import Batch
from codevae.errors import InputError
from codevae.metrics import linear_probe
from codevae.model import MultimodalVAE
from codevae.random import derive, order
from codevae.report.extra import extra
from codevae.report.rows import Label, Omitted, Rows

DRAWN = 1000
"""A map shows at most so many data points."""

ALONE = 12
"""At most so many modalities are shown one by one."""


@dataclass(frozen=True)
class Map:
    """Codes in the plane.

    Arguments:
        given: the modalities they are inferred from.
        points: (n, 2) coordinates.
        rows: (n,) which data points of the label these are.
    """

    given: list[str]
    points: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class Maps:
    """The first map is given everything, each other one modality.

    Arguments:
        maps: at least one.
        how: "t-SNE" or "PCA".
        label: of the data points; None where there is none.
        drawn: how many data points were looked at.
        total: from how many they were drawn.
    """

    maps: list[Map]
    how: str
    label: Label | None
    drawn: int
    total: int


@dataclass(frozen=True)
class Probe:
    """Linear probes of one label.

    Arguments:
        label: its name.
        rows: per subset its name, size, accuracy and number of data points.
        chance: the share of the most frequent class.
        classes: how many there are.
        learned_from: the most data points that a probe learned from.
    """

    label: str
    rows: list[dict]
    chance: float
    classes: int
    learned_from: int


def codes(model: MultimodalVAE, batch: Batch, masks: Bool[Tensor, "K M"], chunk: int = 512) -> Float[Tensor, "K N D"]:
    """Posterior means given each subset, or what a data point has of it; every modality is encoded once."""
    found = []
    with model.asked(0):
        for start in range(0, len(batch), chunk):
            part = batch[start : start + chunk].to(model.device)
            mask = masks.to(model.device).unsqueeze(1) & part.observed
            found.append(model.method.posterior(model.encode(part), mask).shared.mean.cpu())
    return torch.cat(found, 1)


def maps(model: MultimodalVAE, rows: Rows, label: str | None, fast: bool = False, seed: int = 0) -> Maps | Omitted:
    """Where the data points lie given everything, and given each modality alone.

    Arguments:
        model: a trained model.
        rows: the judged ones are shown.
        label: its name.
        fast: PCA instead of t-SNE.
        seed: of t-SNE, and of which data points are drawn.
    """
    batch = rows.judged
    kept = np.sort(order(len(batch), derive(seed, 7), 0)[:DRAWN])
    batch, total = batch[kept], len(batch)
    alone = torch.eye(len(model.names), dtype=torch.bool)[: ALONE if len(model.names) > 1 else 0]
    masks = torch.cat([torch.ones(1, len(model.names), dtype=torch.bool), alone])
    found, axes = [], None
    for mask, z in zip(masks, codes(model, batch, masks), strict=True):
        have = (batch.observed & mask).any(-1)
        points = z[have].double().numpy()
        if len(points) < 4:
            continue
        axes = _axes(points) if axes is None else axes
        flat = (points - points.mean(0)) @ axes
        given = [name for name, held in zip(model.names, mask.tolist(), strict=True) if held]
        found.append(Map(given, flat if fast else _tsne(points, flat, seed), have.nonzero()[:, 0].numpy()))
    if not found:
        return Omitted("It needs at least four data points that have anything observed.")
    shown = Label.of(rows.judged, label) if label is not None else None
    if shown is not None and not shown.classes and np.isnan(shown.values).all():
        shown = None
    if shown is not None:
        shown = Label(shown.name, shown.classes, shown.codes[kept], shown.values[kept])
    return Maps(found, "PCA" if fast else "t-SNE", shown, len(batch), total)


def _axes(points: np.ndarray) -> np.ndarray:
    """The two leading principal axes (D, 2), each with its largest loading positive; zeros where D is 1."""
    _, _, rows = np.linalg.svd(points - points.mean(0), full_matrices=False)
    axes = np.zeros((points.shape[1], 2))
    axes[:, : len(rows[:2])] = rows[:2].T
    return axes * np.where(np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0) < 0, -1.0, 1.0)


def _tsne(points: np.ndarray, start: np.ndarray, seed: int) -> np.ndarray:
    """t-SNE from the principal axes of the codes given everything, so that the maps of several subsets lie alike."""
    spread = max(float(start[:, 0].std()), 1e-12)
    jitter = np.random.default_rng(seed).normal(size=start.shape)  # equal codes must be able to part
    first = (start / spread * 1e-4 + jitter * 1e-7).astype(np.float32)
    perplexity = min(30.0, (len(points) - 1) / 3)
    tsne = extra("sklearn.manifold").TSNE(perplexity=perplexity, init=first, max_iter=500, random_state=seed, n_jobs=1)
    return tsne.fit_transform(points.astype(np.float32)).astype(np.float64)


def some_subsets(modalities: int, seed: int = 0) -> Bool[Tensor, "K M"]:
    """All subsets of one modality and the full one; of every other size all, or a few drawn at random."""
    draw = np.random.default_rng(derive(seed, 8))
    each = max(1, 36 // modalities)
    chosen: list[tuple[int, ...]] = []
    for size in range(1, modalities + 1):
        if math.comb(modalities, size) <= max(each, ALONE if size == 1 else 1):
            chosen += itertools.combinations(range(modalities), size)
        else:
            drawn = {tuple(sorted(draw.permutation(modalities)[:size].tolist())) for _ in range(each)}
            chosen += sorted(drawn)
    return torch.tensor([[m in subset for m in range(modalities)] for subset in chosen])


def probe(model: MultimodalVAE, rows: Rows, label: str | None, points: int = 500, seed: int = 0) -> Probe | Omitted:
    """Accuracy of a linear probe on the codes given each subset, over the data points that have something of it.

    Arguments:
        model: a trained model.
        rows: the fitted ones teach the probe.
        label: its name.
        points: how many of them.
        seed: of that draw, and of the subsets.
    """
    if label is None:
        return Omitted("It needs labels: the data points have none.")
    extra("sklearn")
    learned = Label.of(rows.fitted, label) if label in rows.fitted.labels else None
    if learned is None or len(learned.classes) < 2:
        return Omitted(f"It needs a label with classes: {label!r} is a scale, or the same everywhere.")
    judged = Label.of(rows.judged, label, learned.classes)
    masks, found, most = some_subsets(len(model.names), seed), [], 0
    pairs = zip(masks, codes(model, rows.fitted, masks), codes(model, rows.judged, masks), strict=True)
    for (mask, z_fitted, z_judged), name in zip(pairs, subsets.names_of(masks, model.names), strict=True):
        teach = (rows.fitted.observed & mask).any(-1).numpy() & (learned.codes >= 0)
        ask = (rows.judged.observed & mask).any(-1).numpy() & (judged.codes >= 0)
        if not ask.any() or len(np.unique(learned.codes[teach])) < 2:
            continue
        try:
            accuracy = linear_probe(z_fitted[teach], learned.codes[teach], z_judged[ask], judged.codes[ask], points, seed)
        except InputError:  # the drawn points happen to be of one class
            continue
        most = max(most, min(points, int(teach.sum())))
        found.append({"subset": name, "size": int(mask.sum()), "accuracy": accuracy, "points": int(ask.sum())})
    if not found:
        return Omitted(f"No subset has data points of two classes of {label!r}.")
    counts = np.bincount(judged.codes[judged.codes >= 0], minlength=len(learned.classes))
    return Probe(label, found, float(counts.max() / counts.sum()), len(learned.classes), most)
