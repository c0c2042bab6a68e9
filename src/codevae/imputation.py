"""Imputation with its uncertainty: intervals from draws of z and x."""

from collections.abc import Iterable

import torch

from codevae.axes import Tensor
from codevae.batch import Batch
from codevae.errors import InputError
from codevae.model import MultimodalVAE


def intervals(
    model: MultimodalVAE,
    batch: Batch,
    share: float = 0.9,
    given: Iterable[str] | str | None = None,
    samples: int = 100,
    chunk: int = 256,
    seed: int | None = 0,
) -> tuple[Batch, Batch]:
    """Lower and upper ends of the central intervals that hold `share` of the predicted values; an observed entry is both its ends.

    x is drawn from p(x | z), z from the posterior, so that the intervals cover the data's own noise as well as what is not known.

    Arguments:
        model: a trained model.
        batch: data points with gaps.
        share: of the predicted values, between 0 and 1.
        given: which modalities may be used (default: all that are observed).
        samples: how many draws.
        chunk: how many data points are in memory at a time.
        seed: of the draws.
    """
    if not 0 < share < 1:
        raise InputError(f"intervals(share): expected a number between 0 and 1, such as 0.9, got {share!r}.")
    if samples < 2:
        raise InputError(f"intervals(samples): expected at least 2, got {samples}.")
    batch = model.prepare(batch)
    ends = torch.tensor([(1 - share) / 2, (1 + share) / 2])
    pieces: dict[str, list[Tensor]] = {name: [] for name in model.names}
    with model.asked(seed):
        for start in range(0, len(batch), chunk):
            part = batch[start : start + chunk].to(model.device)
            latent = model.infer(part, given).draw(samples)
            for name in model.names:
                draws = model.decode(latent, name, "draw")[name][:, 0].float()  # (S,B,…)
                pieces[name].append(torch.quantile(draws, ends.to(draws), dim=0).cpu())
    both = {name: torch.cat(values, 1) for name, values in pieces.items()}

    def end(index: int) -> Batch:
        values = {
            name: torch.where(batch.entries[name], batch.values[name], both[name][index].to(batch.values[name].dtype))
            for name in model.names
        }
        return Batch(values, labels=batch.labels, ids=batch.ids)

    return end(0), end(1)
