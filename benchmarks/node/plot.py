"""Draws docs/benchmarks-node.svg: this build's figures beside the former build's."""

from __future__ import annotations

from typing import Final

from matplotlib.axes import Axes

from benchmarks.drawing import INK, OTHERS, OURS, bare, drawn
from benchmarks.figures import Figures

_PANELS: Final = {
    "publishes per second": ("publish_vs_before", "gateway_publish_vs_before"),
    "CPU microseconds per publish": (
        "node_cpu_per_publish_vs_before",
        "gateway_cpu_per_publish_vs_before",
    ),
    "99th percentile, ms": ("publish_p99_vs_before", "gateway_publish_p99_vs_before"),
}
_BUILDS: Final = {"before": OTHERS, "now": OURS}
_SERVICES: Final = ("node", "gateway")


def plot(figures: Figures) -> str:
    """Return the picture."""
    with drawn(len(_PANELS)) as (axes, picture):
        for panel, (title, names) in zip(axes, _PANELS.items(), strict=True):
            _draw(panel, title, [figures["compared"][name] for name in names])
        return picture()


def _draw(axes: Axes, title: str, rows: list[dict[str, float]]) -> None:
    labels = [f"{service}, {build}" for service in _SERVICES for build in _BUILDS]
    values = [row[build] for row in rows for build in _BUILDS]
    bars = axes.barh(labels, values, color=[*_BUILDS.values()] * len(rows), height=0.62)
    axes.bar_label(bars, [f"{value:,.0f}" for value in values], padding=4, color=INK)
    bare(axes, title)
