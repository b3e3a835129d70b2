"""Plots as inline SVG: text stays text, and the same numbers give the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

COLORS: Final = {"GroupMessages": "#2563eb", "IdentityUpdates": "#d97706"}
_INK: Final = "#475569"
_GRID: Final = "#e2e8f0"
_EXPECTED: Final = "#cbd5e1"
_MATCHED: Final = "#059669"
_SERVED: Final = "#64748b"

_STYLE: Final[dict[str, Any]] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _GRID,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "svg.fonttype": "none",
}


def timeline_plot(timeline: Sequence[Mapping[str, Any]], step: int) -> str:
    """Draw the messages over the blocks, by contract; ``step`` blocks make a bar."""
    with _style("timeline"):
        figure, axes = _axes(8.6, 2.7)
        below: dict[int, int] = {}
        for contract, color in COLORS.items():
            rows = [row for row in timeline if row["contract"] == contract]
            blocks = [row["block"] for row in rows]
            messages = [row["messages"] for row in rows]
            bottoms = [below.get(block, 0) for block in blocks]
            middles = [block + (step - 1) / 2 for block in blocks]
            axes.bar(middles, messages, step * 0.9, bottoms, color=color, label=contract)
            below |= {b: n + m for b, n, m in zip(blocks, bottoms, messages, strict=True)}
        axes.set_xlabel("block")
        axes.set_ylabel("messages" if step == 1 else f"messages in {step} blocks")
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.xaxis.set_major_formatter(_thousands())
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        _legend(axes)
        return _svg(figure)


def cost_plot(sample: Sequence[Mapping[str, Any]]) -> str:
    """Draw the gas of single messages over their payload sizes, both logarithmic."""
    with _style("cost"):
        figure, axes = _axes(4.2, 3.1)
        for contract, color in COLORS.items():
            rows = [row for row in sample if row["contract"] == contract]
            sizes = [max(row["payload_size"], 1) for row in rows]
            axes.scatter(
                sizes, [row["gas"] for row in rows], 11, color, alpha=0.5, lw=0, label=contract
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(_thousands())
        axes.yaxis.set_major_formatter(_thousands())
        axes.yaxis.set_minor_formatter(_thousands())
        axes.yaxis.set_minor_locator(LogLocator(10, (2, 5)))
        axes.set_xlabel("payload size in bytes")
        axes.set_ylabel("gas per transaction")
        _legend(axes)
        return _svg(figure)


def nodes_plot(nodes: Sequence[Mapping[str, Any]]) -> str:
    """Draw, per compared node, what it had to serve, what it served, and what matched."""
    with _style("nodes"):
        figure, axes = _axes(4.2, 3.1)
        bars = (("expected", _EXPECTED), ("served", _SERVED), ("matched", _MATCHED))
        for index, (column, color) in enumerate(bars):
            places = [place + (index - 1) * 0.26 for place in range(len(nodes))]
            drawn = axes.bar(places, [n[column] for n in nodes], 0.23, color=color, label=column)
            axes.bar_label(drawn, fontsize=7, color=_INK, padding=1)
        axes.set_xticks(range(len(nodes)), [f"node {node['node_id']}" for node in nodes])
        axes.grid(axis="x", visible=False)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(_thousands())
        axes.set_ylabel("envelopes")
        axes.margins(y=0.1)
        _legend(axes)
        return _svg(figure)


def _style(name: str) -> Any:
    # The salt makes the ids in an SVG the same on every run, and others in each plot.
    style: Any = {**_STYLE, "svg.hashsalt": f"chainkit-{name}"}
    return matplotlib.rc_context(style)


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    # No pyplot: it would look for a display and keep every figure.
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0)
    return figure, figure.subplots()


def _legend(axes: Axes) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, fontsize=8)


def _thousands() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{value:,.0f}".replace(",", "\u2009"))


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    # Inside HTML, an SVG needs neither prolog nor name spaces, and its size is the page's.
    svg = re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)
    return re.sub(r'(<svg[^>]*?) width="[^"]*"( height="[^"]*")?', r"\1", svg, count=1)
