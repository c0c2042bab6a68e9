"""What a report computes: the same numbers as asking the model, the metrics and scikit-learn directly."""

import sys

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from codevae import Batch, data, load, subsets
from codevae.errors import InputError
from codevae.metrics import linear_probe, log_likelihood
from codevae.metrics.imputation import Layout, column_means, fill_by, imputation_error
from codevae.report.codes import codes, maps, probe, some_subsets
from codevae.report.examples import examples
from codevae.report.rows import Label, Omitted, Rows, label_name, sample
from codevae.report.scores import imputed, likelihoods

NAN = float("nan")


@pytest.fixture(scope="module")
def model(mixed_run):
    return load(mixed_run[0])


@pytest.fixture(scope="module")
def rows(mixed_run, model):
    return Rows.of(model, *mixed_run[1:])


@pytest.fixture(scope="module")
def galleries(model, rows):
    return {gallery.name: gallery for gallery in examples(model, rows, "class", count=6, seed=3)}


def labelled(**labels) -> Batch:
    return Batch({"x": torch.zeros(len(next(iter(labels.values()))), 1)}, labels=labels)


class TestLabel:
    def test_numbers_are_classes_in_their_order(self):
        label = Label.of(labelled(digit=[10.0, 2.0, NAN, 2.0]), "digit")
        assert label.classes == ["2", "10"]
        assert label.codes.tolist() == [1, 0, -1, 0]

    def test_texts_and_flags(self):
        batch = labelled(city=np.array(["b", "", "a"], dtype=object), sick=[True, False, True])
        assert Label.of(batch, "city").codes.tolist() == [1, -1, 0]
        assert Label.of(batch, "sick").classes == ["False", "True"]

    def test_many_numbers_are_a_scale_and_many_texts_go_by_frequency(self):
        batch = labelled(age=np.arange(30) / 7, name=[f"n{i:02}" for i in range(28)] + ["n05", "n05"])
        assert Label.of(batch, "age").classes == []
        assert Label.of(batch, "age").values.tolist() == (np.arange(30) / 7).tolist()
        assert Label.of(batch, "name").classes[:2] == ["n05", "n00"]
        assert label_name(batch, None) == "age"  # neither has few values

    def test_classes_of_other_data_points_are_kept(self):
        assert Label.of(labelled(city=["b", "c"]), "city", ["a", "b"]).codes.tolist() == [1, -1]

    def test_the_first_with_few_values_is_shown(self, rows):
        assert label_name(rows.judged, None) == "class"
        assert label_name(labelled(same=[1, 1], two=["a", "b"]), None) == "two"
        assert label_name(Batch({"x": torch.zeros(2, 1)}), None) is None
        with pytest.raises(InputError, match="label: 'no'"):
            label_name(rows.judged, "no")


class TestRows:
    def test_train_and_test_stay_what_they_are(self, rows, mixed_run):
        assert (len(rows.fitted), len(rows.judged)) == tuple(map(len, mixed_run[1:]))
        assert "did not see" in rows.note

    def test_one_batch_is_split(self, model, mixed_run):
        train = mixed_run[1]
        for given in ((train, None), (train, train), (None, train)):
            found = Rows.of(model, *given)
            assert len(found.fitted) + len(found.judged) == len(train)
            assert ("flatter" in found.note) == (given[0] is not None)

    def test_nothing_and_almost_nothing(self, model, mixed_run):
        assert isinstance(Rows.of(model, None, None), Omitted)
        assert isinstance(Rows.of(model, mixed_run[1][:3], None), Omitted)

    def test_a_sample_is_drawn_in_order_within_both_limits(self):
        batch = Batch({"x": torch.arange(100).reshape(50, 2)})
        few = sample(batch, 10, seed=0)
        assert len(few) == 10
        assert (few.values["x"][:, 0].diff() > 0).all()
        assert len(sample(batch, 10, seed=0, entries=8)) == 4
        assert sample(batch, 50, seed=0) is batch


class TestCodes:
    def test_they_are_the_embeddings(self, model, rows):
        masks = subsets.powerset(5)[[0, 6, 30]]
        for mask, z in zip(masks, codes(model, rows.judged, masks, chunk=7), strict=True):
            given = [name for name, held in zip(model.names, mask.tolist(), strict=True) if held]
            torch.testing.assert_close(z, model.embed(rows.judged, given=given))

    def test_a_probe_is_the_linear_probe_of_the_embeddings(self, model, rows):
        found = probe(model, rows, "class")
        place = model.names.index("wide")
        have = [batch.observed[:, place].numpy() for batch in (rows.fitted, rows.judged)]
        z = [model.embed(batch, given="wide")[there] for batch, there in zip((rows.fitted, rows.judged), have, strict=True)]
        labels = [batch.labels["class"][there] for batch, there in zip((rows.fitted, rows.judged), have, strict=True)]
        row = next(row for row in found.rows if row["subset"] == "wide")
        assert row["accuracy"] == linear_probe(z[0], labels[0], z[1], labels[1])
        assert row["points"] == have[1].sum()
        counts = np.unique(rows.judged.labels["class"], return_counts=True)[1]
        assert found.chance == counts.max() / counts.sum()
        assert found.rows[-1]["size"] == 5

    def test_some_subsets_are_all_single_ones_a_few_of_each_size_and_the_full_one(self):
        for modalities in (1, 2, 6, 12, 20):
            masks = some_subsets(modalities)
            sizes = masks.sum(1).tolist()
            assert len(torch.unique(masks, dim=0)) == len(masks) <= 60
            assert set(sizes) == set(range(1, modalities + 1))
            assert modalities > 12 or sizes.count(1) == modalities

    def test_pca_is_scikit_learns(self, model, rows):
        found = maps(model, rows, None, fast=True)
        expected = PCA(2).fit_transform(model.embed(rows.judged).double().numpy())
        np.testing.assert_allclose(np.abs(found.maps[0].points), np.abs(expected), atol=1e-5)
        assert [shown.given for shown in found.maps] == [model.names, *([name] for name in model.names)]
        for shown, name in zip(found.maps[1:], model.names, strict=True):
            assert shown.rows.tolist() == rows.judged.observed[:, model.names.index(name)].nonzero()[:, 0].tolist()

    def test_tsne_keeps_neighbours_together_and_is_the_same_every_time(self, model, rows):
        first, second = (maps(model, rows, "class").maps[0] for _ in range(2))
        np.testing.assert_array_equal(first.points, second.points)
        z = model.embed(rows.judged).double()
        near = torch.cdist(z, z).fill_diagonal_(torch.inf).argmin(1).numpy()
        distance = np.linalg.norm(first.points[:, None] - first.points[None], axis=-1)
        assert np.median(distance[np.arange(len(near)), near]) < 0.3 * np.median(distance)

    def test_equal_codes_and_one_dimension_do_no_harm(self, model, rows, monkeypatch):
        from codevae.report import codes as module

        for z in (torch.zeros(6, len(rows.judged), 3), torch.randn(6, len(rows.judged), 1)):
            monkeypatch.setattr(module, "codes", lambda *_, z=z: z)
            for fast in (True, False):
                assert all(np.isfinite(shown.points).all() for shown in maps(model, rows, None, fast=fast).maps)

    def test_without_scikit_learn_the_extra_is_named(self, model, rows, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
        with pytest.raises(InputError, match=r"codevae\[report\]"):
            maps(model, rows, None)


class TestScores:
    def test_the_model_is_asked_for_exactly_what_was_hidden(self, model, rows):
        found = imputed(model, rows, hide=0.3, seed=4, fast=True)
        gaps = data.remove(rows.judged, 0.3, seed=4)
        layout = Layout.learn(rows.fitted, model.modalities)
        assert found.hidden == rows.judged.observed.sum() - gaps.observed.sum()
        assert repr(found.errors["model"]) == repr(imputation_error(rows.judged, model.impute(gaps), gaps, layout))
        means = fill_by(column_means, rows.fitted, gaps, layout)
        assert repr(found.errors["column means"]) == repr(imputation_error(rows.judged, means, gaps, layout))
        assert set(found.left_out) == {"5 nearest rows", "Gaussian (EM)"}

    def test_the_likelihood_is_that_of_the_metrics(self, model, rows):
        found = likelihoods(model, rows, samples=7, seed=1)
        known = log_likelihood(model, rows.judged, samples=7, seed=1)
        some = rows.judged.observed.any(1)
        assert found.joint.mean == known.joint[some].mean().item()
        assert found.joint.error == pytest.approx(known.joint[some].std().item() / some.sum().item() ** 0.5)
        for name, estimate in found.modalities.items():
            there = rows.judged.observed[:, model.names.index(name)]
            assert estimate.points == there.sum()
            assert estimate.mean == known.modalities[name][there].mean().item()


class TestExamples:
    def test_each_modality_is_shown_by_its_kind(self, galleries, model):
        kinds = dict(zip(model.names, ("pictures", "tokens", "numbers", "pictures", "strips"), strict=True))
        assert {name: gallery.kind for name, gallery in galleries.items()} == kinds

    def test_rows_are_what_the_model_says(self, galleries, model, rows):
        gallery = galleries["table"]
        assert [row.title for row in gallery.rows] == ["original", "from everything", "from the others", "new, from the prior"]
        original = rows.judged.values["table"].numpy()
        shown = [
            int(np.flatnonzero([np.array_equal(row, value, equal_nan=True) for row in original])[0]) for value in gallery.rows[0].values
        ]
        batch, others = rows.judged[shown], [name for name in model.names if name != "table"]
        np.testing.assert_allclose(gallery.rows[1].values, model.translate(batch, model.names, "table"), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gallery.rows[2].values, model.translate(batch, others, "table"), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gallery.rows[3].values, model.generate(6, seed=3).values["table"][:4])

    def test_one_of_each_class_comes_first(self, galleries):
        for gallery in galleries.values():
            assert gallery.by == "class"
            assert sorted(gallery.titles[:3]) == ["<i>a</i>", "b & c", "d"]

    def test_a_table_with_a_picture_has_its_shape(self, galleries):
        assert galleries["wide"].rows[0].values.shape == (6, 4, 5, 1)
        assert len(galleries["wide"].rows) == 1 + 1 + 4 + 1 + 1

    def test_a_strip_is_in_units_of_the_training_data(self, galleries, rows):
        values = torch.where(rows.fitted.entries["counts"], rows.fitted.values["counts"], NAN).double().numpy()
        strip = galleries["counts"].rows[0].values * np.nanstd(values, 0) + np.nanmean(values, 0)
        assert all((np.abs(rows.judged.values["counts"].numpy() - row).max(1) < 1e-4).any() for row in strip)
