"""The figures for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.audit.figures import ROWS, TITLES
from benchmarks.audit.targets import targets
from benchmarks.figures import Figures

HEAD: Final = ("rows/s", "seconds", "CPU s", "peak MiB")
_ROW: Final = "{:<32}{:>14}{:>12}{:>12}{:>12}"
_TARGET: Final = "{:<50}{:>19}{:>16}  {}"


def lines(figures: Figures) -> Iterator[str]:
    """Yield the lines of the table, none of them over 100 columns."""
    yield _ROW.format("", *HEAD)
    for row in ROWS:
        yield _ROW.format(TITLES[row], *row_cells(figures["rows"][row]))
    yield ""
    for name, found in figures["accuracy"].items():
        yield (
            f"{TITLES[name]}: {found['injected']:,} injected, {found['found']:,} found, recall "
            f"{found['recall']:.4%}, {found['false_positives']} not injected"
        )
    if linear := figures["linear"]:
        yield ""
        for size in ("small", "large"):
            yield _ROW.format(f"of {linear[size]['rows']:,} rows", *row_cells(linear[size]))
    yield ""
    for target in targets(figures):
        yield _TARGET.format(target.what, target.wanted, target.found, target.verdict)


def row_cells(row: Figures) -> tuple[str, ...]:
    """Return rows/s, seconds, processor seconds and peak memory."""
    return (
        f"{row['rows_per_s']:,.0f}",
        f"{row['seconds']:.1f}",
        f"{row['cpu_seconds']:.1f}",
        f"{row['peak_memory_mib']:,.0f}",
    )
