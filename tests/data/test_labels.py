"""Labels stand beside the data points, and a model does not see them."""

import numpy as np
import pandas as pd
import pytest

from codevae.data import read_tables
from codevae.errors import InputError

RNA = pd.DataFrame({"id": ["p", "q", "r"], "gene": [0.5, 1.5, 2.5], "age": [30, 40, 50]})


def test_labels_are_taken_out_and_aligned():
    other = pd.DataFrame({"id": ["s", "r", "q"], "level": [0.1, 0.2, 0.3], "sick": ["yes", "no", None], "age": [20, 50, 40]})
    read = read_tables({"rna": RNA, "protein": other}, labels=["age", "sick"])
    assert read.batch.ids.tolist() == ["p", "q", "r", "s"]
    assert read.batch.labels["age"].tolist() == [30, 40, 50, 20] and read.batch.labels["age"].dtype == np.int64
    assert read.batch.labels["sick"].tolist() == ["", "", "no", "yes"]
    assert [[column.name for column in table.columns] for table in read.schema.tables] == [["gene"], ["level"]]
    assert read.schema.labels == ("age", "sick")


def test_a_table_of_labels_is_no_modality_and_adds_no_points():
    labels = pd.DataFrame({"id": ["z", "p", "q"], "score": [9.5, 1.5, 2.5]})
    read = read_tables({"rna": RNA, "labels": labels}, labels="score")
    assert read.batch.names == ["rna"] and read.batch.ids.tolist() == ["p", "q", "r"]
    assert np.array_equal(read.batch.labels["score"], [1.5, 2.5, np.nan], equal_nan=True)


def test_what_is_wrong_with_labels():
    with pytest.raises(InputError, match=r"labels: no table has a column 'agee'; the frame 'rna' has 'gene', 'age'\. Name one of these"):
        read_tables({"rna": RNA}, labels=["agee"])
    other = RNA.assign(age=[30, 41, 50])
    with pytest.raises(
        InputError,
        match=r"labels: 'age' of 'q' is '40' in the frame 'rna' and '41' in the frame 'other'; correct one of them, or give only one",
    ):
        read_tables({"rna": RNA, "other": other}, labels=["age"])
    with pytest.raises(InputError, match="sources: no table has a column left"):
        read_tables({"rna": RNA}, labels=["age", "gene"])
