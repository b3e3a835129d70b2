"""Figures as inline SVG: text stays text, and the same numbers give the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, Final

import matplotlib
from markupsafe import Markup, escape
from matplotlib.figure import Figure

_INK: Final = "#334155"
_GRID: Final = "#dbe2ea"

_STYLE: Final[dict[str, Any]] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _INK,
    # Names come from strangers: a $ in one is no formula.
    "text.parse_math": False,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _GRID,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "hatch.linewidth": 0.8,
    "legend.frameon": False,
    "svg.fonttype": "none",
}


def drawn(name: str, description: str, draw: Callable[[], Figure]) -> Markup:
    """Return a figure as an SVG element of the page.

    ``name`` is unique in the page, ``description`` describes the figure for readers who cannot see
    it.
    """
    # The salt makes the ids in an SVG the same on every run, and different in each figure.
    style: Any = {**_STYLE, "svg.hashsalt": f"chainkit-{name}"}
    with matplotlib.rc_context(style):
        svg = _svg(draw())
    label = f'<svg role="img" aria-label="{escape(description)}"'
    # matplotlib escapes its own text; the rest is ours.
    return Markup(label + svg.removeprefix("<svg"))


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    # Inside HTML, an SVG needs neither prolog nor name spaces, and its size is the page's.
    svg = re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    # The names of groups are the same in every figure; what is referred to is not.
    svg = re.sub(r'(<g) id="[^"]*"', r"\1", svg)
    return re.sub(r'(<svg[^>]*?) width="[^"]*"( height="[^"]*")?', r"\1", svg, count=1)
