"""Draws docs/gas.svg: the same rows give the same bytes."""

from __future__ import annotations

import io
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from tools.gas_study.cases import HARDFORKS, SIZES
from tools.gas_study.figures import Figures

_LINES: Final = (
    ("stored-message", "message in storage (SSTORE)", "#b91c1c", "-"),
    ("stored-code", "message as code of contracts", "#d97706", "-"),
    ("complete-event", "XIP-49: complete message, event", "#64748b", "--"),
    ("add-message", "addMessage", "#2563eb", "-"),
    ("hash-event", "XIP-49: hash, event", "#94a3b8", ":"),
)
"""Case, label, colour and line style, the dearest first."""

_TICKS: Final = (100, 512, 2_000, 10_000, 100_000)
_INK: Final = "#475569"
_GRID: Final = "#e2e8f0"

_STYLE: Final[Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _GRID,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "chainkit-gas",
}


def plot(figures: Figures) -> str:
    """Return the picture, by hardfork, over the size of the message.

    Above the gas, logarithmic; below by how much ours differs from XIP-49's dearest variant.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.2, 5.4), layout="constrained")
        upper, lower = figure.subplots(
            2, len(HARDFORKS), sharex=True, sharey="row", height_ratios=(3, 1)
        )
        for index, hardfork in enumerate(HARDFORKS):
            _draw(upper[index], figures, hardfork)
            _draw_difference(lower[index], figures, hardfork)
        upper[0].set_ylabel("gas per message")
        lower[0].set_ylabel("addMessage, beside\nmessage with event")
        handles, labels = upper[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8)
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _draw(axes: Axes, figures: Figures, hardfork: str) -> None:
    for case, label, color, style in _LINES:
        gas = [figures.message(case, size, hardfork).gas for size in SIZES]
        axes.plot(SIZES, gas, style, color=color, label=label, marker="o", markersize=3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(hardfork, fontsize=9)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _draw_difference(axes: Axes, figures: Figures, hardfork: str) -> None:
    ours, theirs = (
        [figures.message(case, size, hardfork).gas for size in SIZES]
        for case in ("add-message", "complete-event")
    )
    percent = [100 * (own / other - 1) for own, other in zip(ours, theirs, strict=True)]
    axes.axhline(0, color="#64748b", linestyle="--", linewidth=1)
    axes.plot(SIZES, percent, color="#2563eb", marker="o", markersize=3)
    axes.set_xlabel("size of the message in bytes")
    axes.set_xticks(_TICKS)
    axes.margins(x=0.06)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:+.0f} %" if value else "0 %")
    )
