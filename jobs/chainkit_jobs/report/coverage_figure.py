"""The picture of what was compared: a strip per node over the blocks of the chain export."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from chainkit_jobs.report.formats import THIN

_LEAST: Final = 0.35
"""Height of one missing or wrong payload among any number: it must be visible."""

_FAULTS: Final = ("wrong", "missing")

_HALF: Final = 0.34
_STRIP: Final = 0.36
"""Inches of a node's strip and the space around it."""

_LINE: Final = 0.42
"""A line of text above a strip, in heights of a strip and the space around it."""

_LINE_LENGTH: Final = 40
"""Letters of a line on a narrow screen."""

_FRAME: Final = "#64748b"
_STATES: Final[Mapping[str, dict[str, Any]]] = {
    "wrong": {"facecolor": "#1f1f1f", "edgecolor": "#ffffff", "hatch": "xxxx"},
    "missing": {"facecolor": "#ffd9a0", "edgecolor": "#b34700", "hatch": "////"},
    "matched": {"facecolor": "#0072b2", "edgecolor": "none"},
    "outside": {"facecolor": "#eceff3", "edgecolor": "#b9c2ce", "hatch": "\\\\\\\\"},
}
"""From the bottom of a strip to its top. Distinguished by darkness and pattern, not by hue
alone."""

_LABELS: Final = {
    "matched": "served as the chain demands",
    "missing": "missing",
    "wrong": "wrong",
    "outside": "not compared",
}

_SHORT: Final = {"missing": "missing", "wrong": "wrong", "outside": "not compared"}


class Layout(StrEnum):
    """The screen that a picture is drawn for."""

    WIDE = "wide"
    """The words are beside the strips."""
    NARROW = "narrow"
    """The words are above the strips, which take the whole width."""


@dataclass(frozen=True, slots=True)
class Strip:
    """A node's part of the picture."""

    node_id: int
    first_block: int | None
    """The blocks that both the node's and the chain's export cover; None if nothing was
    compared."""
    last_block: int | None
    bins: Sequence[Mapping[str, Any]]
    """The node's rows of coverage.COVERAGE, by first_block."""

    def total(self, state: str) -> int:
        """Return the payloads in a state over all blocks."""
        return sum(row[state] for row in self.bins)


def coverage_figure(
    strips: Sequence[Strip], first_block: int, last_block: int, layout: Layout = Layout.WIDE
) -> Figure:
    """Draw the strips, the first on top, over the blocks of a chain export."""
    labels = [_lines(strip) for strip in strips] if layout is Layout.NARROW else []
    above = _LINE * max(map(len, labels), default=0)
    places = [row * (1 + above) for row in range(len(strips))]
    width, rest = (8.6, 0.95) if layout is Layout.WIDE else (3.4, 1.25)
    figure = Figure(
        figsize=(width, rest + _STRIP * len(strips) * (1 + above)), layout="constrained"
    )
    figure.patch.set_alpha(0)
    axes = figure.subplots()
    for place, strip in zip(places, strips, strict=True):
        _draw_ground(axes, place, strip, first_block, last_block)
    for state, look in _STATES.items():
        boxes = [
            box
            for place, strip in zip(places, strips, strict=True)
            for box in _boxes(place, strip, state)
        ]
        axes.add_collection(PolyCollection(boxes, linewidth=0.3, **look))
    axes.set_xlim(first_block - 0.5, last_block + 0.5)
    axes.set_ylim(places[-1] + 0.5, -0.5 - above)
    if layout is Layout.WIDE:
        _label_beside(axes, strips)
    else:
        _label_above(axes, places, labels)
    _label_blocks(axes, layout, sorted({first_block, last_block}))
    _explain(axes, layout)
    return figure


def _draw_ground(axes: Axes, place: float, strip: Strip, first_block: int, last_block: int) -> None:
    """Mark blocks that were not compared, whether the chain holds a payload there or not."""
    whole = (first_block - 0.5, last_block + 0.5)
    gaps = [whole]
    if strip.first_block is not None and strip.last_block is not None:
        gaps = [(whole[0], strip.first_block - 0.5), (strip.last_block + 0.5, whole[1])]
    for left, right in gaps:
        if left < right:
            box = Rectangle((left, place - _HALF), right - left, 2 * _HALF, **_STATES["outside"])
            axes.add_patch(box)
    frame = Rectangle((whole[0], place - _HALF), whole[1] - whole[0], 2 * _HALF)
    frame.set(facecolor="none", edgecolor=_FRAME, linewidth=0.6, zorder=3)
    axes.add_patch(frame)


def _boxes(place: float, strip: Strip, state: str) -> Iterator[list[tuple[float, float]]]:
    """Give the corners of the boxes of a state; bins that look alike make one box."""
    spans = [
        (row["first_block"] - 0.5, row["last_block"] + 0.5, *_shares(row)[state])
        for row in strip.bins
        if row[state]
    ]
    for (low, high), alike in groupby(_joined(spans), key=lambda span: span[2:]):
        bottom, top = place + _HALF - 2 * _HALF * low, place + _HALF - 2 * _HALF * high
        for left, right, *_ in alike:
            yield [(left, bottom), (right, bottom), (right, top), (left, top)]


def _joined(spans: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
    joined: list[tuple[float, ...]] = []
    for span in spans:
        if joined and joined[-1][1] == span[0] and joined[-1][2:] == span[2:]:
            joined[-1] = (joined[-1][0], *span[1:])
        else:
            joined.append(span)
    return joined


def _shares(row: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return where each state of a bin begins and ends, from 0 (bottom) to 1 (top).

    Missing and wrong payloads take their share, and at least a visible height.
    """
    total = sum(row[state] for state in _STATES)
    heights = {state: row[state] / total for state in _STATES}
    seen = {state: max(heights[state], _LEAST) for state in _FAULTS if row[state]}
    faults = sum(seen.values())
    rest = 1 - sum(heights[state] for state in seen)
    left = max(0.0, 1 - faults) if rest else 0.0
    scale = 1 / (faults + left)
    places, top = {}, 0.0
    for state, height in heights.items():
        share = seen[state] if state in seen else height * left / rest if rest else 0.0
        places[state] = (round(top, 6), round(top + share * scale, 6))
        top += share * scale
    return places


def _label_beside(axes: Axes, strips: Sequence[Strip]) -> None:
    axes.set_yticks(range(len(strips)), [f"node {strip.node_id}" for strip in strips])
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(strips)), [_in_words(strip) for strip in strips])
    right.yaxis.set_tick_params(length=0)
    right.spines["right"].set_visible(False)


def _label_above(axes: Axes, places: Sequence[float], labels: Sequence[list[str]]) -> None:
    axes.set_yticks([])
    left = axes.get_xlim()[0]
    for place, lines in zip(places, labels, strict=True):
        for number, line in enumerate(reversed(lines)):
            axes.text(left, place - _HALF - 0.1 - number * _LINE, line, va="bottom")


def _lines(strip: Strip) -> list[str]:
    """Return the words above a strip, in lines for a narrow screen."""
    # A line ends behind a comma only.
    words = f"node {strip.node_id}: {_in_words(strip)}".replace(" ", "\u00a0")
    return textwrap.wrap(re.sub("(?<=[,:])\u00a0", " ", words), _LINE_LENGTH)


def _label_blocks(axes: Axes, layout: Layout, ends: Sequence[int]) -> None:
    axes.yaxis.set_tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.grid(visible=False)
    if layout is Layout.WIDE:
        # Labels of eight digits would touch each other.
        axes.xaxis.set_major_locator(MaxNLocator(8 if ends[-1] < 10**6 else 5, integer=True))
    else:
        axes.set_xticks(ends)
        first, *others = axes.get_xticklabels()
        first.set_horizontalalignment("left")
        for last in others:
            last.set_horizontalalignment("right")
    grouped = FuncFormatter(lambda value, _: f"{value:,.0f}".replace(",", THIN))
    axes.xaxis.set_major_formatter(grouped)
    axes.set_xlabel("block of the chain")


def _explain(axes: Axes, layout: Layout) -> None:
    is_wide = layout is Layout.WIDE
    legend = [Patch(label=label, **_STATES[state]) for state, label in _LABELS.items()]
    legend.append(Patch(label="no payload", facecolor="white", edgecolor=_FRAME, linewidth=0.6))
    axes.legend(
        handles=legend,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=5 if is_wide else 2,
        fontsize=8,
        columnspacing=1.2 if is_wide else 0.6,
        handlelength=1.6 if is_wide else 1.2,
        borderaxespad=0.3,
    )


def _in_words(strip: Strip) -> str:
    if strip.first_block is None:
        return "not compared"
    if not strip.bins:
        return "no payload"
    counts = {_SHORT[state]: strip.total(state) for state in ("missing", "wrong", "outside")}
    faults = [f"{count:,} {word}".replace(",", THIN) for word, count in counts.items() if count]
    return ", ".join(faults) or "all matched"
