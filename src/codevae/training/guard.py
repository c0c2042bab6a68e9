"""Finiteness: which number went wrong first, without waiting for the device at every step."""

from collections.abc import Sequence

import torch

from codevae.axes import Tensor
from codevae.methods import Bound
from codevae.subsets import name_of


class Guard:
    """Remembers, on the device, the first step at which something was not finite: which subset, modality and term.

    Arguments:
        names: of the modalities.
        every: how many steps pass between two looks from the host.
    """

    def __init__(self, names: Sequence[str], every: int):
        self.names, self.every = list(names), every
        self.first: Tensor | None = None

    @torch.no_grad()
    def watch(self, step: int, bound: Bound, gradient: Tensor) -> None:
        """Note a step's bound and the norm of its gradient."""
        wrong = torch.cat([~bound.reconstruction.isfinite(), ~bound.divergence.isfinite().unsqueeze(-1)], -1)  # (K,B,M+1)
        wrong = wrong & (bound.plan.share > 0).unsqueeze(-1)
        point = wrong.any(-1).any(0).long().argmax()
        now = torch.cat(
            [
                torch.stack([bound.value.isfinite().all() & bound.bonus.isfinite(), gradient.isfinite(), wrong.any()]).long(),
                torch.full((1,), step, device=gradient.device),
                wrong[:, point].flatten().long(),
                bound.plan.mask[:, point].flatten().long(),
            ]
        )
        fine = now[0] & now[1] & (1 - now[2])
        if self.first is None:
            self.first = torch.where(fine == 1, torch.zeros_like(now), now)
        else:
            self.first = torch.where((fine == 1) | (self.first[3] > 0), self.first, now)

    def look(self, step: int, always: bool = False) -> str | None:
        """The sentence on what went wrong, if it is time to look and something did."""
        if self.first is None or not (always or step % self.every == 0):
            return None
        value, _, part, when, *rest = self.first.tolist()
        if not when:
            return None
        where = "the gradient (the bound itself was finite)" if value else "the bound"
        if part:
            rows = len(rest) // (2 * len(self.names) + 1)
            wrong = torch.tensor(rest[: rows * (len(self.names) + 1)]).reshape(rows, -1)
            masks = torch.tensor(rest[rows * (len(self.names) + 1) :]).reshape(rows, -1)
            row = int(wrong.any(1).long().argmax())
            column = int(wrong[row].argmax())
            subset = name_of([name for name, held in zip(self.names, masks[row], strict=True) if held])
            term = f"log p(x|z) of {self.names[column]!r}" if column < len(self.names) else "the KL divergence"
            where = f"{term}, from the subset {subset!r},"
        return (
            f"step {when}: {where} is not finite. A smaller learning_rate, another likelihood (StudentT for outliers), or "
            "standardise=True usually mends it."
        )
