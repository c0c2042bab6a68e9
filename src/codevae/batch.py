"""Batch: what a model is given. Always masked; a complete batch is masks of ones.

A data set in memory is a long Batch, a step's data a short one. A sample that lacks a modality, a table cell that is empty, and
a row that only pads the last batch are one thing: an entry that is not there.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from codevae.axes import Bool, Shaped, Tensor
from codevae.errors import InputError, listed


class Batch:
    """Values of several modalities for B data points, and which of them are there.

    Arguments:
        values: per modality a tensor (B, …) in its stored type; what stands in an absent entry is never looked at.
        entries: per modality a bool tensor that broadcasts to the values: what is there. Left out: all that is not NaN.
        observed: (B, M) bool; a modality of a data point is observed if any of its entries is there. May be given to hide whole
            modalities; otherwise it follows from `entries`.
        labels: named vectors (B,) that describe the data points (classes, batches, dates); never seen by a model.
        ids: one name per data point.

    Example:
        >>> batch = Batch({"rna": [[1.0, 2.0], [3.0, float("nan")]], "protein": [[0.5], [float("nan")]]})
        >>> batch.observed.tolist()
        [[True, True], [True, False]]
    """

    __slots__ = ("entries", "ids", "labels", "observed", "values")

    values: dict[str, Tensor]
    entries: dict[str, Tensor]
    observed: Tensor
    labels: dict[str, np.ndarray]
    ids: np.ndarray | None

    def __init__(
        self,
        values: Mapping[str, Any],
        entries: Mapping[str, Any] | None = None,
        observed: Any = None,
        labels: Mapping[str, Any] | None = None,
        ids: Any = None,
    ):
        if not values:
            raise InputError("Batch(values): expected at least one modality, got none.")
        tensors = {name: _tensor(name, value) for name, value in values.items()}
        size = len(next(iter(tensors.values())))
        for name, value in tensors.items():
            if len(value) != size:
                raise InputError(
                    f"Batch(values): every modality needs one row per data point, but {next(iter(tensors))!r} has {size} rows and "
                    f"{name!r} has {len(value)}; fill absent rows with NaN or hide them with `observed`."
                )
        unknown = set(entries or {}) - set(tensors)
        if unknown:
            raise InputError(f"Batch(entries): {listed(unknown)} not among the modalities {listed(tensors)}.")
        masks = {name: _entries(name, value, (entries or {}).get(name)) for name, value in tensors.items()}
        if observed is not None:
            observed = torch.as_tensor(observed, dtype=torch.bool)
            if observed.shape != (size, len(tensors)):
                raise InputError(
                    f"Batch(observed): expected shape {(size, len(tensors))} (points, modalities), got {tuple(observed.shape)}."
                )
            masks = {name: mask & _column(observed[:, m], mask) for m, (name, mask) in enumerate(masks.items())}
        seen = torch.stack([mask.reshape(size, -1).any(1) if mask[0:1].numel() else mask.new_zeros(size) for mask in masks.values()], 1)
        fields: dict[str, Any] = {
            "values": tensors,
            "entries": masks,
            "observed": seen,
            "labels": {name: np.asarray(label) for name, label in (labels or {}).items()},
            "ids": None if ids is None else np.asarray(ids),
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError(f"a Batch does not change ({name}): make a new one, or use given, hide, select or an index.")

    def __repr__(self) -> str:
        """Its size, and of every modality the shape of a value and the share of data points that have it."""
        shares = self.observed.float().mean(0).tolist() if len(self) else [0.0] * len(self.names)
        parts = (f"{name} {tuple(value.shape[1:])} {share:.0%}" for (name, value), share in zip(self.values.items(), shares, strict=True))
        return f"Batch({len(self):,} data points: {', '.join(parts)})"

    def __len__(self) -> int:
        return len(self.observed)

    @property
    def names(self) -> list[str]:
        return list(self.values)

    @property
    def device(self) -> torch.device:
        return self.observed.device

    def _with(self, **fields: Any) -> "Batch":
        """A copy with some fields replaced, without looking at the values again (nothing here waits for a device)."""
        new = object.__new__(Batch)
        for field in Batch.__slots__:
            object.__setattr__(new, field, fields.get(field, getattr(self, field)))
        return new

    def __getitem__(self, index: Any) -> "Batch":
        """The data points of a slice, a bool mask or an index vector."""
        if isinstance(index, slice):
            rows: Any = index
            host: Any = index
        else:
            rows = torch.as_tensor(index, device=self.device)
            rows = rows.nonzero().squeeze(1) if rows.dtype == torch.bool else rows.reshape(-1)
            host = rows.cpu().numpy()
        return self._with(
            values={name: value[rows] for name, value in self.values.items()},
            entries={name: mask[rows] for name, mask in self.entries.items()},
            observed=self.observed[rows],
            labels={name: label[host] for name, label in self.labels.items()},
            ids=None if self.ids is None else self.ids[host],
        )

    def to(self, device: Any) -> "Batch":
        """The same batch on another device."""
        return self._with(
            values={name: value.to(device, non_blocking=True) for name, value in self.values.items()},
            entries={name: mask.to(device, non_blocking=True) for name, mask in self.entries.items()},
            observed=self.observed.to(device, non_blocking=True),
        )

    def given(self, names: Iterable[str] | None) -> "Batch":
        """The same data points with only these modalities left observed; `None` leaves all."""
        if names is None:
            return self
        keep = self.among(names, "given")
        return self.hide(~torch.tensor([name in keep for name in self.names], device=self.device).expand_as(self.observed))

    def hide(self, hidden: Bool[Tensor, "B M"]) -> "Batch":
        """The same data points with some modalities hidden, per data point."""
        return self._with(
            entries={name: mask & ~_column(hidden[:, m], mask) for m, (name, mask) in enumerate(self.entries.items())},
            observed=self.observed & ~hidden,
        )

    def among(self, names: Iterable[str] | str, argument: str) -> list[str]:
        """The names as a list, in this batch's order; an error if one of them is no modality."""
        asked = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in asked if name not in self.values]
        if unknown:
            raise InputError(f"{argument}: {listed(unknown)} is not a modality here; the modalities are {listed(self.names)}.")
        return [name for name in self.names if name in asked]

    def select(self, names: Iterable[str]) -> "Batch":
        """The batch of these modalities, in this order; one that is absent altogether raises."""
        names = list(names)
        self.among(names, "modalities")
        columns = [self.names.index(name) for name in names]
        return self._with(
            values={name: self.values[name] for name in names},
            entries={name: self.entries[name] for name in names},
            observed=self.observed[:, columns],
        )

    def padded(self, size: int) -> "Batch":
        """The batch lengthened to `size` by rows with nothing observed."""
        missing = size - len(self)
        if missing <= 0:
            return self
        index = torch.arange(size, device=self.device).clamp(max=len(self) - 1)
        longer = self[index]
        return longer.hide((torch.arange(size, device=self.device) >= len(self))[:, None].expand_as(longer.observed))


def _tensor(name: str, value: Any) -> Shaped[Tensor, "B ..."]:
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    try:
        # a copy where it must be: torch wants memory that can be written to, which that of a data frame cannot
        tensor = value if isinstance(value, Tensor) else torch.as_tensor(np.require(value, requirements=["C", "W"]))
    except TypeError as error:
        raise InputError(
            f"Batch(values): {name!r} must hold numbers, got {np.asarray(value).dtype}; encode text as integer codes first."
        ) from error
    except ValueError as error:
        raise InputError(f"Batch(values): {name!r} must be a table of numbers with rows of one length ({error}).") from error
    if tensor.dtype == torch.float64:
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.ndim < 2:
        raise InputError(
            f"Batch(values): {name!r} must have a row per data point and at least one column, got shape {tuple(tensor.shape)}."
        )
    return tensor


def _entries(name: str, value: Tensor, given: Any) -> Bool[Tensor, "B ..."]:
    if given is None:
        if value.is_floating_point():
            missing = value.isnan()
            if bool(missing.any()):
                return ~missing
        return torch.ones((len(value), *(1,) * (value.ndim - 1)), dtype=torch.bool, device=value.device)
    mask = torch.as_tensor(given, dtype=torch.bool, device=value.device)
    if mask.ndim == 1:
        mask = _column(mask, value)
    if mask.ndim != value.ndim or any(m not in (1, v) for m, v in zip(mask.shape, value.shape, strict=True)) or len(mask) != len(value):
        raise InputError(
            f"Batch(entries): {name!r} has values {tuple(value.shape)} and entries {tuple(mask.shape)}, which do not broadcast to them."
        )
    return mask


def _column(flags: Tensor, like: Tensor) -> Tensor:
    """(B,) → (B, 1, …, 1) with as many axes as `like`."""
    return flags.reshape(-1, *(1,) * (like.ndim - 1))
