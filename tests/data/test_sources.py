"""What may be given as data, and what each table is called."""

# ruff: noqa: E501  a message is shown in one piece

import sys

import numpy as np
import pandas as pd
import pytest

from codevae.data import read_tables
from codevae.errors import InputError

FRAME = pd.DataFrame({"id": ["x", "y"], "a": [0.5, 1.5], "b": [2.5, 3.5]})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names(here):
    (here / "sub").mkdir()
    for path in ("rna.csv", "rna.v2.csv", "a=b.csv", "sub/c=d.csv"):
        FRAME.to_csv(path, index=False)
    FRAME.to_csv("protein.csv.gz", index=False)
    sources = ["rna.csv", "rna.v2.csv", "a=b.csv", "sub/c=d.csv", "protein.csv.gz", "other=rna.csv", here / "rna.csv"]
    assert read_tables(sources[:-1]).batch.names == ["rna", "rna.v2", "a=b", "c=d", "protein", "other"]
    assert read_tables({"one": "rna.csv", "two": here / "rna.csv"}).batch.names == ["one", "two"]
    with pytest.raises(InputError, match=r"rna.csv and .*rna.csv would both be called 'rna'; name one of them, other="):
        read_tables(sources)


@pytest.mark.parametrize("frame", [FRAME, FRAME.set_index("id"), FRAME.set_index("id").rename_axis(None), FRAME.rename(columns={"a": 1})])
def test_frames(frame):
    tables = read_tables({"rna": frame})
    assert tables.batch.ids.tolist() == ["x", "y"]
    assert tables.exact["rna"].tolist() == [[0.5, 2.5], [1.5, 3.5]]
    assert frame is not None and list(FRAME.columns) == ["id", "a", "b"]


@pytest.mark.parametrize("index", [None, "id", "unnamed"])
def test_parquet(here, index):
    frame = FRAME if index is None else FRAME.set_index("id").rename_axis(None if index == "unnamed" else index)
    frame.assign(c=pd.array([None, 3], dtype="Int64"), d=pd.Categorical(["u", "u"])).to_parquet("rna.parquet")
    tables = read_tables("rna.parquet", ignore=["rna.d"])
    assert tables.batch.ids.tolist() == ["x", "y"]
    assert tables.batch.values["rna"].nan_to_num(-1).tolist() == [[0.5, 2.5, -1], [1.5, 3.5, 3]]


def test_parquet_without_pyarrow(here, monkeypatch):
    FRAME.to_parquet("rna.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"rna.parquet: Parquet needs pyarrow, which is not installed: pip install 'codevae\[parquet\]'"):
        read_tables("rna.parquet")


def test_arrays(here):
    table, images, short = np.arange(6.0).reshape(3, 2), np.zeros((3, 1, 4, 4), np.uint8), np.array([3, 5, 4], np.int8)
    np.save("table.npy", table)
    np.savez("both.npz", images=images, short=short)
    np.savez("single.npz", x=table)
    tables = read_tables(["table.npy", "both.npz", "named=single.npz"])
    assert tables.batch.names == ["table", "images", "short", "named"]
    assert tables.batch.values["images"].shape == (3, 1, 4, 4) and str(tables.batch.values["images"].dtype) == "torch.uint8"
    assert tables.batch.values["short"].tolist() == [[3], [5], [4]]
    assert [column.name for column in tables.schema["table"].columns] == ["0", "1"]
    assert [column.name for column in tables.schema["short"].columns] == ["short"]
    assert read_tables({"a": table, "b": images}).batch.ids.tolist() == ["0", "1", "2"]


def test_arrays_with_ids(here):
    np.savez("both.npz", images=np.full((2, 1, 2, 2), 7, np.uint8), table=np.eye(2), ids=np.array(["y", "z"]), kind=np.array(["u", "v"]))
    FRAME.to_csv("rna.csv", index=False)
    tables = read_tables(["rna.csv", "both.npz"], labels=["kind"])
    assert tables.batch.ids.tolist() == ["x", "y", "z"]
    assert tables.batch.observed.tolist() == [[True, False, False], [True, True, True], [False, True, True]]
    assert tables.batch.values["images"].flatten(1).sum(1).tolist() == [0, 28, 28]
    assert tables.batch.labels["kind"].tolist() == ["", "u", "v"]


def test_images_with_nan_are_missing_where_they_are_nan():
    images = np.ones((3, 1, 2, 2), np.float32)
    images[0], images[1, 0, 0, 0] = np.nan, np.nan
    tables = read_tables({"image": images})
    assert tables.batch.observed.tolist() == [[False], [True], [True]]
    assert tables.schema.modalities()[0].sees_gaps and tables.schema["image"].empty == pytest.approx(1 / 8)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "sources: expected at least one table, got none."),
        ({}, "sources: expected at least one table, got none."),
        (FRAME, r"sources: a DataFrame has no file to be named after; give it a name, \{'rna': …\}"),
        ([FRAME], r"sources: expected paths or 'name=path', got DataFrame; frames and arrays need names, \{'rna': …\}"),
        ({"rna": 3}, "sources: expected a path, a pandas DataFrame or a numpy array for 'rna', got int"),
        ("none.csv", r"^none.csv: there is no such file; check the path\.$"),
        (".", r"\.: this is a folder; give the files in it"),
        ("rna.xlsx", r"rna.xlsx: expected a file that ends in .csv or .tsv \(perhaps with .gz\), .parquet, .npy, .npz; save it as one of these"),
        ("bad.parquet", r"bad.parquet: it cannot be read: .*; check that it is whole and of the kind its name says"),
        ("bad.npy", r"bad.npy: it cannot be read: .*; check that it is whole"),
        ("objects.npy", r"objects.npy: it cannot be read: Object arrays cannot be loaded"),
        ("words.npy", r"words.npy: expected numbers, got an array of <U1; texts and columns of several kinds belong into a .csv"),
        ({"x": np.ones((2, 2), complex)}, "the array 'x': expected numbers, got an array of complex128"),
        ({"x": np.ones((5, 28, 28))}, r"the array 'x': expected the shape \(rows, columns\), or \(rows, channels, height, width\) for images, got \(5, 28, 28\); grey images need a channel axis, x\[:, None\]"),
        ("name=both.npz", r"name=both.npz: it holds several arrays, 'a', 'b', which keep the names of their keys; give the path alone"),
        ("short.npz", r"short.npz\['a'\]: it has 2 rows, but 'ids' has the shape \(3,\); give one id per row"),
        ({"rna": pd.DataFrame([[1, 2, 3]], columns=["id", "a", "a"])}, "the frame 'rna': more than one column is called 'a'; give each a name of its own"),
        ({"rna": FRAME[:0]}, "the frame 'rna': expected at least one row and one column, got 0 rows"),
        ({"x": np.ones((3, 0))}, "the array 'x': expected at least one row and one column, got 3 rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(here, sources, message):
    for name in ("rna.xlsx", "bad.parquet", "bad.npy"):
        (here / name).write_text("no")
    np.save("objects.npy", np.array([{}, {}], object), allow_pickle=True)
    np.save("words.npy", np.array([["a", "b"]]))
    np.savez("both.npz", a=np.eye(2), b=np.eye(2))
    np.savez("short.npz", a=np.eye(2), ids=np.arange(3))
    with pytest.raises(InputError, match=message):
        read_tables(sources)
