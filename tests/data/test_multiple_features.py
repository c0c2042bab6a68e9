"""The bundled digits are those of the repository."""

import gzip
from importlib.resources import files

import numpy as np
import pytest

from codevae.data import modalities, multiple_features
from codevae.data.multiple_features import PICTURES
from codevae.likelihoods import Normal

SIZES = {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47}


@pytest.fixture(scope="module")
def digits():
    return multiple_features()


def test_shapes_and_labels(digits):
    assert {name: tuple(value.shape) for name, value in digits.values.items()} == {name: (2000, size) for name, size in SIZES.items()}
    assert bool(digits.observed.all())
    assert np.bincount(digits.labels["digit"]).tolist() == [200] * 10
    assert sorted(digits.ids, key=int) == [str(row) for row in range(2000)]


@pytest.mark.parametrize("name", SIZES)
def test_a_row_is_the_one_that_its_id_names(digits, name):
    with gzip.open(files("codevae.data") / f"bundled/multiple_features/mfeat-{name}.csv.gz", "rt") as handle:
        lines = handle.read().splitlines()[1:]
    for place in (0, 1, 777, 1999):
        *cells, digit = map(float, lines[int(digits.ids[place])].split(","))
        assert digits.values[name][place].numpy() == pytest.approx(np.float32(cells), rel=0)
        assert digits.labels["digit"][place] == digit


def test_a_slice_is_a_fair_sample(digits):
    assert np.bincount(digits[:1500].labels["digit"]).min() > 130


def test_missing(digits):
    gappy = multiple_features(missing=0.4, seed=1)
    assert gappy.observed.double().mean().item() == pytest.approx(0.6 + 0.4**6 / 6, abs=0.02)
    assert bool(gappy.observed.any(1).all()) and (gappy.ids == digits.ids).all()
    assert not gappy.observed.equal(multiple_features(missing=0.4).observed)


def test_the_modalities_are_tables_of_numbers(digits):
    guessed = modalities(digits, pictures=PICTURES)
    assert [type(part.likelihood) for part in guessed] == [Normal] * 6
    assert [part.picture for part in guessed] == [None, None, None, None, (16, 15), None]


def test_it_says_whose_it_is():
    told = (files("codevae.data") / "bundled/multiple_features/README.md").read_text()
    assert "10.24432/C5HC70" in told and "CC BY 4.0" in told and "Robert P.W. Duin" in told
