"""Plots of what a chain cost, as matplotlib figures; draw and save them in the report's style.

Each takes rows as the tables hold them (schema.TABLES). Floats appear here alone: a pixel is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from chainkit_jobs.cost.transactions import DAY, HOUR
from chainkit_jobs.cost.variants import RULES

Rows = Sequence[Mapping[str, Any]]

_WIDE: Final = (8.6, 2.7)
_SQUARE: Final = (4.2, 3.1)
_GAS: Final = "#2563eb"
_WASTED: Final = "#dc2626"
_PRICE: Final = "#d97706"
_RULES: Final = dict(zip(RULES, ("#64748b", "#2563eb"), strict=True))
_POINTS: Final = {"GroupMessages": "#2563eb", "IdentityUpdates": "#d97706"}
_OTHER: Final = "#64748b"
_GWEI: Final = 10**9


def gas_over_time(rows: Rows, key: str) -> Figure:
    """Draw the gas per ``hour`` or ``day``, and of it what failed transactions wasted."""
    figure, axes = _axes(_WIDE)
    width = {"hour": HOUR, "day": DAY}[key] / DAY
    times = [_days(row[key]) for row in rows]
    wasted = [row["failed_gas"] for row in rows]
    kept = [row["gas"] - row["failed_gas"] for row in rows]
    axes.bar(times, kept, width * 0.9, color=_GAS, align="edge", label="gas")
    axes.bar(times, wasted, width * 0.9, kept, color=_WASTED, align="edge", label="failed")
    axes.set_ylabel(f"gas per {key}")
    _time_axis(axes)
    _legend(axes)
    return figure


def price_over_time(rows: Rows, key: str) -> Figure:
    """Draw the price of gas per ``hour`` or ``day``, weighted by gas, in gwei."""
    figure, axes = _axes(_WIDE)
    priced = [row for row in rows if row["price"] is not None]
    times = [_days(row[key]) for row in priced]
    prices = [float(row["price"]) / _GWEI for row in priced]
    axes.step(times, prices, where="post", color=_PRICE, marker=".", markersize=4)
    axes.set_ylabel("gwei per gas")
    axes.set_ylim(bottom=0)
    _time_axis(axes)
    return figure


def limit_over_time(rows: Rows, key: str) -> Figure:
    """Draw our contracts' share of the blocks' gas limit per ``hour`` or ``day``, in percent."""
    figure, axes = _axes(_WIDE)
    known = [row for row in rows if row["limit_share"] is not None]
    times = [_days(row[key]) for row in known]
    axes.step(times, [float(row["limit_share"]) * 100 for row in known], where="post", color=_GAS)
    axes.set_ylabel("% of the gas limit")
    axes.set_ylim(bottom=0)
    _time_axis(axes)
    return figure


def size_against_gas(samples: Rows) -> Figure:
    """Draw the gas of single messages over their payload sizes, both logarithmic."""
    figure, axes = _axes(_SQUARE)
    for contract in sorted({row["contract"] for row in samples}):
        own = [row for row in samples if row["contract"] == contract]
        sizes = [max(row["payload_bytes"], 1) for row in own]
        color = _POINTS.get(contract, _OTHER)
        axes.scatter(sizes, [row["gas"] for row in own], 11, color, alpha=0.5, lw=0, label=contract)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(_thousands())
    axes.yaxis.set_major_formatter(_thousands())
    axes.set_xlabel("payload size in bytes")
    axes.set_ylabel("gas per transaction")
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
    axes.axvline(1, color=_WASTED, lw=0.8)
    axes.set_xlabel("gas, as a multiple of what was paid")
    _legend(axes)
    return figure


def _axes(size: tuple[float, float]) -> tuple[Figure, Axes]:
    # No pyplot: it would look for a display and keep every figure.
    figure = Figure(figsize=size, layout="constrained")
    figure.patch.set_alpha(0)
    return figure, figure.subplots()


def _days(second: int) -> float:
    """Return matplotlib's time: days since 1970."""
    return second / DAY


def _time_axis(axes: Axes) -> None:
    locator = AutoDateLocator(maxticks=8, tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    dates = ConciseDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(dates)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, fontsize=8)


def _thousands() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{value:,.0f}".replace(",", "\u2009"))
