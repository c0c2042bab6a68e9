"""CSV and TSV files, with the habits of those who write them."""

import gzip

import pandas as pd
import pytest

from codevae.data import read_tables
from codevae.errors import InputError


@pytest.fixture
def write(tmp_path):
    def write(text, name="rna.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode(encoding)) if name.endswith(".gz") else text.encode(encoding))
        return path

    return write


@pytest.fixture
def refused(write):
    """The message with which a text is refused; it names the file."""

    def refused(text, name="rna.csv", encoding="utf-8", **options):
        path = write(text, name, encoding)
        with pytest.raises(InputError) as caught:
            read_tables(path, **options)
        assert str(caught.value).startswith(f"{path}: ")
        return str(caught.value).removeprefix(f"{path}: ")

    return refused


WHOLE = "id,a,b\n007,1.5,2\n8,-3,4.5\n"
SAME = {
    "plain": (WHOLE, "rna.csv"),
    "compressed": (WHOLE, "rna.csv.gz"),
    "tabs": (WHOLE.replace(",", "\t"), "rna.tsv"),
    "tabs, compressed": (WHOLE.replace(",", "\t"), "rna.tsv.gz"),
    "capital letters": (WHOLE, "rna.CSV"),
    "with a mark of its encoding": ("\ufeff" + WHOLE, "rna.csv"),
    "Windows": (WHOLE.replace("\n", "\r\n"), "rna.csv"),
    "blanks": ("id, a ,b \n 007 , 1.5, 2 \n8,-3,4.5\n", "rna.csv"),
    "quotes": ('"id","a","b"\n"007","1.5","2"\n"8","-3","4.5"\n', "rna.csv"),
    "no name for the ids": (WHOLE.replace("id", ""), "rna.csv"),
    "R's write.table": (WHOLE.replace("id,", ""), "rna.csv"),
    "empty lines": (WHOLE.replace("\n8", "\n\n,,\n8") + "\n\n", "rna.csv"),
    "no last line break": (WHOLE.strip(), "rna.csv"),
}


@pytest.mark.parametrize("case", SAME)
@pytest.mark.parametrize("storage", ["auto", "python"])
def test_habits(case, storage, write):
    with pd.option_context("mode.string_storage", storage):
        tables = read_tables(write(*SAME[case]))
    assert tables.batch.names == ["rna"]
    assert tables.batch.ids.tolist() == ["007", "8"]
    assert [column.name for column in tables.schema["rna"].columns] == ["a", "b"]
    assert tables.exact["rna"].tolist() == [[1.5, 2.0], [-3.0, 4.5]]


@pytest.mark.parametrize("word", ["", " ", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>", "#N/A"])
def test_words_for_missing(word, write):
    tables = read_tables(write(f"id,a,b,c\nx,{word},2.5,{word}\ny,1.5,{word},u\nz,2.5,3.5,u\nw,{word},{word},{word}\n"))
    assert tables.batch.entries["rna"].tolist() == [[False, True, False], [True, False, True], [True, True, True], [False, False, False]]
    assert tables.batch.observed.tolist() == [[True], [True], [True], [False]]


def test_true_and_false_stay_the_texts_they_are(write):
    tables = read_tables(write("id,a,b,c\n1,TRUE,T,true\n2,,F,false\n3,FALSE,T,true\n4,TRUE,T,false\n"))
    assert [column.levels for column in tables.schema["rna"].columns] == [("FALSE", "TRUE"), ("F", "T"), ("false", "true")]
    assert tables.batch.values["rna"][:, 0].nan_to_num(-1).tolist() == [1, -1, 0, 1]
    assert tables.schema.to_frame("rna", tables.batch.values["rna"])["c"].tolist() == ["true", "false", "true", "false"]


def test_categories_that_look_like_numbers_keep_their_zeros(write):
    path = write("id,site,stage\na,01,1.0\nb,02,2.0\nc,01,\nd,10,1.0\n")
    tables = read_tables(path, kinds={"rna.site": "category", "rna.stage": "category"})
    assert [column.levels for column in tables.schema["rna"].columns] == [("01", "02", "10"), (1, 2)]
    later = tables.schema.read(write("id,site,stage\na,10,1\nb,10,2\n", "rna.csv"))
    assert later.batch.values["rna"].tolist() == [[2.0, 0.0], [2.0, 1.0]]
    assert tables.schema.to_frame("rna", later.batch.values["rna"]).to_numpy().tolist() == [["10", 1], ["10", 2]]


def test_rows_by_position_keep_rows_that_are_empty(write):
    tables = read_tables(write('a\n1.5\n""\n2.5\n'), id="none")
    assert tables.batch.observed.tolist() == [[True], [False], [True]]
    assert tables.batch.ids.tolist() == ["0", "1", "2"]


def test_the_header_is_checked(refused):
    assert refused("") == "expected a first line with the names of the columns, but it is empty; write them there."
    assert refused("\n1,2\n").startswith("expected a first line with the names")
    assert refused("id,a,,b\n1,2,3,4\n") == "column 3 has no name; write one into the header."
    assert refused("id,a,b,a\n1,2,3,4\n") == "columns 2 and 4 are both called 'a'; give each a name of its own."
    assert (
        refused("id;a;b\n1;2;3\n") == "its cells seem to be separated by ';', but .csv means ',' and .tsv a tab; save it as one of these."
    )
    assert refused("id\ta\n1\t2\n").startswith("its cells seem to be separated by '\\t'")
    assert refused("id,a\n1,2\n", "rna.tsv").startswith("its cells seem to be separated by ','")
    assert refused("id,a\n1,2,\n2,3,\n") == "line 2 has 3 cells, but the header names 2 columns; name them all, and let no line end in ','."
    assert refused("id,a\n1,2,3,4\n").startswith("line 2 has 4 cells")
    assert refused("id,a\n").startswith("expected at least one row and one column, got 0 rows")


def test_lines_are_checked(refused):
    assert refused("id,a\n1,2\n2,3\n3,4,5\n") == (
        "Expected 2 fields in line 4, saw 3; every line must have as many cells as the header (texts with a comma need quotes)."
    )


def test_encodings_are_checked(refused):
    assert refused("id,ä\n1,2\n", encoding="latin-1").startswith("it is not UTF-8 text (")
    assert refused("id,a\n1,ä\n", encoding="latin-1").endswith("save it as UTF-8.")


def test_a_file_that_is_not_what_it_is_called(tmp_path):
    (tmp_path / "rna.csv.gz").write_text(WHOLE)
    with pytest.raises(InputError, match=r"rna.csv.gz: it cannot be read: .*gzip.*; check that it is whole and of the kind its name says"):
        read_tables(tmp_path / "rna.csv.gz")
    whole = gzip.compress(WHOLE.encode() * 2000)
    (tmp_path / "rna.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"rna.csv.gz: it cannot be read"):
        read_tables(tmp_path / "rna.csv.gz")
