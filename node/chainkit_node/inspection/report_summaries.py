"""The hosted reports in brief; a report may have 8 MiB, so large ones are not looked into."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, case, func, null, select

from chainkit.errors import MalformedData
from chainkit.misbehavior.report import parse_unsigned
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.originated_envelope import originator_digest, parse_originated
from chainkit.text.hexadecimal import hex0x
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_node.inspection.snapshot import (
    MOST_REPORTS,
    MOST_ROWS,
    Evidence,
    ReportSummary,
    ReportTally,
)
from chainkit_node.storage import schema

_MOST_BYTES: Final = 256 << 10
"""Length of a report that is still taken apart."""
_MOST_EVIDENCE: Final = 4

_TABLE: Final = schema.misbehavior_reports
_KIND: Final = (_TABLE.c.node_id, _TABLE.c.type, _TABLE.c.weight, _TABLE.c.origin)


def read_tallies(connection: Connection) -> tuple[ReportTally, ...]:
    """Count the hosted reports by accused, type, weight and origin; the first MOST_ROWS kinds."""
    query = select(*_KIND, func.count()).group_by(*_KIND).order_by(*_KIND).limit(MOST_ROWS)
    return tuple(
        ReportTally(row[0], Misbehavior(row[1]).name, row[2], row[3], int(row[4]))
        for row in connection.execute(query)
    )


def count_against(connection: Connection, node_id: int | None) -> dict[str, int]:
    """Return how many reports accuse a node, by weight."""
    if node_id is None:
        return {}
    query = select(_TABLE.c.weight, func.count()).where(_TABLE.c.node_id == node_id)
    return {row[0]: int(row[1]) for row in connection.execute(query.group_by(_TABLE.c.weight))}


def read_newest_reports(connection: Connection) -> tuple[ReportSummary, ...]:
    """Return the newest MOST_REPORTS with their evidence, the newest first."""
    size = func.length(_TABLE.c.report)
    # A larger report stays in the database: the driver would hold all reports in memory.
    report = case((size <= _MOST_BYTES, _TABLE.c.report), else_=null())
    query = select(_TABLE.c.server_time_ns, *_KIND, size, report)
    newest = query.order_by(_TABLE.c.server_time_ns.desc()).limit(MOST_REPORTS)
    return _counted([_summary(*row) for row in connection.execute(newest)])


def _counted(reports: Sequence[ReportSummary]) -> tuple[ReportSummary, ...]:
    """Return one report of those that say the same, the last one, with their number."""
    found: dict[ReportSummary, tuple[ReportSummary, int]] = {}
    for each in reports:
        # A report that was not looked into may say anything.
        is_known = each.evidence or each.response_seconds is not None
        kind = replace(each, server_time_ns=0, bytes=0, response_seconds=None) if is_known else each
        last, times = found.get(kind, (each, 0))
        found[kind] = last, times + 1
    return tuple(replace(last, times=times) for last, times in found.values())


def _summary(
    server_time_ns: int,
    node_id: int,
    type_number: int,
    weight: str,
    origin: str,
    size: int,
    report: bytes | None,
) -> ReportSummary:
    evidence: tuple[Evidence, ...] = ()
    seconds = None
    if report is not None:
        parsed = parse_unsigned(bytes(report))
        evidence = tuple(_evidence(each) for each in parsed.envelopes[:_MOST_EVIDENCE])
        if parsed.response_time_ns is not None:
            seconds = parsed.response_time_ns / NANOSECONDS_PER_SECOND
    name = Misbehavior(type_number).name
    return ReportSummary(
        server_time_ns, node_id, name, weight, origin, evidence, seconds, int(size)
    )


def _evidence(data: bytes) -> Evidence:
    with suppress(MalformedData):
        served = parse_originator_envelope(data)
        digest = hex0x(served.transaction_hash)
        return Evidence(served.originator_id, served.sequence_id, digest)
    # An envelope without a proof of the chain is an originator's.
    parsed = parse_originated(data)
    digest = hex0x(originator_digest(parsed.unsigned_originator_envelope))
    return Evidence(parsed.envelope.originator_id, parsed.envelope.sequence_id, digest)
