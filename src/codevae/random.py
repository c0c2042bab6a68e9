"""Every draw of the library.

A training step is seeded from (seed, step), the order of an epoch from (seed, epoch): a resumed run needs two integers and no
generator state. Draws cover the *global* batch and each process keeps its own slice, so that several processes draw what one
process would have drawn.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from codevae.axes import Tensor


def derive(seed: int, *path: int) -> int:
    """A seed for one purpose out of the run's seed: different paths give unrelated seeds."""
    return int(np.random.SeedSequence(seed, spawn_key=path).generate_state(1, np.uint64)[0] >> np.uint64(1))


def order(count: int, seed: int, epoch: int) -> np.ndarray:
    """The order in which an epoch visits its data points."""
    return np.random.default_rng(derive(seed, epoch)).permutation(count)


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Draw from `seed` inside, and leave the caller's generators as they were; `None` draws from the caller's own."""
    if seed is None:
        yield
        return
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


class _Share:
    """Which slice of the global batch this process draws; set by `sliced`, read by every draw."""

    rank, world = 0, 1


@contextmanager
def sliced(rank: int, world: int) -> Iterator[None]:
    """Inside, a draw over the batch is the `rank`-th of `world` equal slices of the draw over the global batch."""
    before = _Share.rank, _Share.world
    _Share.rank, _Share.world = rank, world
    try:
        yield
    finally:
        _Share.rank, _Share.world = before


def _draw(sampler, shape: tuple[int, ...], like: Tensor, batch_axis: int | None) -> Tensor:
    if batch_axis is None or _Share.world == 1:
        return sampler(shape, dtype=like.dtype, device=like.device)
    size, axis = shape[batch_axis], batch_axis % len(shape)
    everyone = sampler((*shape[:axis], size * _Share.world, *shape[axis + 1 :]), dtype=like.dtype, device=like.device)
    return everyone.narrow(axis, _Share.rank * size, size)


def normal(shape: tuple[int, ...], like: Tensor, batch_axis: int | None = None) -> Tensor:
    """Standard normal numbers of the type and device of `like`."""
    return _draw(torch.randn, shape, like, batch_axis)


def uniform(shape: tuple[int, ...], like: Tensor, batch_axis: int | None = None) -> Tensor:
    """Uniform numbers, strictly inside (0, 1), of the type and device of `like`."""
    tiny = torch.finfo(like.dtype).eps
    return _draw(torch.rand, shape, like, batch_axis).clamp(tiny, 1 - tiny)


def gumbel(shape: tuple[int, ...], like: Tensor, batch_axis: int | None = None) -> Tensor:
    """Gumbel numbers: adding them to log-weights and taking the arg-max draws a category, without waiting for the host."""
    return -torch.log(-torch.log(uniform(shape, like, batch_axis)))
