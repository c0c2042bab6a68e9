"""Seeds, orders, and draws that several processes share."""

import numpy as np
import pytest
import torch

from codevae import random
from codevae.distributions import Normal


def test_seeds_of_different_paths_are_different():
    paths = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (10**9,)]
    seeds = {random.derive(seed, *path) for seed in (0, 1, 2**40) for path in paths}
    assert len(seeds) == 3 * len(paths)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert random.derive(3, 4) == random.derive(3, 4)


def test_every_epoch_has_its_own_order():
    first, again, second = random.order(50, 0, 0), random.order(50, 0, 0), random.order(50, 0, 1)
    assert np.array_equal(first, again)
    assert sorted(first) == sorted(second) == list(range(50))
    assert not np.array_equal(first, second)
    assert not np.array_equal(random.order(50, 1, 0), first)


def test_seeded_draws_the_same_and_leaves_the_caller_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with random.seeded(7):
        one = torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    with pytest.raises(RuntimeError), random.seeded(7):
        assert torch.equal(torch.rand(3), one)
        raise RuntimeError
    torch.manual_seed(5)
    with random.seeded(None):
        assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("draw", [random.normal, random.uniform, random.gumbel])
@pytest.mark.parametrize("axis", [1, -2])
def test_processes_draw_slices_of_what_one_process_draws(draw, axis):
    like = torch.zeros((), dtype=torch.float64)
    torch.manual_seed(0)
    everyone = draw((2, 6, 3), like, axis)
    pieces = []
    for rank in range(3):
        torch.manual_seed(0)
        with random.sliced(rank, 3):
            pieces.append(draw((2, 2, 3), like, axis))
            assert draw((5,), like).shape == (5,)  # no batch axis: the same for all
    assert torch.equal(torch.cat(pieces, 1), everyone)
    assert random._Share.world == 1
    assert everyone.dtype == torch.float64


def test_what_is_not_of_the_batch_is_the_same_for_every_process():
    draws = []
    for rank in range(2):
        torch.manual_seed(0)
        with random.sliced(rank, 2):
            draws.append(random.normal((4, 3), torch.zeros(())))
    assert torch.equal(*draws)


def test_a_posteriors_draws_are_sliced_along_the_batch():
    q = Normal(torch.zeros(2, 6, 3), torch.ones(2, 6, 3))
    torch.manual_seed(0)
    everyone = q.draw(4)
    for rank in range(2):
        torch.manual_seed(0)
        with random.sliced(rank, 2):
            half = Normal(q.loc[:, :3], q.scale[:, :3]).draw(4)
        assert torch.equal(half, everyone[:, :, 3 * rank : 3 * rank + 3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform_numbers_stay_inside(dtype, monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda shape, **options: torch.tensor([0.0, 1.0], **options))
    low, high = random.uniform((2,), torch.zeros((), dtype=dtype))
    assert 0 < low < high < 1
    assert torch.isfinite(random.gumbel((2,), torch.zeros((), dtype=dtype))).all()


def test_gumbel_numbers_draw_categories():
    log_weights = torch.tensor([0.1, 0.2, 0.7]).log()
    which = (log_weights + random.gumbel((50_000, 3), log_weights)).argmax(-1)
    assert (torch.bincount(which) / 50_000).tolist() == pytest.approx([0.1, 0.2, 0.7], abs=0.01)
