"""Imputation errors and reference imputers: against hand-made numbers, closed forms, scipy and scikit-learn."""

import sys

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from codevae import Batch, Modality, data
from codevae.errors import InputError
from codevae.likelihoods import Bernoulli, Categorical, Columns, Normal
from codevae.metrics.em import Gaussian
from codevae.metrics.imputation import (
    Layout,
    chained_regressions,
    column_means,
    fill_by,
    flat,
    gaussian,
    imputation_error,
    nearest_rows,
)

NAN = float("nan")


def correlated(rows: int, columns: int, gaps: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A table of correlated normal columns, and the same with a share of its cells missing; no row is empty."""
    draw = np.random.default_rng(seed)
    table = draw.normal(size=(rows, columns)) @ draw.normal(size=(columns, columns)) + draw.normal(size=columns)
    missing = draw.random(table.shape) < gaps
    missing[np.arange(rows), draw.integers(columns, size=rows)] = False
    return table, np.where(missing, NAN, table)


def penalised(fitted: Gaussian, table: np.ndarray, ridge: float) -> float:
    """Σ_n log p(x_o) − λ/2 (log |Σ| + tr Σ⁻¹), row by row with scipy."""
    total = 0.0
    for row in table:
        there = ~np.isnan(row)
        if there.any():
            total += multivariate_normal(fitted.mean[there], fitted.covariance[np.ix_(there, there)]).logpdf(row[there])
    rows = (~np.isnan(table)).any(1).sum()
    penalty = np.linalg.slogdet(fitted.covariance)[1] + np.trace(np.linalg.inv(fitted.covariance))
    return total - ridge * rows / 2 * penalty


class TestGaussian:
    def test_without_gaps_it_is_the_maximum_likelihood_estimate(self):
        table, _ = correlated(50, 4, 0.0)
        fitted = Gaussian.fit(table, ridge=0.0)
        np.testing.assert_allclose(fitted.mean, table.mean(0))
        np.testing.assert_allclose(fitted.covariance, np.cov(table.T, bias=True))

    def test_a_monotone_pattern_has_a_closed_form(self):
        """x₁ always there, x₂ in some rows: x₂ is regressed on x₁ where both are (Anderson 1957)."""
        table, _ = correlated(200, 2, 0.0)
        table[table[:, 0] > 0.5, 1] = NAN
        fitted = Gaussian.fit(table, ridge=0.0, iterations=2000, tolerance=0.0)
        both = ~np.isnan(table[:, 1])
        slope, start = np.polyfit(table[both, 0], table[both, 1], 1)
        residual = (table[both, 1] - start - slope * table[both, 0]).var()
        mean, variance = table[:, 0].mean(), table[:, 0].var()
        np.testing.assert_allclose(fitted.mean, [mean, start + slope * mean], rtol=1e-6)
        expected = [[variance, slope * variance], [slope * variance, residual + slope**2 * variance]]
        np.testing.assert_allclose(fitted.covariance, expected, rtol=1e-6)

    @pytest.mark.parametrize("ridge", [0.0, 0.05, 1.0])
    def test_the_objective_is_the_penalised_likelihood_and_never_falls(self, ridge):
        _, gappy = correlated(60, 5, 0.4)
        fits = [Gaussian.fit(gappy, ridge, iterations, tolerance=-1.0) for iterations in (1, 2, 30)]
        gains = np.diff(fits[-1].objective)
        assert (gains > -1e-9).all()
        assert gains[0] > 1
        for fitted, later in zip(fits, (1, 2), strict=False):  # after n iterations comes the objective before the next one
            assert penalised(fitted, gappy, ridge) == pytest.approx(fits[-1].objective[later])

    def test_gaps_are_filled_by_the_conditional_mean(self):
        _, gappy = correlated(40, 5, 0.4)
        fitted = Gaussian.fit(gappy)
        filled = fitted.impute(gappy)
        np.testing.assert_array_equal(filled[~np.isnan(gappy)], gappy[~np.isnan(gappy)])
        for row, guess in zip(gappy, filled, strict=True):
            o, m = ~np.isnan(row), np.isnan(row)
            weights = fitted.covariance[np.ix_(m, o)] @ np.linalg.inv(fitted.covariance[np.ix_(o, o)])
            np.testing.assert_allclose(guess[m], fitted.mean[m] + weights @ (row[o] - fitted.mean[o]))

    def test_log_prob_is_scipys(self):
        _, gappy = correlated(20, 4, 0.4)
        fitted = Gaussian.fit(gappy)
        assert fitted.log_prob(gappy).sum() == pytest.approx(penalised(fitted, gappy, 0.0))

    def test_a_true_conditional_mean_is_found(self):
        """With many rows the imputations are those of the normal that made the data."""
        draw = np.random.default_rng(1)
        root = draw.normal(size=(4, 4))
        table = draw.normal(size=(20000, 4)) @ root.T
        gappy = np.where(draw.random(table.shape) < 0.3, NAN, table)
        true = Gaussian(np.zeros(4), root @ root.T)
        fitted = Gaussian.fit(gappy, ridge=0.0, iterations=200, tolerance=1e-9)
        error = np.sqrt(np.mean((fitted.impute(gappy) - true.impute(gappy)) ** 2))
        assert error < 0.03 * table.std()

    def test_empty_rows_teach_nothing_and_become_the_mean(self):
        _, gappy = correlated(30, 3, 0.3)
        longer = np.concatenate([gappy, np.full((7, 3), NAN)])
        fitted, same = Gaussian.fit(longer), Gaussian.fit(gappy)
        np.testing.assert_allclose(fitted.covariance, same.covariance)
        np.testing.assert_allclose(fitted.impute(longer)[-1], fitted.mean)

    def test_more_columns_than_rows_and_repeated_columns(self):
        _, gappy = correlated(10, 30, 0.2)
        gappy[:, 29] = gappy[:, 28]
        assert np.isfinite(Gaussian.fit(gappy).impute(gappy)).all()


MODALITIES = {
    "rna": Modality("rna", (2,)),
    "mixed": Modality("mixed", (3,), Columns([(Normal(), [1]), (Categorical(3), [0]), (Bernoulli(), [2])])),
    "image": Modality("image", (1, 1, 2)),
}


@pytest.fixture
def train():
    return Batch(
        {
            "rna": [[1.0, 5.0], [3.0, 5.0], [NAN, NAN], [5.0, 5.0]],
            "mixed": [[2.0, 1.0, 1.0], [2.0, -1.0, 0.0], [0.0, NAN, 1.0], [1.0, 0.0, 1.0]],
            "image": torch.tensor([[0, 2], [4, 2], [0, 2], [4, 2]], dtype=torch.uint8).reshape(4, 1, 1, 2),
        }
    )


class TestLayout:
    def test_numbers_are_standardised_and_categories_one_hot(self, train):
        layout = Layout.learn(train, MODALITIES)
        table = layout.table(train)
        spread, other = np.sqrt(8 / 3), np.sqrt(2 / 3)
        assert layout.width == table.shape[1] == 2 + (3 + 1 + 2) + 2
        np.testing.assert_allclose(table[0], [-2 / spread, 0, 0, 0, 1, 1 / other, 0, 1, -1, 0])
        np.testing.assert_allclose(table[2], [NAN, NAN, 1, 0, 0, NAN, 0, 1, -1, 0])

    def test_a_table_becomes_the_batch_again(self, train):
        layout = Layout.learn(train, MODALITIES)
        hidden = train.hide(torch.ones_like(train.observed))
        back = layout.batch(np.nan_to_num(layout.table(train)), hidden)
        for name in train.names:
            there = train.entries[name].expand_as(train.values[name])
            assert back.values[name].dtype == train.values[name].dtype
            torch.testing.assert_close(back.values[name][there], train.values[name][there])

    def test_what_stands_in_an_absent_entry_is_never_seen(self, train):
        values = {name: value.clone() for name, value in train.values.items()}
        values["rna"][2] = 1e9
        other = Batch(values, train.entries)
        np.testing.assert_array_equal(Layout.learn(other, MODALITIES).table(other), Layout.learn(train, MODALITIES).table(train))


class TestImputationError:
    def test_by_hand(self, train):
        layout = Layout.learn(train, MODALITIES)
        gaps = train.hide(torch.tensor([[True, True, False]]).expand(4, 3))
        guess = {name: torch.nan_to_num(value) if value.is_floating_point() else value for name, value in train.values.items()}
        guess["rna"] = guess["rna"] + torch.tensor([2.0, 0.0])
        guess["mixed"] = torch.tensor([[2.0, 1.0, 1.0], [0.0, -1.0, 0.0], [0.0, 9.0, 0.0], [1.0, 0.0, 1.0]])
        error = imputation_error(train, Batch(guess), gaps, layout)
        assert error.rmse["rna"] == pytest.approx(np.sqrt((4 / (8 / 3)) / 2))
        assert error.rmse["mixed"] == 0.0  # the 9 stands where the truth is not known
        assert error.accuracy["mixed"] == pytest.approx(6 / 8)
        assert np.isnan(error.rmse["image"])
        assert error.entries == {"rna": 6, "mixed": 11, "image": 0}
        assert error.overall_rmse == pytest.approx(np.sqrt(3 * 4 / (8 / 3) / 9))
        assert error.overall_accuracy == pytest.approx(6 / 8)

    def test_the_same_data_points_are_asked_for(self, train):
        layout = Layout.learn(train, MODALITIES)
        with pytest.raises(InputError, match="same data points"):
            imputation_error(train, train, train[:2], layout)


class TestReferences:
    def test_what_is_there_stays_and_every_gap_is_filled(self):
        _, gappy = correlated(30, 4, 0.3)
        for imputer in (column_means, nearest_rows, gaussian, chained_regressions):
            filled = imputer(gappy[:20], gappy[20:])
            np.testing.assert_array_equal(filled[~np.isnan(gappy[20:])], gappy[20:][~np.isnan(gappy[20:])])
            assert np.isfinite(filled).all()

    def test_means_and_the_most_frequent_category(self, train):
        layout = Layout.learn(train, MODALITIES)
        gaps = train.hide(torch.tensor([[True, True, True]]).expand(4, 3))
        filled = fill_by(column_means, train, gaps, layout)
        assert filled.values["rna"].tolist() == [[3.0, 5.0]] * 4
        assert filled.values["mixed"].tolist() == [[2.0, 0.0, 1.0]] * 4
        assert filled.values["image"].flatten(1).tolist() == [[2, 2]] * 4

    def test_nearest_rows_by_hand(self):
        train = np.array([[0.0, 1.0], [0.1, 3.0], [9.0, 100.0], [9.1, NAN]])
        assert nearest_rows(train, np.array([[0.0, NAN], [NAN, 1.1]]), neighbours=2).tolist() == [[0.0, 2.0], [0.05, 1.1]]

    def test_a_column_that_training_never_saw_is_kept(self):
        train, gaps = np.array([[1.0, NAN], [2.0, NAN], [3.0, NAN]]), np.array([[NAN, NAN]])
        for imputer in (column_means, nearest_rows, gaussian, chained_regressions):
            assert imputer(train, gaps).shape == (1, 2)

    def test_the_better_ones_are_better(self):
        """On linear data: Gaussian ≈ chained regressions < nearest rows < means."""
        draw = np.random.default_rng(0)
        table = draw.normal(size=(400, 3)) @ draw.normal(size=(3, 9)) + 0.3 * draw.normal(size=(400, 9))
        table = (table - table.mean(0)) / table.std(0)
        gappy = np.where(draw.random(table.shape) < 0.3, NAN, table)
        hidden = np.isnan(gappy[300:])
        means, nearest, normal, chained = (
            np.sqrt(np.mean((imputer(gappy[:300], gappy[300:]) - table[300:])[hidden] ** 2))
            for imputer in (column_means, nearest_rows, gaussian, chained_regressions)
        )
        assert normal == pytest.approx(chained, rel=0.1)
        assert normal < nearest < means

    def test_without_scikit_learn_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn", None)
        with pytest.raises(InputError, match=r"codevae\[report\]"):
            nearest_rows(np.zeros((2, 2)), np.zeros((2, 2)))

    def test_on_the_bundled_digits_the_order_is_the_known_one(self):
        digits = data.multiple_features()[:600].select(["mor", "zer", "fou"])
        train, test = data.split(digits, 0.3)
        train, gaps = data.remove(train, 0.4, seed=1), data.remove(test, 0.2, seed=2)
        layout = Layout.learn(train, {part.name: part for part in data.modalities(train)})
        means, nearest, normal = (
            imputation_error(test, fill_by(imputer, train, gaps, layout), gaps, layout).overall_rmse
            for imputer in (column_means, nearest_rows, gaussian)
        )
        assert normal < nearest < means
        assert means == pytest.approx(1.0, abs=0.1)


def test_flat_is_side_by_side():
    batch = Batch({"a": [[1.0, NAN]], "b": torch.arange(4).reshape(1, 1, 2, 2)})
    np.testing.assert_array_equal(flat(batch, ["b", "a"]), [[0, 1, 2, 3, 1, NAN]])
