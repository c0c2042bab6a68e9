"""A short text that changes when the data do."""

import hashlib
from pathlib import Path

import numpy as np
import torch

from codevae.batch import Batch

CHUNK = 1 << 22


def fingerprint(data: Batch | str | Path) -> str:
    """The first 16 hexadecimal digits of a SHA-256: of a file's bytes, or of a batch's content.

    The content is the modalities' names, types and shapes, which entries are there, and the values of those; what stands in absent
    entries, labels and ids do not matter.

    Example:
        >>> nan = float("nan")
        >>> hidden = Batch({"rna": torch.tensor([[1.0, 7.0]])}, entries={"rna": torch.tensor([[True, False]])})
        >>> fingerprint(hidden) == fingerprint(Batch({"rna": torch.tensor([[1.0, nan]])}))
        True
    """
    digest = hashlib.sha256()
    if isinstance(data, Batch):
        for name, values in data.values.items():
            digest.update(repr((name, str(values.dtype), tuple(values.shape))).encode())
            rows = max(1, CHUNK // max(1, values[0:1].numel()))
            for start in range(0, len(values), rows):
                there = data.entries[name][start : start + rows].expand_as(values[start : start + rows])
                present = torch.where(there, values[start : start + rows], 0).to(values.dtype)
                digest.update(np.packbits(there.cpu().numpy()).tobytes())
                digest.update(present.cpu().numpy().tobytes())
    else:
        with Path(data).open("rb") as handle:
            while piece := handle.read(CHUNK):
                digest.update(piece)
    return digest.hexdigest()[:16]
