"""The outcome of a check for people, for scripts, and for Prometheus."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from chainkit.terminal.tables import columns, section
from chainkit.text.counting import counted
from chainkit.text.json_values import reference_as_json
from chainkit.text.printable import printable
from chainkit.types import NANOSECONDS_PER_SECOND, BlockReference
from chainkit_client.checking.check import NodeCheck
from chainkit_client.checking.findings import Finding

_MOST_FINDINGS: Final = 20
"""The most findings of a node in the text for people."""
_MOST_TEXT: Final = 400
"""The most characters of a finding, which may contain a stranger's text."""


def check_as_text(checks: Sequence[NodeCheck], block: BlockReference, taken_ns: int) -> str:
    """Return a check as lines of at most 100 characters; ``taken_ns`` since 1970."""
    seconds = taken_ns // NANOSECONDS_PER_SECOND
    when = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    faulty = sum(bool(each.findings) for each in checks)
    summary = counted(len(checks), "node") + (f", {faulty} with findings" if faulty else "")
    lines = [
        *section("checked", [f"{summary}, {when}"]),
        *section("registry", [f"block {block}"]),
        "",
        *columns(
            ("node", "asked", "median", "slowest", "envelopes", "findings", "answered"),
            map(_row, checks),
        ),
        "",
        *section("findings", list(_findings(checks)) or ["none"]),
    ]
    return "\n".join(line.rstrip() for line in lines)


def check_as_json(
    checks: Sequence[NodeCheck], block: BlockReference, taken_ns: int
) -> dict[str, Any]:
    """Return a check for scripts."""
    return {
        "block": reference_as_json(block),
        "nodes": [_node_as_json(each) for each in checks],
        "taken_ns": taken_ns,
    }


def check_as_metrics(checks: Sequence[NodeCheck], taken_ns: int) -> bytes:
    """Return a check in Prometheus' text format, for its node exporter's textfile collector."""
    registry = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"chainkit_check_{name}", text, ("node", *labels), registry=registry)

    answers = gauge("answers", "Answers of a node in the last check.")
    slowest = gauge("slowest_answer_seconds", "The slowest answer of a node.")
    complete = gauge("complete", "Whether a node answered everything, 1 or 0.")
    found = gauge("findings", "Findings by type and worth.", "type", "weight")
    for each in checks:
        answers.labels(each.node_id).set(len(each.seconds))
        slowest.labels(each.node_id).set(max(each.seconds, default=0.0))
        complete.labels(each.node_id).set(each.error is None)
        for finding in each.findings:
            found.labels(each.node_id, _type(finding), finding.weight or "seen").inc()
    last = Gauge("chainkit_check_time_seconds", "When it was, since 1970.", registry=registry)
    last.set(taken_ns // NANOSECONDS_PER_SECOND)
    return generate_latest(registry)


def _row(check: NodeCheck) -> tuple[str, ...]:
    return (
        str(check.node_id),
        str(len(check.seconds)),
        f"{statistics.median(check.seconds) * 1000:.0f} ms" if check.seconds else "-",
        f"{max(check.seconds) * 1000:.0f} ms" if check.seconds else "-",
        str(check.envelopes),
        str(len(check.findings)),
        printable(check.error or "everything")[:_MOST_TEXT],
    )


def _findings(checks: Sequence[NodeCheck]) -> Iterator[str]:
    for check in checks:
        for each in check.findings[:_MOST_FINDINGS]:
            worth = each.weight or "seen"
            text = printable(each.text)[:_MOST_TEXT]
            yield f"node {each.node_id}: {_type(each)}, {worth}: {text}"
        if (more := len(check.findings) - _MOST_FINDINGS) > 0:
            yield f"node {check.node_id}: and {more} more, all of which --json shows"


def _type(finding: Finding) -> str:
    return "OTHER" if finding.misbehavior is None else finding.misbehavior.name


def _node_as_json(check: NodeCheck) -> dict[str, Any]:
    return {
        "answers": len(check.seconds),
        "envelopes": check.envelopes,
        "error": check.error,
        "findings": [
            {
                "text": each.text,
                "type": _type(each),
                "weight": each.weight or "seen",
            }
            for each in check.findings
        ],
        "highest": {str(each): highest for each, highest in sorted(check.highest.items())},
        "median_seconds": statistics.median(check.seconds) if check.seconds else None,
        "node_id": check.node_id,
        "slowest_seconds": max(check.seconds, default=None),
    }
