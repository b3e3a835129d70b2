"""Plots of a chain's costs, as matplotlib figures; draw and save them in the report's style.

Each function takes rows of the tables (schema.TABLES). Floats appear here alone: for pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from chainkit_jobs.cost.transactions import DAY, HOUR
from chainkit_jobs.cost.variants import RULES

Rows = Sequence[Mapping[str, Any]]

_WIDE: Final = (8.6, 2.5)
_SQUARE: Final = (4.2, 3.3)
_BLUE: Final = "#0072b2"
_ORANGE: Final = "#e69f00"
_DARK: Final = "#334155"
_LIGHT: Final = "#b9c2ce"
# Distinguished by darkness, pattern and shape, not by hue alone: in print, and for every eye.
_WASTED: Final[dict[str, Any]] = {"color": _ORANGE, "hatch": "////", "edgecolor": "#7a3e00"}
_RULES: Final = dict(zip(RULES, (_LIGHT, _BLUE), strict=True))
_POINTS: Final = {"GroupMessages": (_BLUE, "o"), "IdentityUpdates": (_ORANGE, "^")}
_OTHER: Final = (_DARK, "s")
_GWEI: Final = 10**9
_WIDTHS: Final = {"hour": HOUR / DAY, "day": 1.0}
"""Width of a bar in days, which are matplotlib's time."""


def gas_over_time(rows: Rows, key: str) -> Figure:
    """Draw the gas per ``hour`` or ``day``, and the part that failed transactions wasted."""
    figure, axes = _axes(_WIDE)
    width = _WIDTHS[key]
    times = [_days(row[key]) for row in rows]
    wasted = [row["failed_gas"] for row in rows]
    kept = [row["gas"] - row["failed_gas"] for row in rows]
    axes.bar(
        times, kept, width * 0.9, color=_BLUE, align="edge", label="gas of successful transactions"
    )
    failed = "gas of failed transactions"
    axes.bar(times, wasted, width * 0.9, kept, align="edge", label=failed, linewidth=0, **_WASTED)
    # A bar without height extends the plot to its place.
    axes.set_ylim(0, max([1, *(row["gas"] for row in rows)]) * 1.06)
    axes.set_ylabel(f"gas per {key}")
    _time_axis(axes, rows, key)
    _legend(axes)
    return figure


def price_over_time(rows: Rows, key: str) -> Figure:
    """Draw the price of gas per ``hour`` or ``day``, weighted by gas, in gwei."""
    figure, axes = _axes(_WIDE)
    _draw_levels(axes, rows, key, "price", 1 / _GWEI)
    axes.set_ylabel("price of gas, gwei")
    return figure


def limit_over_time(rows: Rows, key: str) -> Figure:
    """Draw our contracts' share of the blocks' gas limit per ``hour`` or ``day``, in percent."""
    figure, axes = _axes(_WIDE)
    _draw_levels(axes, rows, key, "limit_share", 100)
    axes.set_ylabel("% of the blocks' gas limit")
    return figure


def _draw_levels(axes: Axes, rows: Rows, key: str, column: str, scale: float) -> None:
    """Draw a column as a level over each hour or day; nothing is known between them."""
    known = [row for row in rows if row[column] is not None]
    begins = [_days(row[key]) for row in known]
    ends = [begin + _WIDTHS[key] for begin in begins]
    levels = [float(row[column]) * scale for row in known]
    axes.hlines(levels, begins, ends, color=_BLUE, lw=2.2, capstyle="projecting")
    axes.set_ylim(0, max(levels, default=0) * 1.06 or 1)
    _time_axis(axes, rows, key)


def size_against_gas(samples: Rows) -> Figure:
    """Draw the gas of single messages over their payload sizes, both logarithmic."""
    figure, axes = _axes(_SQUARE)
    for contract in sorted({row["contract"] for row in samples}):
        own = [row for row in samples if row["contract"] == contract]
        sizes = [max(row["payload_bytes"], 1) for row in own]
        color, marker = _POINTS.get(contract, _OTHER)
        gas = [row["gas"] for row in own]
        axes.scatter(sizes, gas, 12, color, marker=marker, alpha=0.6, lw=0, label=contract)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(_thousands())
    axes.yaxis.set_major_formatter(_thousands())
    axes.yaxis.set_minor_locator(LogLocator(10, (2, 5)))
    axes.yaxis.set_minor_formatter(_thousands())
    axes.set_xlabel("payload size, bytes")
    axes.set_ylabel("gas of the transaction")
    _legend(axes)
    return figure


def variants_beside_paid(variants: Rows) -> Figure:
    """Draw each variant's gas as a multiple of what was paid, by hardfork; 1 is what was paid.

    ``variants`` are the totals of the summary.
    """
    figure, axes = _axes(_SQUARE)
    names = list(dict.fromkeys(row["variant"] for row in variants))
    for index, (rules, color) in enumerate(_RULES.items()):
        ratios = {row["variant"]: row["gas_ratio"] for row in variants if row["rules"] == rules}
        places = [place + (index - 0.5) * 0.4 for place in range(len(names))]
        widths = [float(ratios.get(name) or 0) for name in names]
        axes.barh(places, widths, 0.36, color=color, label=rules)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axvline(1, color=_DARK, lw=1, ls="--", label="as paid")
    axes.set_xlabel("gas, as a multiple of what was paid")
    _legend(axes)
    return figure


def _axes(size: tuple[float, float]) -> tuple[Figure, Axes]:
    # Without pyplot, which would look for a display and keep every figure.
    figure = Figure(figsize=size, layout="constrained")
    figure.patch.set_alpha(0)
    return figure, figure.subplots()


def _days(second: int) -> float:
    """Return matplotlib's time: days since 1970."""
    return second / DAY


def _time_axis(axes: Axes, rows: Rows, key: str) -> None:
    times = [_days(row[key]) for row in rows] or [0.0]
    first, last = min(times), max(times) + _WIDTHS[key]
    axes.set_xlim(first - (last - first) / 50, last + (last - first) / 50)
    locator = AutoDateLocator(maxticks=8, tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    dates = ConciseDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(dates)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("time, UTC")
    grouped = FuncFormatter(lambda value, _: f"{value:,.10g}".replace(",", "\u202f"))
    axes.yaxis.set_major_formatter(grouped)


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, fontsize=8)


def _thousands() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{value:,.0f}".replace(",", "\u202f"))
