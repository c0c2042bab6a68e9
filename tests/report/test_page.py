"""The page: whole, readable by everyone, and saying what was computed."""

import json
import re
from itertools import pairwise

import pandas as pd
import pytest
import torch

from codevae import Batch, MultimodalVAE, data, fit, load, report
from codevae.errors import InputError
from codevae.report.html import number, percent
from codevae.report.rows import Omitted
from codevae.training import Run
from report.pages import Page


@pytest.fixture(scope="session")
def page(mixed_run):
    folder, train, test = mixed_run
    return Page(report.write(folder, train, test, label="class").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def results(mixed_run):
    folder, train, test = mixed_run
    return report.measure(Run(folder), load(folder), train, test, label="class")


def well_formed(page: Page) -> None:
    """Nothing is loaded, ids are unique, links lead somewhere, pictures have words, headings are in order."""
    elements = [element for tag in ("img", "a", "link", "script", "iframe", "use", "image") for element in page.all(tag)]
    targets = [element.attributes.get("src") or element.attributes.get("href") or "" for element in elements]
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in targets)
    assert "http:" not in page.text
    assert "https:" not in page.text
    assert not re.search(r"@import|url\((?!#)", page.text)
    assert not page.all("script")
    ids = re.findall(r' id="([^"]*)"', page.text)
    assert len(set(ids)) == len(ids)
    links = re.findall(r'(?:href="|url\()#([^")]*)', page.text) + re.findall(r'aria-labelledby="([^"]*)"', page.text)
    assert set(links) <= set(ids)
    assert all(picture.attributes["alt"] for picture in page.all("img"))
    assert all(drawing.attributes["role"] == "img" and drawing.attributes["aria-label"] for drawing in page.all("svg"))
    levels = [int(level) for level in re.findall(r"<h(\d)", page.text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert not re.search(r"\bnan\b", re.sub(r"data:[^\"]*", "", page.text), re.IGNORECASE)


def test_it_is_well_formed(page):
    well_formed(page)
    assert page.all("img")
    assert len(page.all("svg")) > 8


def test_it_is_small_and_says_how_it_wants_to_be_shown(page):
    assert len(page.text) < 3_000_000
    names = {element.attributes.get("name") for element in page.all("meta")}
    assert {"viewport", "color-scheme"} <= names
    assert page.all("html")[0].attributes["lang"] == "en"


def test_names_are_text(page, mixed_run):
    folder, _, _ = mixed_run
    assert "<b>" not in page.text
    assert "<i>" not in page.text
    assert page.all("h1")[0].text == "mixed <run>"
    names = [heading.text for heading in page.section("examples").all("h3")]
    assert names == load(folder).names
    assert "<i>a</i>" in page.section("embedding").text


def test_the_imputation_table_is_what_was_computed(page, results):
    for kind, name, show in (("rmse", "Imputation error", number), ("accuracy", "Imputation accuracy", percent)):
        table = page.table(name)
        modalities = [cell for cell in table["imputer"] if cell != "overall"]
        assert modalities
        for imputer, error in results.imputed.errors.items():
            expected = [getattr(error, f"overall_{kind}"), *(getattr(error, kind)[modality] for modality in modalities)]
            assert table[imputer] == [show(value) for value in expected]


def test_the_likelihood_table_is_what_was_computed(page, results):
    table = page.table("Log-likelihood")
    assert table["all that is observed"][0] == number(results.likelihoods.joint.mean, 5)
    for name, estimate in results.likelihoods.modalities.items():
        assert table[name] == [number(estimate.mean, 5), number(estimate.error, 2), f"{estimate.points:,}"]


def test_the_subset_table_is_what_was_computed(page, results):
    table = page.table("All subsets")
    assert len(table) == 1 + 31
    for row in results.subsets:
        assert table[row["subset"]] == [number(row["pi"]), number(row["trace"]), percent(row["negative_weights"])]


def test_the_probe_table_is_what_was_computed(page, results):
    table = page.table("Accuracy of each subset")
    for row in results.probe.rows:
        assert table[row["subset"]] == [str(row["size"]), percent(row["accuracy"]), f"{row['points']:,}"]


def test_the_history_is_whole(page, mixed_run):
    history = Run(mixed_run[0]).history
    table = page.table("The history")
    assert list(table) == ["step", *map(str, history["step"])]
    assert table["6"][table["step"].index("bound")] == number(history["bound"][-1], 5)


def test_the_first_numbers_are_those_of_the_sections(page, results):
    values = [element.text for element in page.all("span") if element.attributes.get("class") == "value"]
    full, best = results.probe.rows[-1]["accuracy"], max(results.history["validation"])
    assert values == [
        percent(full),
        number(results.imputed.errors["model"].overall_rmse),
        number(results.likelihoods.joint.mean, 4),
        number(best, 4),
    ]


def test_twice_the_same_bytes(mixed_run, tmp_path):
    folder, train, test = mixed_run
    texts = []
    for name in ("first.html", "second.html"):
        torch.randn(3)  # the caller's draws do not matter
        texts.append(report.write(folder, train, test, label="class", out=tmp_path / name).read_bytes())
    assert texts[0] == texts[1]


def test_tables_without_labels_and_test_data(tables_run):
    folder, batch = tables_run
    path = report.write(folder, batch, fast=True)
    page = Page(path.read_text(encoding="utf-8"))
    well_formed(page)
    assert path == folder / "report.html"
    assert "Left out. It needs labels" in page.section("probe").text
    assert "trained on them" in page.text
    assert "30 % are judged" in page.text
    assert "PCA" in page.section("embedding").text
    assert "Gaussian (EM); the report was asked to be fast" in page.section("imputation").text


def test_the_training_data_twice_are_the_training_data_once(tables_run, tmp_path):
    folder, batch = tables_run
    once = report.write(folder, batch, fast=True, out=tmp_path / "once.html")
    twice = report.write(folder, batch, batch, fast=True, out=tmp_path / "twice.html")
    assert once.read_bytes() == twice.read_bytes()


def test_a_run_without_data_still_shows_its_training(tables_run, tmp_path):
    page = Page(report.write(tables_run[0], out=tmp_path / "page.html").read_text(encoding="utf-8"))
    well_formed(page)
    assert page.section("training").all("svg")
    for place in ("embedding", "probe", "examples", "imputation", "likelihood", "subsets"):
        assert "none were given" in page.section(place).text


def test_one_modality(tmp_path):
    batch = Batch({"only": torch.randn(40, 3)}, labels={"class": ["a", "b"] * 20})
    fit(MultimodalVAE(data.modalities(batch), 1, seed=0), batch, steps=2, batch_size=32, out=tmp_path, progress=False)
    page = Page(report.write(tmp_path, batch[:30], batch[30:]).read_text(encoding="utf-8"))
    well_formed(page)
    assert "single modality" in page.section("imputation").text
    assert "single subset" in page.section("subsets").text
    assert list(page.table("Examples of only"))[1:]


def test_the_names_of_columns_and_levels_come_from_the_schema(tmp_path):
    frame = pd.DataFrame({"id": range(30), "gene <1>": [0.5, 1.5, 2.5] * 10, "sick": ["no", "yes", "no"] * 10})
    tables = data.read_tables({"rna": frame, "other": frame})
    fit(MultimodalVAE(tables.schema.modalities(), 2, seed=0), tables.batch, steps=2, batch_size=32, out=tmp_path, progress=False)
    Run(tmp_path).schema_file.write_text(json.dumps(tables.schema.to_json()), encoding="utf-8")
    page = Page(report.write(tmp_path, tables.batch, fast=True).read_text(encoding="utf-8"))
    header = next(iter(page.section("examples").all("thead"))).text
    assert "gene <1>" in header
    cells = {cell.text for row in page.section("examples").all("tbody")[0].inside for cell in row.inside[-1:]}
    assert cells <= {"no", "yes"}


def test_what_cannot_be_asked_for(mixed_run):
    folder, train, test = mixed_run
    with pytest.raises(InputError, match="label: 'nothing'"):
        report.write(folder, train, test, label="nothing")
    with pytest.raises(InputError, match="no such run folder"):
        report.write(folder / "nowhere", train)


def test_evaluate_gives_the_numbers_of_the_page(mixed_run, results):
    folder, train, test = mixed_run
    found = report.evaluate(load(folder), train, test, label="class")
    assert found["log-likelihood"] == results.likelihoods.joint.mean
    assert found["imputation RMSE"] == results.imputed.errors["model"].overall_rmse
    assert found["imputation RMSE by column means"] == results.imputed.errors["column means"].overall_rmse
    assert found["probe accuracy (class)"] == results.probe.rows[-1]["accuracy"]
    assert all(value == value for value in found.values())


def test_results_without_history_say_so(mixed_run, tmp_path):
    folder, train, test = mixed_run
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "config.yaml").write_bytes((folder / "config.yaml").read_bytes())
    results = report.measure(Run(copy), load(folder), train, test, fast=True)
    assert isinstance(results.history, Omitted)
    well_formed(Page(report.page(results)))
