"""Tables that are written and read are the same."""

import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codevae.data import read_tables, write_table
from codevae.errors import InputError

MISSING = {
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "-NaN",
    "-nan",
    "null",
    "NULL",
    "None",
    "<NA>",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "1.#IND",
    "-1.#IND",
    "1.#QNAN",
    "-1.#QNAN",
}
words = st.text("aB1.0-,;\"' \nøß", min_size=1, max_size=5).filter(lambda text: text == text.strip() and text not in MISSING)
numbers = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e38, max_value=1e38)
cells = {
    "number": numbers,
    "count": st.integers(0, 2**53),
    "category": words,
    "yes/no": st.sampled_from(["no", "yes"]),
}


@st.composite
def frames(draw):
    """A frame of columns of every kind, with gaps but in its last two rows, and their kinds."""
    gaps = draw(st.integers(0, 4))
    kinds = {f"x {place}": kind for place, kind in enumerate(draw(st.lists(st.sampled_from(list(cells)), min_size=1, max_size=5)))}
    frame = pd.DataFrame(index=pd.Index([f"p {row}" for row in range(gaps + 2)], name="who, where"))
    for name, kind in kinds.items():
        whole = ["no", "yes"] if kind == "yes/no" else [draw(cells[kind]), draw(cells[kind])]
        column = [*draw(st.lists(st.none() | cells[kind], min_size=gaps, max_size=gaps)), *whole]
        frame[name] = pd.Series(column, index=frame.index, dtype="Int64" if kind == "count" else None)
    return frame, kinds


@given(frames(), st.sampled_from(["t.csv", "t.tsv", "t.csv.gz", "t.parquet"]))
@settings(max_examples=60, deadline=None)
def test_round_trip(tmp_path_factory, made, name):
    frame, kinds = made
    folder = tmp_path_factory.mktemp("round")
    write_table(frame, folder / name)
    tables = read_tables(folder / name, kinds={f"t.{column}": kind for column, kind in kinds.items()})
    assert tables.batch.ids.tolist() == frame.index.tolist() and tables.schema.id_name == "who, where"
    assert np.array_equal(np.isnan(tables.exact["t"]), frame.isna().to_numpy())
    back = tables.filled("t", tables.batch.values["t"])
    for column, kind in kinds.items():
        there = frame[column].notna()
        assert back[column].isna().equals(~there)
        before, after = ([str(cell) for cell in each[column][there]] for each in (frame, back))
        if kind == "category":  # 1.0 may become 1
            before, after = ([text.removesuffix(".0") for text in each] for each in (before, after))
        assert after == before
    write_table(back, folder / f"again {name}")
    assert np.array_equal(tables.schema.read({"t": folder / f"again {name}"}).exact["t"], tables.exact["t"], equal_nan=True)


def test_categories_are_written_as_they_were(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,b,c\np,01,yes,2.5\nq,x,No,0.5\nr,,no,\n")
    tables = read_tables(tmp_path / "t.csv", kinds={"t.a": "category"})
    write_table(tables.schema.to_frame("t", tables.batch.values["t"], tables.batch.ids), tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == "id,a,b,c\np,01,yes,2.5\nq,x,no,0.5\nr,,no,\n".replace(
        "no", tables.schema["t"].columns[1].levels[0]
    )


def test_single_precision_is_written_short(tmp_path):
    write_table(pd.DataFrame({"z": np.float32([0.1, 1 / 3])}), tmp_path / "z.csv")
    assert (tmp_path / "z.csv").read_text() == "z\n0.1\n0.33333334\n"


def test_arrays_are_written(tmp_path):
    images = np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4)
    write_table(images, tmp_path / "images.npy")
    assert (np.load(tmp_path / "images.npy") == images).all()
    write_table(pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}), tmp_path / "t.npy")
    assert np.load(tmp_path / "t.npy").tolist() == [[1, 0.5], [2, 1.5]]


def test_what_cannot_be_written(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": ["x"]})
    for name in ("t.xlsx", "t", "t.npy.gz", "t.parquet.gz"):
        with pytest.raises(
            InputError,
            match=rf"{name}: expected a name that ends in .csv, .tsv \(perhaps with .gz\), .parquet or .npy; choose one of these",
        ):
            write_table(frame, tmp_path / name)
    with pytest.raises(
        InputError, match=r"t.npy: an .npy file holds numbers only, and the table has texts or empty counts; write it as .csv"
    ):
        write_table(frame, tmp_path / "t.npy")
    with pytest.raises(InputError, match=r"t.csv: an array has no names for its columns; write it as .npy, or make it a frame first"):
        write_table(np.eye(2), tmp_path / "t.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        InputError, match=r"t.parquet: Parquet needs pyarrow, which is not installed: pip install 'codevae\[parquet\]', or write a .csv"
    ):
        write_table(frame, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns", "kind"), [(200, 5000, "number"), (2000, 2000, "count"), (500, 2000, "yes/no")])
def test_wide_tables_are_read_in_the_time_that_pandas_takes(tmp_path, rows, columns, kind):
    draw = np.random.default_rng(0)
    x = {
        "number": draw.normal(size=(rows, columns)),
        "count": draw.negative_binomial(0.5, 0.1, (rows, columns)),
        "yes/no": draw.integers(0, 2, (rows, columns)),
    }[kind]
    pd.DataFrame(x, index=pd.Index([f"p{row}" for row in range(rows)], name="id")).to_csv(tmp_path / "t.csv")
    start = time.perf_counter()
    pd.read_csv(tmp_path / "t.csv", low_memory=False)
    pandas = time.perf_counter() - start
    start = time.perf_counter()
    tables = read_tables(tmp_path / "t.csv")
    assert time.perf_counter() - start < 20 * pandas + 1
    assert {column.kind for column in tables.schema["t"].columns} == {kind}
    assert np.array_equal(tables.exact["t"], x)
