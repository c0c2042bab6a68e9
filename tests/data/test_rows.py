"""Rows of several tables that are the same data point find each other."""

# ruff: noqa: E501  a message is shown in one piece

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codevae.data import read_tables
from codevae.errors import InputError

HELP = r"name the column of ids, --id COLUMN \(id='COLUMN'\), or match rows by their position, --id none \(id='none'\)\.$"


def frame(ids, **columns):
    return pd.DataFrame({"id": ids, **(columns or {"value": np.arange(len(ids)) + 0.5})})


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, unique=True), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_outer_join(tables, draw):
    tables = [[0, *(each for each in ids if each)] for ids in tables]
    for ids in tables:
        draw.shuffle(ids)
    read = read_tables({f"t{t}": frame([f"p{i}" for i in ids], value=[i + 0.5 for i in ids]) for t, ids in enumerate(tables)})
    order = list(dict.fromkeys(i for ids in tables for i in ids))
    assert read.batch.ids.tolist() == [f"p{i}" for i in order]
    for t, ids in enumerate(tables):
        assert read.batch.observed[:, t].tolist() == [i in ids for i in order]
        assert np.array_equal(read.exact[f"t{t}"][:, 0], [i + 0.5 if i in ids else np.nan for i in order], equal_nan=True)


def test_an_id_is_the_same_however_it_is_stored():
    tables = {"text": frame(["1", " 2"]), "whole": frame([2, 1]), "float": frame([1.0, 3.0]), "index": frame([1, 3]).set_index("id")}
    assert read_tables(tables).batch.ids.tolist() == ["1", "2", "3"]


def test_the_column_of_ids_may_be_named():
    tables = {"a": pd.DataFrame({"x": [0.5, 1.5], "who": ["p", "q"]}), "b": pd.DataFrame({"y": [0.5], "who": ["q"]}).set_index("who")}
    read = read_tables(tables, id="who")
    assert read.batch.ids.tolist() == ["p", "q"] and read.schema.id_name == "who"
    assert read.batch.observed.tolist() == [[True, False], [True, True]]


def test_by_position():
    tables = {"a": pd.DataFrame({"x": [0.5, 1.5, 0.5]}, index=["p", "q", "p"]), "b": np.ones((3, 2)) / 3}
    read = read_tables(tables, id="none")
    assert read.batch.ids.tolist() == ["0", "1", "2"] and read.schema.id_name is None
    assert read.exact["a"][:, 0].tolist() == [0.5, 1.5, 0.5]


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        ({"a": frame(["p", "q", "p"])}, {}, r"^the frame 'a': the id 'p' stands in row 1 and in row 3, but ids must be unique; correct them, or " + HELP),
        ({"a": frame(["p", None])}, {}, r"^the frame 'a': row 2 has no id in 'id' \(it is empty, or a word for missing such as NA\); give it one, or " + HELP),
        ({"a": frame(["p", " "])}, {}, r"^the frame 'a': row 2 has no id in 'id'"),
        ({"a": frame([0.25, 1.5, 3])}, {}, r"^the frame 'a': its first column, 'id', holds numbers \(0.25, 1.5, 3\) that do not look like ids; " + HELP),
        ({"a": frame(["p"])}, {"id": "who"}, r"^the frame 'a': it has no column 'who' for the ids, its columns are 'id', 'value'; " + HELP),
        ({"a": frame(["p", "q"]), "b": frame(["P", "Q"])}, {}, r"^the frame 'a' shares no id with the frame 'b': 'p', 'q' against 'P', 'Q'; write the ids the same way in all tables, or " + HELP),
        ({"a": frame(["p"]), "b": frame(["p", "q"]), "c": frame(["r"])}, {}, r"^the frame 'c' shares no id with the frame 'a', the frame 'b': 'r' against 'p'; "),
        ({"a": frame(["p"]), "b": np.ones((1, 1))}, {}, r"^the array 'b' has no ids, but the frame 'a' has; give both ids \(an .npz may hold an array called 'ids'\), or match rows by their position, --id none \(id='none'\)\.$"),
        ({"a": np.ones((2, 1)), "b": np.ones((3, 1))}, {}, r"^rows are matched by their position, but the array 'a' has 2 rows and the array 'b' has 3; leave cells empty where a row lacks something, or give the tables ids\.$"),
        ({"a": frame(["p"]).set_index(["id", "value"], drop=False)}, {}, r"^the frame 'a': expected one id per row, got an index of 2 levels; join them into one\.$"),
        ({"a": frame(["p"])[["id"]]}, {}, r"^sources: no table has a column left beside its ids, labels and ignored columns"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_ids(tables, options, message):
    with pytest.raises(InputError, match=message):
        read_tables(tables, **options)


def test_a_named_column_of_fractions_is_believed():
    assert read_tables({"a": frame([0.25, 1.5])}, id="id").batch.ids.tolist() == ["0.25", "1.5"]


def test_lines_are_those_of_the_file(tmp_path):
    path = tmp_path / "rna.csv"
    path.write_text("id,a\np,1\n\n\nq,2\np,3\n,4\n")
    with pytest.raises(InputError, match=r"rna.csv: line 7 has no id in 'id'"):
        read_tables(path)
    path.write_text("id,a\np,1\n\n\nq,2\np,3\n")
    with pytest.raises(InputError, match=r"rna.csv: the id 'p' stands in line 2 and in line 6"):
        read_tables(path)
