"""What training learned is kept, checked, and written back."""

# ruff: noqa: E501  a message is shown in one piece

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codevae.data import Schema, read_tables, write_table
from codevae.data.columns import Column
from codevae.data.learned import Images, Table
from codevae.errors import InputError
from codevae.likelihoods import Bernoulli, Categorical, Columns, NegativeBinomial, Normal, Poisson, StudentT
from codevae.model import MultimodalVAE

CLINIC = pd.DataFrame(
    {
        "patient": [f"p{i}" for i in range(8)],
        "age": [30.5, 41.25, None, 61, 25, 33, 47, 52],
        "visits": [0, 3, 12, 1, None, 0, 7, 2],
        "smoker": ["no", "yes", "no", None, "no", "yes", "yes", "no"],
        "site": ["Oslo", "Oslo", "Bergen", "Bergen", "Oslo", "Oslo", "Bergen", "Oslo"],
        "stage": ["I", "II", "III", "I", "I", "II", "III", "I"],
    }
)
RNA = pd.DataFrame({"patient": [f"p{i}" for i in range(2, 10)], "g1": np.arange(8) + 0.5, "g2": np.arange(8) - 0.5})


@pytest.fixture(scope="module")
def tables():
    return read_tables({"clinic": CLINIC, "rna": RNA, "scan": scans()}, kinds={"clinic.visits": "count"})


def scans():
    return pd.DataFrame({"patient": ["p1", "p3"], "s": [0.1, 0.2]})


@pytest.fixture(scope="module")
def schema(tables):
    return tables.schema


def test_the_batch(tables):
    assert tables.batch.ids.tolist() == [f"p{i}" for i in range(10)]
    assert tables.batch.observed.sum(0).tolist() == [8, 8, 2]
    clinic = tables.batch.values["clinic"]
    assert clinic.dtype == torch.float32 and clinic.shape == (10, 5)
    assert clinic[1].tolist() == [41.25, 3, 1, 1, 1]
    assert tables.batch.entries["clinic"][2].tolist() == [False, True, True, True, True]
    assert not tables.batch.entries["clinic"][8:].any()


def test_likelihoods_follow_the_columns(schema):
    clinic, rna, scan = schema.modalities(private_dim={"rna": 2}, pictures={"rna": (1, 2)})
    assert isinstance(clinic.likelihood, Columns)
    parts = [(type(part), columns) for part, columns in zip(clinic.likelihood.parts, clinic.likelihood.columns, strict=True)]
    assert parts == [(Normal, [0]), (NegativeBinomial, [1]), (Bernoulli, [2]), (Categorical, [3]), (Categorical, [4])]
    assert [part.categories for part in clinic.likelihood.parts[3:]] == [2, 3]
    assert (type(rna.likelihood), type(scan.likelihood)) == (Normal, Normal)
    assert (rna.private_dim, rna.picture, rna.shape, scan.shape) == (2, (1, 2), (2,), (1,))
    assert (clinic.sees_gaps, rna.sees_gaps) == (True, False)


def test_categories_of_one_size_share_a_part():
    frame = pd.DataFrame({"id": range(6), "a": list("uvuvuv"), "b": list("xyxyxx"), "c": list("klmklm")})
    (part,) = read_tables({"t": frame}).schema.modalities()
    assert [(part.categories, columns) for part, columns in zip(part.likelihood.parts, part.likelihood.columns, strict=True)] == [
        (2, [0, 1]),
        (3, [2]),
    ]


@pytest.mark.parametrize(
    ("kind", "expected"), [("number", Normal), ("count", NegativeBinomial), ("yes/no", Bernoulli), ("category", Columns)]
)
def test_a_table_of_one_kind_has_its_likelihood(kind, expected):
    frame = pd.DataFrame({"id": range(4), "a": [0, 1, 0, 1], "b": [0, 1, 1, 1]})
    (part,) = read_tables({"t": frame}, kinds={"t": kind}).schema.modalities()
    assert type(part.likelihood) is expected


def test_likelihoods_may_be_said(schema):
    own = StudentT(df=4.0)
    clinic, rna, _ = schema.modalities({"clinic": "Poisson", "rna": own})
    assert [type(part) for part in clinic.likelihood.parts] == [Normal, Poisson, Bernoulli, Categorical, Categorical]
    assert rna.likelihood is own
    columns = Columns([(Normal(), range(5))])
    assert schema.modalities({"clinic": columns})[0].likelihood is columns
    with pytest.raises(
        InputError,
        match=r"likelihoods\['clinic'\]: the table has columns of 'number', 'count', 'yes/no', 'category', and Categorical is for none",
    ):
        schema.modalities({"clinic": Categorical(3)})
    with pytest.raises(InputError, match="likelihoods: 'rma' is not a modality here; the modalities are 'clinic', 'rna', 'scan'"):
        schema.modalities({"rma": "Normal"})


def test_a_model_takes_the_tables_and_gives_tables_back(tables):
    model = MultimodalVAE(tables.schema.modalities(), latent_dim=2, seed=0)
    batch = model.prepare(tables.batch)
    model.calibrate(batch)
    assert torch.isfinite(model(batch).value).all()
    filled = tables.filled("clinic", model.impute(tables.batch).values["clinic"])
    assert filled.index.tolist() == tables.batch.ids.tolist() and filled.index.name == "patient"
    assert not filled.isna().any(axis=None) and filled["visits"].dtype == np.int64
    assert set(filled["smoker"]) == {"no", "yes"} and set(filled["stage"]) <= {"I", "II", "III"}
    measured = CLINIC.set_index("patient")
    for name in measured:
        there = measured[name].dropna()
        assert (filled.loc[there.index, name] == there).all()


def test_what_was_measured_keeps_every_digit():
    frame = pd.DataFrame({"id": ["p", "q"], "x": [0.1234567890123456, None], "big": [123456789012.0, None]})
    tables = read_tables({"t": frame})
    filled = tables.filled("t", torch.full((2, 2), 0.1))
    assert filled["x"].tolist() == [0.1234567890123456, 0.1] and filled["big"].tolist() == [123456789012.0, 0.1]


def test_a_table_that_was_not_given_is_all_guess(schema):
    later = schema.read({"rna": RNA})
    frame = later.filled("scan", torch.full((8, 1), 0.5))
    assert frame.to_dict("list") == {"s": [0.5] * 8} and frame.index.tolist() == later.batch.ids.tolist()


# ------------------------------------------------------------------------------------------------ reading again


def test_the_same_tables_give_the_same_batch(tables, schema):
    again = schema.read({"clinic": CLINIC, "rna": RNA, "scan": scans()})
    for name in tables.batch.names:
        assert torch.equal(again.batch.values[name].nan_to_num(), tables.batch.values[name].nan_to_num())
        assert torch.equal(again.batch.entries[name], tables.batch.entries[name])
    assert again.schema is schema


def test_columns_may_come_in_another_order_and_modalities_may_be_absent(schema):
    rows = CLINIC.iloc[[4, 1]][["patient", "stage", "smoker", "age", "visits", "site"]]
    later = schema.read({"clinic": rows})
    assert later.batch.names == ["clinic"]
    assert later.batch.values["clinic"].nan_to_num(-1).tolist() == [[25, -1, 0, 1, 0], [41.25, 3, 1, 1, 1]]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"clinic": CLINIC.drop(columns=["age", "site"])}, r"^the frame 'clinic': it lacks the columns 'age', 'site', which training knew; add them \(their cells may be empty\)\.$"),
        ({"rna": RNA.assign(g3=1, g4=2)}, r"^the frame 'rna': training did not know the columns 'g3', 'g4'; drop them from the file, or leave them out with --ignore rna.g3 \(ignore=\['rna.g3'\]\)\.$"),
        ({"rma": RNA}, r"^the frame 'rma': training knew no table 'rma', but 'clinic', 'rna', 'scan'; leave it out, or say which it is, clinic=the frame 'rma'\.$"),
        ({"clinic": CLINIC.assign(site="Paris")}, r"^the frame 'clinic': column 'site', row 1 \(id 'p0'\): expected one of 'Bergen', 'Oslo', got 'Paris'; correct the cell, empty it if its value is not known \(NA, NaN and null are empty too\), or train with data that has it\.$"),
        ({"clinic": CLINIC.assign(smoker="maybe")}, r"column 'smoker', row 1 \(id 'p0'\): expected one of 'no', 'yes', got 'maybe'; .*--kind clinic.smoker=category"),
        ({"clinic": CLINIC.assign(visits=0.5)}, r"column 'visits', row 1 \(id 'p0'\): expected a count \(0, 1, 2, …\), got '0.5'"),
        ({"rna": RNA.assign(g2="low")}, r"column 'g2', row 1 \(id 'p2'\): expected a finite number, got 'low'"),
        ({"rna": np.ones((2, 1, 4, 4))}, r"^the array 'rna': 'rna' was a table of 2 columns in training, got images; give such a table\.$"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(schema, sources, message):
    with pytest.raises(InputError, match=message):
        schema.read(sources)


def test_what_may_be_left_out_may_be_there():
    tables = read_tables({"rna": RNA.assign(weight=1.5, digit=3)}, ignore=["rna.weight"], labels=["digit"])
    later = tables.schema.read({"rna": RNA.assign(weight="x", digit=4, more="y", y=5)}, ignore=["rna.more"], labels=["y"])
    assert later.batch.values["rna"].shape == (8, 2)
    assert later.batch.labels["digit"].tolist() == [4] * 8 and later.batch.labels["y"].tolist() == [5] * 8
    assert tables.schema.read({"rna": RNA}).batch.labels == {}
    with pytest.raises(InputError, match="sources: they hold labels only; give a table of at least one of the modalities 'rna'"):
        tables.schema.read({"labels": pd.DataFrame({"id": ["p"], "digit": [1]})})


def test_texts_mean_the_same_however_they_are_stored():
    frame = pd.DataFrame(
        {"id": range(4), "a": [1, 2, 1, 2], "b": [True, False, True, True], "c": ["Yes", "no", "no", "no"], "d": [0, 1, 1, 0]}
    )
    schema = read_tables({"t": frame}, kinds={"t.a": "category"}).schema
    other = pd.DataFrame({"id": [1, 2], "a": ["2", "1.0"], "b": ["false", "TRUE"], "c": ["NO", " yes "], "d": ["1", 0.0]})
    other["a"] = [2.0, 1.0]
    assert schema.read({"t": other}).batch.values["t"].tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]


def test_by_position_again(tmp_path):
    tables = read_tables({"a": np.eye(3), "b": pd.DataFrame({"x": [0.5, 0.5, 1.5]})}, id="none")
    again = Schema.from_json(tables.schema.to_json()).read({"b": pd.DataFrame({"x": [1.5, 2.5]})})
    assert again.batch.ids.tolist() == ["0", "1"]
    frame = again.schema.to_frame("b", again.batch.values["b"], again.batch.ids)
    write_table(frame, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == "x\n1.5\n2.5\n"
    assert again.schema.read(tmp_path / "b.csv").batch.values["b"].tolist() == [[1.5], [2.5]]


def test_images():
    pixels = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4)
    schema = read_tables({"image": pixels, "mask": pixels % 2}).schema
    assert [type(part.likelihood) for part in schema.modalities()] == [Normal, Bernoulli]
    assert [type(part.likelihood) for part in schema.modalities({"image": "Laplace"})] != [Normal, Bernoulli]
    assert schema.describe().splitlines()[0] == "image: 2 images of 3 × 4 × 4, uint8; 0.0 % of pixels empty"
    assert torch.equal(schema.read({"image": pixels}).batch.values["image"], torch.from_numpy(pixels))
    with pytest.raises(
        InputError,
        match=r"'image' was images \(3, 4, 4\) of uint8 in training, got \(3, 4, 4\) of float64; bring them to this size and type",
    ):
        schema.read({"image": pixels / 2})
    with pytest.raises(InputError, match=r"'image' was images \(3, 4, 4\) of uint8 in training, got a table of 2 columns"):
        schema.read({"image": np.eye(2)})
    with pytest.raises(InputError, match="'image' is images, which no table can hold; write the array itself"):
        schema.to_frame("image", pixels)


# ------------------------------------------------------------------------------------------------ writing back


def test_to_frame(schema):
    values = torch.tensor([[30.5, 2.4, 0.0, 1.0, 2.0], [float("nan")] * 5, [31.5, -0.3, 1.0, 0.0, 7.0]])
    frame = schema.to_frame("clinic", values, ["a", "b", "c"])
    assert frame.index.name == "patient" and frame.columns.tolist() == CLINIC.columns.tolist()[1:]
    assert frame.loc["a"].tolist() == [30.5, 2, "no", "Oslo", "III"]
    assert frame.loc["b"].isna().all()
    assert frame.loc["c"].tolist() == [31.5, 0, "yes", "Bergen", "III"]
    assert schema.to_frame("clinic", values).index.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"values: expected \(rows, 5\) for 'clinic', got \(3, 4\)"):
        schema.to_frame("clinic", values[:, :4])
    with pytest.raises(InputError, match="'clinicc' is not a modality here; the modalities are 'clinic', 'rna', 'scan'"):
        schema.to_frame("clinicc", values)


def test_describe(schema):
    assert schema.describe() == (
        "clinic: 8 rows × 5 columns: 2 categories, 1 number, 1 count, 1 yes/no; 7.5 % of cells empty\n"
        "    numbers: 'age'\n"
        "    counts: 'visits'\n"
        "    yes/no: 'smoker'\n"
        "rna: 8 rows × 2 columns: 2 numbers; 0.0 % of cells empty\n"
        "scan: 2 rows × 1 column: 1 number; 0.0 % of cells empty"
    )


# ------------------------------------------------------------------------------------------------ schema.json

texts = st.lists(st.text()).map(tuple)
levels = st.just(()) | st.lists(st.text() | st.booleans() | st.integers() | st.floats(allow_nan=False), min_size=1).map(tuple)
columns = st.lists(st.tuples(st.text(min_size=1), st.sampled_from(["number", "count", "yes/no", "category"]), levels), min_size=1)
a_table = st.tuples(st.text(min_size=1), st.just(".csv"), columns, st.integers(1), st.floats(0, 1), texts)
pictures = st.tuples(
    st.text(), st.just(".npy"), st.tuples(*[st.integers(1, 99)] * 3), st.just("uint8"), st.just("number"), st.integers(1), st.floats(0, 1)
)


@given(st.lists(a_table | pictures, min_size=1, max_size=3), st.none() | st.text(), st.none() | st.text(), texts, texts)
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_json(made, id, id_name, labels, notes):
    def build(name, ending, third, *others):
        return (
            Table(name, ending, tuple(Column(*each) for each in third), *others)
            if ending == ".csv"
            else Images(name, ending, third, *others)
        )

    schema = Schema(tuple(build(*each) for each in made), id, id_name, labels, notes)
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert repr(again) == repr(schema)  # 1, 1.0 and True are equal but not the same


def test_a_schema_of_the_future(schema):
    plain = schema.to_json()
    with pytest.raises(
        InputError, match=r"schema.json: expected version 1 or older, got 2; it needs a newer codevae: pip install -U codevae"
    ):
        Schema.from_json({**plain, "version": 2})
    with pytest.raises(InputError, match="got None"):
        Schema.from_json({})
    del plain["tables"][0]["table"]["columns"]
    with pytest.raises(InputError, match=r"schema.json: it is damaged \(KeyError: 'columns'\); restore the run folder, or train anew"):
        Schema.from_json(plain)
