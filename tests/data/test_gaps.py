"""What is hidden is hidden at random, and what is held out is a part."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from codevae.batch import Batch
from codevae.data import remove, split
from codevae.errors import InputError


def batch_of(observed):
    observed = torch.as_tensor(observed)
    values = {f"m{m}": torch.randn(len(observed), 2) for m in range(observed.shape[1])}
    return Batch(values, observed=observed, labels={"row": np.arange(len(observed))}, ids=np.arange(len(observed)).astype(str))


observations = st.integers(1, 5).flatmap(lambda m: st.lists(st.lists(st.booleans(), min_size=m, max_size=m), min_size=1, max_size=20))


@given(observations, st.floats(0, 1), st.integers(0, 5))
def test_remove_hides_only_what_was_there_and_never_everything(observed, share, seed):
    batch = batch_of(observed)
    gappy = remove(batch, share, seed)
    assert not (gappy.observed & ~batch.observed).any()
    assert gappy.observed.any(1).equal(batch.observed.any(1))
    assert gappy.observed.equal(remove(batch, share, seed).observed)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("count", [1, 2, 6])
def test_the_share_is_the_one_promised(share, count):
    points = 20_000
    gappy = remove(batch_of(torch.ones(points, count, dtype=torch.bool)), share)
    expected = share - share**count / count
    error = 4 * (max(expected * (1 - expected), 1e-9) / points / count) ** 0.5
    hidden = 1 - gappy.observed.double().mean(0)
    assert hidden.mean().item() == pytest.approx(expected, abs=error + 1e-12)
    assert hidden.numpy() == pytest.approx(expected, abs=6 * error + 1e-12)  # no modality is preferred


def test_the_one_that_is_kept_is_drawn_evenly_among_what_was_there():
    observed = torch.tensor([[True, True, True, False]]).repeat(9000, 1)
    kept = remove(batch_of(observed), 1.0).observed
    assert kept.sum(1).eq(1).all()
    assert kept.double().mean(0).numpy() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=0.02)


def test_whether_one_is_hidden_says_nothing_about_another():
    hidden = ~remove(batch_of(torch.ones(20_000, 6, dtype=torch.bool)), 0.3).observed
    correlation = np.corrcoef(hidden.T.double().numpy())
    assert np.abs(correlation - np.eye(6)).max() < 0.03


def test_missing_cells_stay_missing_and_seeds_differ():
    batch = Batch({"a": torch.tensor([[1.0, float("nan")]] * 50), "b": torch.ones(50, 1)})
    gappy = remove(batch, 0.5)
    assert not gappy.entries["a"][:, 1].any()
    assert gappy.entries["a"][:, 0].equal(gappy.observed[:, 0])
    assert not gappy.observed.equal(remove(batch, 0.5, seed=1).observed)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    remove(batch, 0.5)
    assert torch.get_rng_state().equal(before)


@given(st.integers(2, 40), st.floats(0, 0.999), st.integers(0, 5))
def test_split_parts_the_points(count, share, seed):
    rest, held = split(batch_of(torch.ones(count, 2, dtype=torch.bool)), share, seed)
    rows = np.concatenate([rest.labels["row"], held.labels["row"]])
    assert sorted(rows) == list(range(count))
    assert (np.diff(rest.labels["row"]) > 0).all() and (np.diff(held.labels["row"]) > 0).all()
    assert abs(len(held) - share * count) <= 1 and len(rest) >= 1 and (len(held) >= 1 or not share)
    assert (rest.ids == rest.labels["row"].astype(str)).all()


def test_what_is_held_out_has_nothing_to_do_with_what_is_hidden():
    batch = batch_of(torch.ones(20_000, 2, dtype=torch.bool))
    gappy = remove(batch, 0.5, seed=7)
    rest, held = split(gappy, 0.5, seed=7)
    assert rest.observed.double().mean().item() == pytest.approx(held.observed.double().mean().item(), abs=0.02)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_wrong_shares(share):
    batch = batch_of([[True, True]] * 3)
    with pytest.raises(InputError, match=r"remove\(share\): expected a number from 0 to 1, got"):
        remove(batch, share)
    with pytest.raises(InputError, match=r"split\(share\): expected a number of at least 0 and below 1, got"):
        split(batch, share)


def test_one_point_cannot_be_split():
    with pytest.raises(InputError, match="expected at least 2 data points to hold some out, got 1; give more data or share=0"):
        split(batch_of([[True]]), 0.5)
