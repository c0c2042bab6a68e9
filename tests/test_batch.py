"""Batch: what is there, what is not, and that both survive every way of taking a part of it."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from codevae.batch import Batch
from codevae.errors import InputError

NAN = float("nan")


def make():
    """Five data points of three modalities with gaps of every kind."""
    return Batch(
        {
            "table": [[1.0, 2.0], [3.0, NAN], [NAN, NAN], [4.0, 5.0], [6.0, 7.0]],
            "image": torch.arange(5 * 3 * 2 * 2, dtype=torch.uint8).reshape(5, 3, 2, 2),
            "tokens": [[1, 2, 3]] * 5,
        },
        entries={"tokens": [True, False, True, True, False]},
        observed=[[1, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 1]],
        labels={"class": ["x", "y", "x", "z", "y"]},
        ids=["p0", "p1", "p2", "p3", "p4"],
    )


def same(one, two):
    """Whether two batches agree in everything."""
    assert one.names == two.names
    for name in one.names:
        assert_close(one.values[name], two.values[name], rtol=0, atol=0, equal_nan=True)
        assert torch.equal(*(batch.entries[name].expand(batch.values[name].shape) for batch in (one, two)))
    assert torch.equal(one.observed, two.observed)
    assert {name: label.tolist() for name, label in one.labels.items()} == {name: label.tolist() for name, label in two.labels.items()}
    assert (one.ids is None and two.ids is None) or one.ids.tolist() == two.ids.tolist()


def test_what_is_there():
    batch = make()
    assert batch.names == ["table", "image", "tokens"]
    assert len(batch) == 5
    # table: by NaN, and row 3 hidden by `observed`; image: by `observed`; tokens: by `entries` and `observed`
    assert batch.observed.tolist() == [[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 0]]
    assert batch.entries["table"].tolist() == [[1, 1], [1, 0], [0, 0], [0, 0], [1, 1]]
    assert batch.entries["image"].shape == (5, 1, 1, 1)  # one flag a data point, where all its pixels go together
    assert {name: value.dtype for name, value in batch.values.items()} == {
        "table": torch.float32,
        "image": torch.uint8,
        "tokens": torch.int64,
    }


def test_a_complete_batch_is_masks_of_ones():
    values = {"a": torch.randn(4, 3), "b": torch.randn(4, 2, 2)}
    same(Batch(values), Batch(values, entries={name: torch.ones_like(value, dtype=torch.bool) for name, value in values.items()}))
    assert Batch(values).observed.all()


@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, NAN]}),
        np.array([[1.0, 3.0], [2.0, NAN]]),
        np.array([[1.0, 3.0], [2.0, NAN]], dtype=np.float32)[::-1][::-1],
        torch.tensor([[1.0, 3.0], [2.0, NAN]], dtype=torch.float64),
        [[1.0, 3.0], [2.0, NAN]],
        ((1.0, 3.0), (2.0, NAN)),
    ],
    ids=["frame", "array", "view", "tensor", "list", "tuple"],
)
def test_what_values_may_come_as(value):
    batch = Batch({"x": value})
    assert batch.values["x"].dtype == torch.float32
    assert_close(batch.values["x"], torch.tensor([[1.0, 3.0], [2.0, NAN]]), equal_nan=True)
    assert batch.entries["x"].tolist() == [[True, True], [True, False]]


def test_values_may_be_read_only():
    array = np.ones((2, 2), dtype=np.float32)
    array.flags.writeable = False
    assert Batch({"x": array, "y": pd.DataFrame({"a": [1.0, 2.0]})}).observed.all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool])
def test_values_keep_their_type(dtype):
    value = torch.ones(3, 2, dtype=dtype)
    assert Batch({"x": value}).values["x"].dtype == dtype
    assert Batch({"x": value}).observed.all()


@pytest.mark.parametrize(
    "index", [[1, 3], torch.tensor([1, 3]), np.array([1, 3]), [False, True, False, True, False], slice(1, 4, 2)], ids=str
)
def test_parts_of_a_batch(index):
    batch, part = make(), make()[index]
    assert part.ids.tolist() == ["p1", "p3"]
    assert part.labels["class"].tolist() == ["y", "z"]
    assert torch.equal(part.observed, batch.observed[[1, 3]])
    for name in batch.names:
        assert_close(part.values[name], batch.values[name][[1, 3]], equal_nan=True)
        assert torch.equal(part.entries[name], batch.entries[name][[1, 3]])


def test_one_data_point_keeps_its_axis():
    assert make()[2].values["image"].shape == (1, 3, 2, 2)
    same(make()[-1], make()[4:])


def test_no_data_points():
    assert len(make()[:0]) == len(make()[np.array([], dtype=int)]) == 0
    assert len(Batch({"x": np.zeros((0, 3))})) == 0


def test_given():
    batch = make()
    assert batch.given(None) is batch
    only = batch.given(["tokens", "table"])
    assert only.observed.tolist() == [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert not only.entries["image"].any()
    assert torch.equal(only.entries["table"], batch.entries["table"])
    same(batch.given("image"), batch.given(["image"]))
    assert not batch.given([]).observed.any()
    with pytest.raises(InputError, match="given: 'sound' is not a modality here; the modalities are 'table', 'image', 'tokens'"):
        batch.given(["sound"])


def test_hide():
    batch = make()
    hidden = torch.tensor([[1, 0, 0], [0, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]]).bool()
    less = batch.hide(hidden)
    assert torch.equal(less.observed, batch.observed & ~hidden)
    for m, name in enumerate(batch.names):
        flat = less.entries[name].flatten(1).any(1)
        assert torch.equal(flat, less.observed[:, m])  # what is said of the modality is what is said of its entries
    same(batch, make())  # nothing was changed in place


def test_select():
    part = make().select(["tokens", "table"])
    assert part.names == ["tokens", "table"]
    assert torch.equal(part.observed, make().observed[:, [2, 0]])
    with pytest.raises(InputError, match="modalities: 'sound' is not a modality"):
        make().select(["sound"])


def test_padding_is_rows_that_have_nothing():
    longer = make().padded(8)
    assert len(longer) == 8
    same(longer[:5], make())
    assert not longer.observed[5:].any()
    assert not any(mask[5:].any() for mask in longer.entries.values())
    assert make().padded(5).observed.shape == (5, 3)


def test_a_batch_does_not_change():
    with pytest.raises(TypeError, match="a Batch does not change"):
        make().observed = None


def test_to_a_device():
    moved = make().to("meta")
    assert {tensor.device.type for tensor in (moved.observed, *moved.values.values(), *moved.entries.values())} == {"meta"}
    assert moved.device.type == "meta"
    same(make().to("cpu"), make())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Batch({}), "at least one modality"),
        (lambda: Batch({"a": np.zeros((3, 1)), "b": np.zeros((2, 1))}), "'a' has 3 rows and 'b' has 2; fill absent rows with NaN"),
        (lambda: Batch({"a": [["x", "y"]]}), "'a' must hold numbers, got <U1; encode text as integer codes"),
        (lambda: Batch({"a": pd.DataFrame({"x": ["u", "v"]})}), "'a' must hold numbers"),
        (lambda: Batch({"a": [[1.0, 2.0], [3.0]]}), "'a' must be a table of numbers with rows of one length"),
        (lambda: Batch({"a": [1.0, 2.0]}), r"'a' must have a row per data point and at least one column, got shape \(2,\)"),
        (lambda: Batch({"a": np.zeros((2, 1))}, entries={"b": [True, True]}), "'b' not among the modalities 'a'"),
        (lambda: Batch({"a": np.zeros((2, 3))}, entries={"a": np.ones((2, 2), bool)}), r"values \(2, 3\) and entries \(2, 2\)"),
        (lambda: Batch({"a": np.zeros((2, 3))}, entries={"a": [True]}), "do not broadcast"),
        (lambda: Batch({"a": np.zeros((2, 3))}, observed=[True, False]), r"expected shape \(2, 1\) \(points, modalities\), got \(2,\)"),
    ],
)
def test_what_is_said_when_it_is_held_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()
