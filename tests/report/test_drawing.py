"""Drawings, pictures and the small pieces of HTML."""

import base64
import io
import re
import sys

import matplotlib.image
import numpy as np
import pytest

from codevae.errors import InputError
from codevae.report.extra import extra
from codevae.report.html import fixed, image, number, paragraph, percent, table
from codevae.report.pictures import data_uri, strip_of_colours, strip_of_pictures
from codevae.report.svg import INK, SERIES, drawing
from report.pages import Page


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, 3, "0.00"),
        (0.6021, 3, "0.602"),
        (0.06021, 3, "0.0602"),
        (-295.7756, 4, "−295.8"),
        (1234567.0, 3, "1,234,567"),
        (12.0, 3, "12.0"),
        (3e-7, 3, "3.00e-7"),
        (-4e12, 2, "−4.0e12"),
        (float("nan"), 3, "–"),
        (None, 3, "–"),
        (float("-inf"), 3, "−∞"),
        (-0.0, 3, "0.00"),
    ],
)
def test_numbers(value, digits, text):
    assert number(value, digits) == text


def test_fixed_and_percent():
    assert fixed(-0.004, 2) == "0.00"
    assert fixed(-1234.5, 1) == "−1,234.5"
    assert percent(0.9381) == "93.8\u202f%"
    assert percent(None) == "–"


def test_text_goes_in_as_text():
    awkward = "<b>&\"'"
    for html in (paragraph(awkward), table(awkward, [awkward, "x"], [[awkward, awkward]], strong={(0, 1)}), image("data:,", awkward, 1, 1)):
        assert "<b>" not in html
        Page(html)
    assert Page(table(awkward, ["a", "b"], [["c", awkward]])).table(awkward)["c"] == [awkward]


def drawn(alt: str = "words", name: str = "a name") -> str:
    with drawing(alt) as (axes, done):
        axes.plot([0, 1], [0, -1], color=SERIES[3], label=name)
        axes.plot([0, 1, 2], [0, 1, 2], "o", color=SERIES[1], markeredgecolor="none", alpha=0.5)
        axes.text(0, 0, name, color=INK)
        axes.legend()
    return done.svg


def test_a_drawing_has_the_colours_and_the_font_of_the_page():
    svg = drawn()
    assert "var(--series-3)" in svg
    assert "var(--series-1)" in svg
    assert "currentColor" in svg
    assert not re.search(r"#0[1-5]0", svg)
    assert "font-family" not in svg
    assert "<style" not in svg
    assert "xmlns" not in svg
    assert [element.text for element in Page(svg).all("text")].count("a name") == 2


def test_a_drawing_is_the_same_every_time_and_two_of_them_share_no_ids():
    assert drawn() == drawn()
    ids = [set(re.findall(r' id="([^"]+)"', drawn(alt))) for alt in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_names_in_a_drawing_are_text():
    svg = drawn("<alt> \"&'", "日本 $x_1$ <b>&")
    assert Page(svg).all("svg")[0].attributes["aria-label"] == "<alt> \"&'"
    assert Page(svg).all("text")[-1].text == "日本 $x_1$ <b>&"


def read(uri: str) -> np.ndarray:
    assert uri.startswith("data:image/png;base64,")
    return np.round(255 * matplotlib.image.imread(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_pictures_are_what_they_were():
    values = np.random.default_rng(0).integers(0, 256, size=(3, 4, 5, 3)).astype(float)
    values[1, 2, 3] = np.nan
    strip = read(data_uri(strip_of_pictures(values, 0.0, 255.0)))
    assert strip.shape == (4, 3 * 6 - 1, 4)
    for place in range(3):
        part = strip[:, 6 * place : 6 * place + 5]
        there = ~np.isnan(values[place]).any(-1)
        np.testing.assert_array_equal(part[..., :3][there], values[place][there])
        np.testing.assert_array_equal(part[..., 3], 255 * there)


def test_grey_goes_from_low_to_high():
    strip = strip_of_pictures(np.array([-1.0, 2.0, 5.0, 9.0]).reshape(1, 1, 4, 1), -1.0, 5.0)
    assert strip[0, :, 0].tolist() == [0, 128, 255, 255]
    assert (strip[..., :3] == strip[..., :1]).all()


def test_colours_are_blue_below_red_above_and_clear_where_nothing_is():
    low, middle, high, absent = strip_of_colours(np.array([[-9.0, 0.0, 3.0, np.nan]]), -3.0, 3.0)[0].tolist()
    assert low[2] > low[0]
    assert middle[0] == middle[1] == middle[2] > 240
    assert high[0] > high[2]
    assert absent[3] == 0


@pytest.mark.parametrize(("module", "library"), [("matplotlib.figure", "matplotlib"), ("sklearn.manifold", "scikit-learn")])
def test_what_is_not_installed_is_named_with_its_extra(monkeypatch, module, library):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"{library}.*codevae\[report\]"):
        extra(module)
