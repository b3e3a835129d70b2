"""The picture of the coverage: what is drawn where, and that no fault is too small to be seen."""

import re
from typing import Any

import matplotlib
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from chainkit_jobs.report.coverage_figure import Layout, Strip, coverage_figure
from chainkit_jobs.report.drawing import drawn
from support.audit.report_input import coverage_row

_STRIP = 0.68
STATES = ("wrong", "missing", "matched", "outside")


def boxes(strip: Strip) -> dict[str, list[tuple[float, float, float]]]:
    """Left, right and height (of a strip: 1) of what is drawn of each state, from the left."""
    figure = coverage_figure([strip], 1, 20)
    collections = [part for part in figure.axes[0].collections if isinstance(part, PolyCollection)]
    drawn_boxes = {}
    for state, collection in zip(STATES, collections, strict=True):
        corners = [path.vertices.T.tolist() for path in collection.get_paths()]
        drawn_boxes[state] = [
            (min(x), max(x), round((max(y) - min(y)) / _STRIP, 2)) for x, y in corners
        ]
    return drawn_boxes


def strip(*bins: dict[str, Any], first: int | None = 1, last: int | None = 20) -> Strip:
    return Strip(100, first, last, bins)


def test_strip__bins_that_look_alike__make_one_box() -> None:
    found = boxes(strip(coverage_row(3), coverage_row(4), coverage_row(5), coverage_row(8)))

    assert found["matched"] == [(2.5, 5.5, 1.0), (7.5, 8.5, 1.0)]
    assert found["missing"] == found["wrong"] == found["outside"] == []


@pytest.mark.parametrize("state", ["missing", "wrong"])
def test_strip__one_fault_among_a_million__takes_a_third_of_the_height(state: str) -> None:
    found = boxes(strip(coverage_row(3, matched=999_999, **{state: 1})))

    assert found[state] == [(2.5, 3.5, 0.35)]
    assert found["matched"] == [(2.5, 3.5, 0.65)]


@pytest.mark.parametrize(
    ("counts", "heights"),
    [
        ({"matched": 1, "outside": 3}, {"matched": 0.25, "outside": 0.75}),
        ({"matched": 1, "missing": 3}, {"matched": 0.25, "missing": 0.75}),
        ({"matched": 0, "wrong": 1}, {"wrong": 1.0}),
        ({"matched": 0, "missing": 9, "wrong": 1}, {"missing": 0.72, "wrong": 0.28}),
    ],
)
def test_strip__states_of_a_bin__divide_its_height(
    counts: dict[str, int], heights: dict[str, float]
) -> None:
    found = boxes(strip(coverage_row(3, **counts)))

    assert {state: box[0][2] for state, box in found.items() if box} == heights


def test_strip__export_of_some_blocks__the_others_are_not_compared() -> None:
    figure = coverage_figure([strip(first=3, last=18)], 1, 20)

    grounds = [
        (patch.get_x(), patch.get_x() + patch.get_width())
        for patch in figure.axes[0].patches
        if isinstance(patch, Rectangle) and patch.get_hatch()
    ]
    assert grounds == [(0.5, 2.5), (18.5, 20.5)]


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (strip(coverage_row(1)), "all matched"),
        (strip(), "no payload"),
        (strip(first=None, last=None), "not compared"),
        (strip(coverage_row(1, missing=1200), coverage_row(2, outside=3)), "1\u202f200 missing"),
    ],
)
def test_strip__counts__stand_beside_it(shown: Strip, words: str) -> None:
    picture = drawn("coverage", "a picture", lambda: coverage_figure([shown], 1, 20))

    assert f">{words}" in picture
    assert ">node 100<" in picture


def narrow(*strips: Strip, first: int = 1, last: int = 20) -> list[str]:
    """The words of a picture for a narrow screen."""
    picture = drawn("n", "", lambda: coverage_figure(strips, first, last, Layout.NARROW))
    return [words.replace("\u00a0", " ") for words in re.findall("<text[^>]*>([^<]*)<", picture)]


def test_strip__narrow_screen__words_stand_above_it_and_lines_end_behind_a_comma() -> None:
    counts = {"missing": 10**9, "wrong": 10**9, "outside": 10**9}

    words = narrow(strip(coverage_row(1, **counts)), strip())

    assert words[3:7] == [
        "1\u202f000\u202f000\u202f000 not compared",
        "1\u202f000\u202f000\u202f000 wrong,",
        "node 100: 1\u202f000\u202f000\u202f000 missing,",
        "node 100: no payload",
    ]


@pytest.mark.parametrize(
    ("first", "last", "ends"),
    [(1, 20, ["1", "20"]), (7, 7, ["7"]), (0, 21_234_567, ["0", "21\u202f234\u202f567"])],
)
def test_strip__narrow_screen__is_labelled_at_both_ends(
    first: int, last: int, ends: list[str]
) -> None:
    assert narrow(strip(), first=first, last=last)[: len(ends)] == ends


def test_drawn__figure__is_described_and_has_no_prolog_size_or_name_of_a_group() -> None:
    picture = drawn("coverage", 'a "picture"', lambda: coverage_figure([strip()], 1, 20))

    assert picture.startswith('<svg role="img" aria-label="a &#34;picture&#34;" viewBox=')
    assert "DOCTYPE" not in picture and "<g id=" not in picture and "<style" not in picture
    assert matplotlib.rcParams["text.parse_math"] is True
