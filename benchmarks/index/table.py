"""The figures for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.figures import Figures
from benchmarks.index.figures import (
    DATABASE_TITLES,
    DATABASES,
    ROWS,
    TITLES,
    WAY_TITLES,
    WAYS,
)
from benchmarks.index.targets import targets

_ROW: Final = "{:<28}{:>10}{:>10}{:>12}{:>13}{:>12}{:>12}"
_FOLLOWING: Final = "{:<28}{:>10}{:>10}{:>10}{:>24}"
_FLAT: Final = "{:<28}{:>10}{:>13}"
_TARGET: Final = "{:<53}{:>15}{:>12}  {}"


def lines(figures: Figures) -> Iterator[str]:
    """Yield the lines of the table, none of them over 100 columns."""
    yield _ROW.format(
        "catching up", "events/s", "of floor", "× tutorial", "CPU µs/event", "server µs", "peak MiB"
    )
    for row in ROWS:
        yield _ROW.format(TITLES[row], *row_cells(figures, row))
    yield ""
    yield _FOLLOWING.format("following, ms", "p50", "p95", "p99", "reorg of 64 blocks, s")
    for database in DATABASES:
        for way in WAYS:
            title = f"{DATABASE_TITLES[database]}, {WAY_TITLES[way]}"
            yield _FOLLOWING.format(title, *following_cells(figures, database, way))
    if flat := figures["flat"]:
        yield ""
        yield _FLAT.format(f"of {flat['events']:,} events", "events/s", "CPU µs/event")
        for part in ("first", "last"):
            yield _FLAT.format(f"the {part} {flat[part]['events']:,}", *flat_cells(figures, part))
    yield ""
    for target in targets(figures):
        yield _TARGET.format(target.what, target.wanted, target.found, target.verdict)


def row_cells(figures: Figures, row: str) -> tuple[str, ...]:
    """Return events/s, share of the floor, multiple of the tutorial's way, CPU, memory."""
    found = figures["rows"][row]
    speed, server = found["events_per_s"], found["server_cpu_us_per_event"]
    return (
        f"{speed:,.0f}",
        f"{speed / figures['floor_events_per_s']:.0%}",
        f"{speed / figures['tutorial_events_per_s']:.1f}",
        f"{found['cpu_us_per_event']:.1f}",
        f"{server:.1f}" if row.endswith("postgres") else "",
        f"{found['peak_memory_mib']:.0f}",
    )


def following_cells(figures: Figures, database: str, way: str) -> tuple[str, ...]:
    """Return the percentiles in milliseconds, and the reorg in seconds."""
    found = figures["following"][database][way]
    percentiles = (f"{found[name]:.1f}" for name in ("p50_ms", "p95_ms", "p99_ms"))
    return (*percentiles, f"{found['reorg64_s']:.2f}")


def flat_cells(figures: Figures, part: str) -> tuple[str, str]:
    """Return events/s and CPU of the first or the last events of a long chain."""
    found = figures["flat"][part]
    return f"{found['events_per_s']:,.0f}", f"{found['cpu_us_per_event']:.1f}"
