"""Columns are recognised for what they hold, or asked about."""

# ruff: noqa: E501  a message is shown in one piece

import numpy as np
import pandas as pd
import pytest

from codevae.data import read_tables
from codevae.errors import InputError

N = 60
draw = np.random.default_rng(0)
CASES = {
    "fractions": (draw.normal(size=N), "number", ()),
    "whole, below 0": (draw.integers(-40, 40, N), "number", ()),
    "years": (draw.integers(1950, 2020, N), "number", ()),
    "heights": (draw.normal(170, 10, N).round(), "number", ()),
    "a scale from 1 to 5": (draw.integers(1, 6, N), "number", ()),
    "one value": (np.full(N, 3), "number", ()),
    "zeros": (np.zeros(N), "number", ()),
    "counts": (draw.negative_binomial(1, 0.05, N), "count", ()),
    "counts with gaps": (np.where(draw.random(N) < 0.2, np.nan, draw.negative_binomial(1, 0.05, N)), "count", ()),
    "counts in text": (draw.negative_binomial(1, 0.05, N).astype(str), "count", ()),
    "0 and 1": (draw.integers(0, 2, N), "yes/no", (0, 1)),
    "0.0 and 1.0 with gaps": (draw.choice([0.0, 1.0, np.nan], N), "yes/no", (0, 1)),
    "True and False": (draw.random(N) < 0.5, "yes/no", (False, True)),
    "all True": (np.ones(N, bool), "yes/no", (False, True)),
    "True, False, None": (draw.choice(np.array([True, False, None], object), N), "yes/no", (False, True)),
    "yes and no": (draw.choice(["yes", "no"], N), "yes/no", ("no", "yes")),
    "Y and N": (draw.choice(["Y", "N"], N), "yes/no", ("N", "Y")),
    "mostly Yes": (np.array(["Yes"] * 30 + ["no"] * 20 + ["yes"] * 10), "yes/no", ("no", "Yes")),
    "sites": (draw.choice(["Oslo", "Tromsø", "Bergen", None], N), "category", ("Bergen", "Oslo", "Tromsø")),
    "stages": (draw.choice(["1", "2", "3a", "3b"], N), "number", None),
    "stages, most of them not numbers": (draw.choice(["1", "2a", "3a", "3b", "4b"], N), "category", ("1", "2a", "3a", "3b", "4b")),
    "one text": (np.full(N, "Oslo"), "category", ("Oslo",)),
    "pandas categories": (pd.Categorical(draw.choice(["u", "v"], N), categories=["v", "u", "w"]), "category", ("u", "v")),
}


def read(cells, **options):
    return read_tables({"t": pd.DataFrame({"id": [f"p{i}" for i in range(len(cells))], "x": cells})}, **options)


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][2] is not None])
def test_recognised(case):
    cells, kind, levels = CASES[case]
    (column,) = read(cells).schema["t"].columns
    assert (column.kind, column.levels) == (kind, levels)
    assert [type(level) for level in column.levels] == [type(level) for level in levels]


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][2] is not None])
def test_a_file_says_the_same(case, tmp_path):
    cells, kind, levels = CASES[case]
    pd.DataFrame({"id": range(N), "x": cells}).to_csv(tmp_path / "t.csv", index=False)
    (column,) = read_tables(tmp_path / "t.csv").schema["t"].columns
    expected = tuple(str(level) if isinstance(level, bool) else level for level in levels)
    if case != "all True":  # in a file that is a text like any other
        assert (column.kind, column.levels) == (kind, expected)


def test_a_table_of_small_counts_is_one_of_counts_throughout():
    counts = draw.negative_binomial(0.3, draw.uniform(0.05, 0.9, 40), size=(200, 40))
    assert (counts.max(0) <= 1).any() and (counts.max(0) <= 10).sum() > 10
    index = pd.Index([f"c{i}" for i in range(200)], name="cell")
    assert {column.kind for column in read_tables({"t": pd.DataFrame(counts, index=index)}).schema["t"].columns} == {"count"}
    few = read_tables({"t": pd.DataFrame(counts[:, :10], index=index)}).schema["t"]
    assert {"count", "number"} <= {column.kind for column in few.columns}  # too few columns to be sure


def test_bits_and_pixels_are_no_counts():
    index = pd.Index([f"c{i}" for i in range(200)], name="cell")
    bits, pixels = draw.integers(0, 2, (200, 40)), draw.integers(0, 7, (200, 40))
    assert {column.kind for column in read_tables({"t": pd.DataFrame(bits, index=index)}).schema["t"].columns} == {"yes/no"}
    assert {column.kind for column in read_tables({"t": pd.DataFrame(pixels, index=index)}).schema["t"].columns} == {"number"}


@pytest.mark.parametrize(
    ("cells", "kind", "levels", "codes"),
    [
        ([1, 2, 10, 2], "category", (1, 2, 10), [0, 1, 2, 1]),
        ([0.5, 1.0, None, 0.5], "category", (0.5, 1), [0, 1, None, 0]),
        (["01", "1", "01", "1"], "category", ("01", "1"), [0, 1, 0, 1]),
        ([1, 2, 2, 1], "yes/no", (1, 2), [0, 1, 1, 0]),
        (["m", "f", "f", " m"], "yes/no", ("f", "m"), [1, 0, 0, 1]),
        ([0, 0, 0, 0], "yes/no", (0, 1), [0, 0, 0, 0]),
        ([0, 1, 1, 0], "number", (), [0, 1, 1, 0]),
        ([0, 1, 1, 0], "count", (), [0, 1, 1, 0]),
        (["0", "1", "1", None], "count", (), [0, 1, 1, None]),
        (["a", "b", "c", "d"], "category", ("a", "b", "c", "d"), [0, 1, 2, 3]),
    ],
)
def test_said(cells, kind, levels, codes):
    tables = read(cells, kinds={"t.x": kind})
    (column,) = tables.schema["t"].columns
    assert (column.kind, column.levels) == (kind, levels)
    assert np.array_equal(tables.exact["t"][:, 0], np.array(codes, float), equal_nan=True)


def test_what_is_said_of_a_column_goes_before_what_is_said_of_its_table():
    frame = pd.DataFrame({"id": list("pqrs"), "a": [0, 1, 0, 1], "b": [0, 1, 1, 1], "t": [1, 2, 1, 2]})
    kinds = {"t.b": "yes/no", "t": "count", "t.t": "category"}
    assert [column.kind for column in read_tables({"t": frame}, kinds=kinds).schema["t"].columns] == ["count", "yes/no", "category"]


FIX = r"correct the cell, empty it if its value is not known \(NA, NaN and null are empty too\), or "


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        (
            ["31", "4O", "52", None],
            {},
            "expected a finite number, got '4O'; " + FIX + r"train with --kind t.x=category \(kinds=\{'t.x': 'category'\}\)\.$",
        ),
        ([1.5, np.inf, 2.5, 3.5], {}, "expected a finite number, got 'inf'; "),
        ([1.5, 1e300, 2.5, 3.5], {}, "expected a finite number, got '1e\\+300'; "),
        (["a", "b", "a", "b"], {"kinds": {"t.x": "number"}}, "expected a finite number, got 'a'; "),
        ([1, 2.5, 3, 4], {"kinds": {"t.x": "count"}}, r"expected a count \(0, 1, 2, …\), got '2.5'; .*--kind t.x=number"),
        ([1, -2, 3, 4], {"kinds": {"t.x": "count"}}, r"expected a count \(0, 1, 2, …\), got '-2'; "),
    ],
)
def test_a_cell_that_does_not_fit_is_shown(cells, options, message):
    row = 1 if cells[0] != "a" else 0
    with pytest.raises(InputError, match=rf"^the frame 't': column 'x', row {row + 1} \(id 'p{row}'\): " + message):
        read(cells, **options)


def test_in_a_file_the_line_is_shown(tmp_path):
    path = tmp_path / "rna.csv"
    path.write_text("id,age\n\na,31\nb,32\nc,4O\n")
    with pytest.raises(
        InputError,
        match=rf"^{path}: column 'age', line 5 \(id 'c'\): expected a finite number, got '4O'; {FIX}train with --kind rna.age=category",
    ):
        read_tables(path)


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ([f"name {i}" for i in range(9)], {}, r"^the frame 't': column 'x' holds text, 9 different ones in 9 rows, such as 'name 0', 'name 1': too many to be categories; leave it out with --ignore t.x \(ignore=\['t.x'\]\), or say that they are, --kind t.x=category \(kinds=\{'t.x': 'category'\}\); dates need to be numbers"),
        ([None] * 9, {}, r"^the frame 't': nothing stands in the columns 'x'; drop them from the file, or leave them out with --ignore t.x \(ignore=\['t.x'\]\); --ignore empty leaves out every such column"),
        (["", " "], {}, "nothing stands in the columns 'x'"),
        ([1, 2, 3], {"kinds": {"t.x": "yes/no"}}, r"^kinds: 't.x' cannot be yes/no: expected two different values in the frame 't', got '1', '2', '3'; make it a category"),
        (["yes"] * 4, {"kinds": {"t.x": "yes/no"}}, "expected two different values in the frame 't', got 'yes'"),
        ([1, 2], {"kinds": {"t.x": "real"}}, "^kinds: expected one of 'number', 'count', 'yes/no', 'category' for 't.x', got 'real'"),
        ([1, 2], {"kinds": {"t.y": "number"}}, r"^kinds: expected TABLE.COLUMN, got 't.y', which no table has; did you mean one of 't.x'\?"),
        ([1, 2], {"ignore": ["x"]}, r"^ignore: expected TABLE.COLUMN, got 'x', which no table has; did you mean one of 't.x'\?"),
    ],
)  # fmt: skip
def test_what_is_asked_about(cells, options, message):
    with pytest.raises(InputError, match=message):
        read(cells, **options)


def test_ignore():
    frame = pd.DataFrame({"id": list("pq"), "a": [None, None], "b": [0.5, 1.5], "c": ["", None], "d": [1.5, 2.5]})
    assert [column.name for column in read_tables({"t": frame}, ignore=["empty", "t.d"]).schema["t"].columns] == ["b"]
    assert [column.name for column in read_tables({"t": frame}, ignore="empty").schema["t"].columns] == ["b", "d"]
    assert read_tables({"t": frame, "u": frame[["id", "b"]]}, ignore=["t"]).batch.names == ["u"]


def test_a_column_that_never_varies_is_kept_and_noted():
    tables = read([2.5, None, 2.5, 2.5])
    assert tables.schema.notes == ("t: the same value stands in every row of 'x', which a model can learn nothing from",)
    assert tables.schema.describe().splitlines()[-1] == "note: " + tables.schema.notes[0]
