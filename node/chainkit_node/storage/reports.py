"""The misbehavior reports that a node hosts, in the order in which it stored them (XIP-49 §3.2.8).

A report's place is its ``server_time_ns``. One writer stores the reports, so a reader who asks for
the reports after a time misses none that is committed later. All functions see the one state of the
transaction that is handed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, delete, func, insert, select

from chainkit_node.storage import schema

FROM_NODE: Final = "node"
FROM_CLIENT: Final = "client"

LARGEST_TIME_NS: Final = 2**63 - 1
"""The largest time that the column holds; no report is stored after it."""

_AT_ONCE: Final = 100
"""Rows that one statement looks for or deletes: databases limit its parameters."""

_TABLE: Final = schema.misbehavior_reports
_BYTES: Final = func.length(_TABLE.c.report)


class StoredReport(NamedTuple):
    """A row of ``misbehavior_reports``; fields are its columns."""

    server_time_ns: int
    """Nanoseconds since 1970."""
    node_id: int
    """The accused."""
    type: int
    """1 to 8 (XIP-49 §3.2.7)."""
    origin: str
    """FROM_NODE or FROM_CLIENT."""
    weight: str
    """``proved`` or ``claimed``."""
    digest: bytes
    """32 bytes: the same for reports that say the same."""
    report: bytes
    """A serialized UnsignedMisbehaviorReport."""
    signature: bytes
    """65 bytes, of the node that hosts it."""

    @property
    def kind(self) -> ReportKind:
        """The accused, the type, the origin and the weight."""
        return ReportKind(self.node_id, self.type, self.origin, self.weight)


class ReportKind(NamedTuple):
    """Reports that are counted together; fields are those of StoredReport."""

    node_id: int
    type: int
    origin: str
    weight: str


class ReportCount(NamedTuple):
    """How many reports of one kind are stored."""

    rows: int
    bytes: int
    """Bytes of the serialized UnsignedMisbehaviorReports together."""


def insert_report(connection: Connection, report: StoredReport) -> None:
    """Insert a report; its time must be later than those of all stored reports.

    Raises StoreError, and undoes the transaction, where its digest or its time is stored already.
    """
    connection.execute(insert(_TABLE).values(report._asdict()))


def holds_report(connection: Connection, digest: bytes) -> bool:
    """Return whether a report with this digest is stored."""
    query = select(_TABLE.c.server_time_ns).where(_TABLE.c.digest == digest)
    return connection.execute(query).first() is not None


def next_report_time(connection: Connection, now_ns: int) -> int:
    """Return the time of the next report: the clock's, or the first after the last report's."""
    last = connection.execute(select(func.max(_TABLE.c.server_time_ns))).scalar_one()
    return now_ns if last is None else max(last + 1, now_ns)


def read_reports_after(
    connection: Connection,
    after_ns: int,
    limit: int,
    most_bytes: int,
    node_id: int | None = None,
) -> list[StoredReport]:
    """Return up to ``limit`` reports after a server time, in their order.

    The reports have ``most_bytes`` at most, or are a single larger report. With ``node_id`` only
    reports about that node.
    """
    # The lengths come first: a driver may hold all rows of an answer in memory.
    sizes = _after(select(_TABLE.c.server_time_ns, _BYTES), after_ns, node_id).limit(limit)
    last, total = None, 0
    for server_time_ns, size in connection.execute(sizes):
        total += size
        if last is not None and total > most_bytes:
            break
        last = server_time_ns
    if last is None:
        return []
    rows = _after(select(_TABLE), after_ns, node_id).where(_TABLE.c.server_time_ns <= last)
    return [StoredReport._make(row) for row in connection.execute(rows)]


def count_reports(connection: Connection) -> dict[ReportKind, ReportCount]:
    """Count the reports of each kind that there is."""
    columns = [_TABLE.c[name] for name in ReportKind._fields]
    query = select(*columns, func.count(), func.sum(_BYTES)).group_by(*columns)
    return {
        ReportKind._make(row[:-2]): ReportCount(int(row[-2]), int(row[-1]))
        for row in connection.execute(query)
    }


def oldest_reports(connection: Connection, kind: ReportKind) -> Iterator[tuple[int, int]]:
    """Yield the times of a kind's reports, the oldest first, and how many bytes each has.

    Bytes are counted as by ``count_reports``.
    """
    of_kind = [_TABLE.c[name] == value for name, value in kind._asdict().items()]
    after = -1
    while rows := connection.execute(
        select(_TABLE.c.server_time_ns, _BYTES)
        .where(*of_kind, _TABLE.c.server_time_ns > after)
        .order_by(_TABLE.c.server_time_ns)
        .limit(_AT_ONCE)
    ).all():
        yield from ((int(time), int(size)) for time, size in rows)
        after = rows[-1][0]


def delete_reports(connection: Connection, times: Sequence[int]) -> None:
    """Delete the reports of some server times."""
    for start in range(0, len(times), _AT_ONCE):
        some = times[start : start + _AT_ONCE]
        connection.execute(delete(_TABLE).where(_TABLE.c.server_time_ns.in_(some)))


def _after(query: Select[Any], after_ns: int, node_id: int | None) -> Select[Any]:
    after = _TABLE.c.server_time_ns > min(after_ns, LARGEST_TIME_NS)
    if node_id is not None:
        query = query.where(_TABLE.c.node_id == node_id)
    return query.where(after).order_by(_TABLE.c.server_time_ns)
