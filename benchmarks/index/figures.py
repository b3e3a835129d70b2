"""The content of build/bench/index.json: figures by name, and the rows that they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from benchmarks.figures import rounded
from benchmarks.index.bench import Result
from benchmarks.index.following import Followed
from benchmarks.index.job import Cost, Measured

TITLES: Final = {
    "floor": "fetch and parse only",
    "unsigned": "ours, unsigned, SQLite",
    "signed_sqlite": "ours, signed, SQLite",
    "signed_postgres": "ours, signed, PostgreSQL",
    "proof_floor": "fetch what proves only",
    "proved_sqlite": "ours, proved, SQLite",
    "proved_postgres": "ours, proved, PostgreSQL",
    "tutorial": "the tutorial's way, SQLite",
}
DATABASE_TITLES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
WAY_TITLES: Final = {"websocket": "WebSocket", "poll": "poll alone"}

ROWS: Final = tuple(TITLES)
"""In the order in which a round measures them."""

DATABASES: Final = tuple(DATABASE_TITLES)
SIGNED: Final = tuple(f"signed_{database}" for database in DATABASES)
PROVED: Final = tuple(f"proved_{database}" for database in DATABASES)
WAYS: Final = tuple(WAY_TITLES)


def row_figures(results: Sequence[Result]) -> dict[str, Any]:
    """Return the figures of a row: of its fastest round, and the most memory of any."""
    best = max(results, key=lambda result: result.measured.total.events_per_second)
    total = best.measured.total
    return {
        "events_per_s": rounded(total.events_per_second),
        "cpu_us_per_event": rounded(total.cpu_microseconds_per_event),
        "server_cpu_us_per_event": rounded(best.server_cpu_seconds / total.events * 1e6),
        "peak_memory_mib": rounded(max(each.measured.peak_mebibytes for each in results)),
        "rounds_events_per_s": [rounded(each.measured.total.events_per_second) for each in results],
    }


def following_figures(followed: Followed) -> dict[str, Any]:
    """Return the figures of one way to follow."""
    latency = {f"{name}_ms": rounded(value) for name, value in asdict(followed.latency).items()}
    return latency | {
        "blocks": followed.blocks,
        "retries": followed.retries,
        "reorg64_s": rounded(followed.reorg_seconds),
        "reorg64_envelopes": followed.retracted,
    }


def flat_figures(measured: Measured) -> dict[str, Any]:
    """Return what an event costs at the beginning and at the end of a long chain."""
    return {
        "events": measured.total.events,
        "events_per_s": rounded(measured.total.events_per_second),
        "peak_memory_mib": rounded(measured.peak_mebibytes),
        "first": _cost_figures(measured.first),
        "last": _cost_figures(measured.last),
    }


def index_figures(
    rows: Mapping[str, Mapping[str, Any]],
    following: Mapping[str, Mapping[str, Mapping[str, Any]]],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Return everything: the figures that have a target by name, the worse of both databases."""
    speeds = {row: rows[row]["events_per_s"] for row in ROWS}
    by_websocket = [following[database]["websocket"] for database in DATABASES]
    return {
        **{f"{row}_events_per_s": speed for row, speed in speeds.items()},
        "peak_memory_mib": max(rows[row]["peak_memory_mib"] for row in (*SIGNED, *PROVED)),
        "follow_p99_ms": max(each["p99_ms"] for each in by_websocket),
        "reorg64_s": max(each["reorg64_s"] for each in by_websocket),
        "ratios": {
            f"{row}_to_{base}": rounded(speeds[row] / speeds[base])
            for base in ("floor", "tutorial")
            for row in SIGNED
        }
        | {
            f"{proved}_to_{signed}": rounded(speeds[proved] / speeds[signed])
            for proved, signed in zip(PROVED, SIGNED, strict=True)
        }
        | {f"{row}_to_proof_floor": rounded(speeds[row] / speeds["proof_floor"]) for row in PROVED},
        "rows": dict(rows),
        "following": dict(following),
        **about,
    }


def _cost_figures(cost: Cost) -> dict[str, Any]:
    return {
        "events": cost.events,
        "events_per_s": rounded(cost.events_per_second),
        "cpu_us_per_event": rounded(cost.cpu_microseconds_per_event),
    }
