"""Figures of two builds in the report: the ratio under its name, and what it is formed from.

``publish_vs_before`` is this build's publishes a second for each one of the former build.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from benchmarks.figures import Figures, rounded
from benchmarks.harness import Table
from benchmarks.node.beside import Beside, Idle
from benchmarks.node.rounds import Rounds
from benchmarks.target import Target, at_least, at_most, below


class _Row(NamedTuple):
    title: str
    part: str
    """The name of a field of ``Beside``."""
    figure: str


ROWS: Final = {
    "publish_vs_before": _Row("publishes a second, 100 callers", "publishing", "per_s"),
    "publish_p99_vs_before": _Row("of these, p99 in ms", "publishing", "p99_ms"),
    "node_cpu_per_publish_vs_before": _Row(
        "processor time of the node for a publish, µs", "publishing", "cpu_us"
    ),
    "publish_to_stream_p50_vs_before": _Row(
        "publish to stream at 500/s, 1,000 streams, p50 in ms", "streaming", "p50_ms"
    ),
    "publish_to_stream_p99_vs_before": _Row(
        "publish to stream at 500/s, 1,000 streams, p99 in ms", "streaming", "p99_ms"
    ),
    "reader_vs_before": _Row("stored envelopes to one reader, a second", "reading", "per_s"),
    "gateway_publish_vs_before": _Row(
        "publishes a second through a gateway, 100 callers", "gateways", "per_s"
    ),
    "gateway_publish_p99_vs_before": _Row("of those, p99 in ms", "gateways", "p99_ms"),
    "gateway_cpu_per_publish_vs_before": _Row(
        "processor time of the gateway for a publish, µs", "gateways", "cpu_us"
    ),
    "idle_vs_before": _Row("the node without work, % of a core", "alone", "shares"),
    "idle_1000_streams_vs_before": _Row(
        "with 1,000 quiet streams, % of a core", "with_streams", "shares"
    ),
    "memory_after_start_vs_before": _Row(
        "memory of the node after its start, MiB", "alone", "mebibytes"
    ),
    "anonymous_memory_vs_before": _Row(
        "of this memory, what is no file's, MiB", "alone", "anonymous_mebibytes"
    ),
    "memory_1000_streams_vs_before": _Row(
        "memory with 1,000 quiet streams, MiB", "with_streams", "mebibytes"
    ),
}


def compared(found: Beside) -> dict[str, Any]:
    """Return all ratios by their names, and under ``compared`` what each is formed from."""
    parts = {name: _compared(found, row) for name, row in ROWS.items()}
    return {name: part.pop("ratio") for name, part in parts.items()} | {"compared": parts}


def _compared(found: Beside, row: _Row) -> dict[str, float]:
    part: Rounds | Idle = getattr(found, row.part)
    if isinstance(part, Idle):
        now, before = getattr(part, row.figure)
        ratios = [now / before]
    else:
        now, before = part.middle(row.figure)
        ratios = part.ratios(row.figure)
    figures = {
        "now": now,
        "before": before,
        "ratio": ratios[len(ratios) // 2],
        "least": ratios[0],
        "greatest": ratios[-1],
    }
    return {name: rounded(figure) for name, figure in figures.items()}


def targets(figures: Figures) -> Iterator[Target]:
    """Judge this build by the former one."""
    is_enough = not figures["is_quick"]
    for name, bound in (
        ("publish_vs_before", 2),
        ("reader_vs_before", 1),
        ("gateway_publish_vs_before", 1.6),
    ):
        yield at_least(_what(name), bound, figures[name], " ×", is_enough)
    for name, bound in (
        ("node_cpu_per_publish_vs_before", 0.5),
        ("publish_p99_vs_before", 0.6),
        ("publish_to_stream_p99_vs_before", 1),
        ("memory_after_start_vs_before", 1.3),
        ("gateway_cpu_per_publish_vs_before", 0.6),
        ("gateway_publish_p99_vs_before", 0.72),
    ):
        yield at_most(_what(name), bound, figures[name], " ×", is_enough)
    idle = figures["compared"]["idle_1000_streams_vs_before"]["now"]
    yield below("the node with 1,000 quiet streams", 3, idle, "% of a core", is_enough)


def table(figures: Figures) -> Table:
    """Return the table of both builds."""
    head = ("figure", "before", "now", "ratio", "of the rounds")
    return Table(head, [_line(name, row, figures) for name, row in ROWS.items()])


def _line(name: str, row: _Row, figures: Figures) -> list[str]:
    part = figures["compared"][name]
    values = [f"{part[each]:,}" for each in ("before", "now")]
    rounds = f"{part['least']} to {part['greatest']}" if part["least"] < part["greatest"] else ""
    return [row.title, *values, f"{figures[name]}", rounds]


def _what(name: str) -> str:
    return name.removesuffix("_vs_before").replace("_", " ") + ": of the former build's"
