"""The content of build/bench/audit.json: figures by name, and the rows that they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.audit.commands import Measured
from benchmarks.audit.faults.plan import Finding
from benchmarks.figures import rounded

TITLES: Final = {
    "scan": "read the Parquet files only",
    "duckdb": "the joins alone, DuckDB",
    "polars": "the joins alone, Polars",
    "unsigned": "reconcile without signatures",
    "unsigned_again": "… again, with nothing new",
    "recover": "recover keys only, coincurve",
    "signed": "reconcile with all signatures",
    "signed_again": "… again, with nothing new",
    "verified": "verify-chain, transactions",
}
ROWS: Final = tuple(TITLES)

_SHOWN: Final = 20
"""Findings too few or too many that a report repeats."""


def row_figures(measured: Measured, rows: int | None = None) -> dict[str, Any]:
    """Return the figures of a row; without ``rows``, by the process' own count and clock."""
    said, run = measured.said, measured.run
    seconds = run.seconds
    counts = {}
    if rows is None:
        rows, seconds = int(said["rows"]), said["seconds"]
        counts = {"counts": said["counts"]}
    return {
        "rows": rows,
        "seconds": rounded(seconds),
        "rows_per_s": rounded(rows / seconds),
        "cpu_seconds": rounded(run.cpu_seconds),
        "peak_memory_mib": rounded(run.peak_mebibytes),
        **counts,
    }


def median_row(rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the round that took the median time, and the seconds of all of them."""
    ordered = sorted(rounds, key=lambda row: row["seconds"])
    return dict(ordered[len(ordered) // 2]) | {"rounds_s": [row["seconds"] for row in rounds]}


def accuracy_figures(expected: Counter[Finding], found: Counter[Finding]) -> dict[str, Any]:
    """Return what share of the injected was found, and what was found besides."""
    missed, invented = expected - found, found - expected
    total = expected.total()
    return {
        "injected": total,
        "found": found.total(),
        "recall": 1.0 if not missed else rounded(1 - missed.total() / total),
        "false_positives": invented.total(),
        "missed": [list(each) for each in sorted(missed, key=str)[:_SHOWN]],
        "invented": [list(each) for each in sorted(invented, key=str)[:_SHOWN]],
    }


def linear_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a row costs in exports of two sizes, and the second over the first."""
    small, large = rows
    return {
        "small": dict(small),
        "large": dict(large),
        "cost_ratio": rounded(small["rows_per_s"] / large["rows_per_s"]),
    }


def audit_figures(
    rows: Mapping[str, Mapping[str, Any]],
    accuracy: Mapping[str, Mapping[str, Any]],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Return everything: the figures that have a target by name, of both audits the worse."""
    speeds = {row: rows[row]["rows_per_s"] for row in ROWS}
    seconds = {row: rows[row]["seconds"] for row in ROWS}
    sizes = about["sizes"]
    signatures = rows["signed"]["rows"] - sizes["rows"]
    signatures_per_s = rounded(signatures / seconds["signed"])
    verified = rows["verified"]
    return {
        "rows_per_s_unsigned": speeds["unsigned"],
        "signatures_per_s": signatures_per_s,
        "recover_floor_per_s": speeds["recover"],
        "signatures_to_floor": rounded(signatures_per_s / speeds["recover"]),
        "duckdb_rows_per_s": speeds["duckdb"],
        "polars_rows_per_s": speeds["polars"],
        "scan_rows_per_s": speeds["scan"],
        "verified_transactions_per_s": verified["rows_per_s"],
        "verified_blocks_per_s": rounded(verified["blocks"] / verified["seconds"]),
        "recall": min(each["recall"] for each in accuracy.values()),
        "false_positives": max(each["false_positives"] for each in accuracy.values()),
        "rerun_ratio": rounded(seconds["signed_again"] / seconds["signed"]),
        "rows": dict(rows),
        "accuracy": dict(accuracy),
        **about,
    }
