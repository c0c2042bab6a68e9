"""What a model thinks of the subsets: their weights, the spread of their posteriors, and where experts get negative weights."""

from typing import Any

import torch

from codevae import subsets
from codevae.axes import Bool, Tensor
from codevae.batch import Batch
from codevae.consensus import CoDE
from codevae.distributions import Normal
from codevae.model import MultimodalVAE

DRAWN = 32
"""So many subsets stand for each size where the powerset is not enumerated."""


def subset_table(model: MultimodalVAE, batch: Batch, points: int = 1024, seed: int = 0) -> list[dict[str, Any]]:
    """One row per subset: its name and size, π_k, the trace Σ_d σ_d² of its posterior, and the share of negative weights.

    The trace and the share are means over the data points that have every modality of the subset, NaN where none has. Above ten
    modalities a sample of the subsets of each size stands for all of them.

    Arguments:
        model: a trained model.
        batch: data points; the first `points` are used.
        points: how many.
        seed: of the subsets drawn above ten modalities.
    """
    batch = model.prepare(batch[:points])
    masks = _masks(len(model.names), seed)
    weights = getattr(model.method, "subset_weights", None)
    everything = torch.ones(1, len(model.names), dtype=torch.bool, device=model.device)
    rows = []
    with model.asked(seed):
        experts = model.encode(batch.to(model.device))
        for mask, name in zip(masks, subsets.names_of(masks, model.names), strict=True):
            device_mask = mask.to(model.device)
            have = (batch.observed.to(model.device) | ~device_mask).all(-1)
            full = device_mask.expand(1, len(batch), -1)
            posterior = model.method.posterior(experts, full).shared
            consensus = getattr(model.method, "consensus", None)
            rows.append(
                {
                    "subset": name,
                    "size": int(mask.sum()),
                    "pi": float(weights.log_prob(full[:, :1], everything).exp()) if weights is not None else float("nan"),
                    "trace": _mean(posterior.variance[0].sum(-1), have),
                    "negative_weights": float(consensus.negative_share(experts.shared, full & have.unsqueeze(-1))[0])
                    if isinstance(consensus, CoDE) and isinstance(experts.shared, Normal)
                    else float("nan"),
                }
            )
    return rows


def table_by_size(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of `subset_table` averaged by subset size."""
    result = []
    for size in sorted({row["size"] for row in rows}):
        group = [row for row in rows if row["size"] == size]
        columns = {}
        for name in ("pi", "trace", "negative_weights"):
            known = [row[name] for row in group if row[name] == row[name]]
            columns[name] = sum(known) / len(known) if known else float("nan")
        result.append({"size": size, "subsets": len(group), **columns})
    return result


def _mean(values: Tensor, where: Bool[Tensor, "B"]) -> float:
    return float(values[where].mean()) if bool(where.any()) else float("nan")


def _masks(modalities: int, seed: int) -> Bool[Tensor, "K M"]:
    if modalities <= subsets.MOST:
        table = subsets.powerset(modalities)
        return table[table.sum(-1).argsort(stable=True)]
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.arange(1, modalities + 1).repeat_interleave(DRAWN).unsqueeze(-1)
    ranks = torch.rand(len(sizes), modalities, generator=generator).argsort(-1).argsort(-1)
    return torch.unique(ranks < sizes, dim=0)
