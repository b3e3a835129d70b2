"""Draws docs/benchmarks-index.svg: the same figures give the same bytes."""

from __future__ import annotations

import io
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.figures import Figures
from benchmarks.index.figures import PROVED, ROWS, SIGNED, TITLES

_INK: Final = "#475569"
_GRID: Final = "#e2e8f0"
_OURS: Final = "#2563eb"
_OTHERS: Final = "#94a3b8"
_STYLE: Final[Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "chainkit-benchmarks",
}


def plot(figures: Figures) -> str:
    """Return the picture: events per second, and the CPU time that each of them takes."""
    rows = figures["rows"]
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.2, 2.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        _draw(left, "events per second", [rows[row]["events_per_s"] for row in ROWS], "{:,.0f}")
        cpu = [rows[row]["cpu_us_per_event"] for row in ROWS]
        _draw(right, "CPU microseconds per event", cpu, "{:,.1f}")
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _draw(axes: Axes, title: str, values: list[float], form: str) -> None:
    colors = [_OURS if row in ("unsigned", *SIGNED, *PROVED) else _OTHERS for row in ROWS]
    bars = axes.barh([TITLES[row] for row in ROWS], values, color=colors, height=0.62)
    axes.bar_label(bars, [form.format(value) for value in values], padding=4, color=_INK)
    axes.set_title(title, fontsize=9)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.margins(x=0.18)
    axes.tick_params(length=0)
    axes.spines["bottom"].set_visible(False)
