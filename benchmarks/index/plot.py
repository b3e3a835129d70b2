"""Draws docs/benchmarks-index.svg: events per second and processor time of each row."""

from __future__ import annotations

from matplotlib.axes import Axes

from benchmarks.drawing import INK, OTHERS, OURS, bare, drawn
from benchmarks.figures import Figures
from benchmarks.index.figures import PROVED, ROWS, SIGNED, TITLES


def plot(figures: Figures) -> str:
    """Return the picture: events per second, and the CPU time that each of them takes."""
    rows = figures["rows"]
    with drawn(2) as ((left, right), picture):
        _draw(left, "events per second", [rows[row]["events_per_s"] for row in ROWS], "{:,.0f}")
        cpu = [rows[row]["cpu_us_per_event"] for row in ROWS]
        _draw(right, "CPU microseconds per event", cpu, "{:,.1f}")
        return picture()


def _draw(axes: Axes, title: str, values: list[float], form: str) -> None:
    colors = [OURS if row in ("unsigned", *SIGNED, *PROVED) else OTHERS for row in ROWS]
    bars = axes.barh([TITLES[row] for row in ROWS], values, color=colors, height=0.62)
    axes.bar_label(bars, [form.format(value) for value in values], padding=4, color=INK)
    bare(axes, title)
