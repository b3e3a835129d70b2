"""Counts the stored reports of each kind, and deletes the oldest where a bound is passed.

Theory of operation. Where a new report passes a bound, the oldest report of the kind that takes
most of the bound is deleted, until the bound holds; the new report counts already. So a flood
displaces itself: smaller kinds lose nothing. Within the bound for all nodes, the node about which
most is stored loses first. Proofs are never deleted: the first proofs about a node are as good as
more, and the new report is refused. A report that alone passes a bound is refused, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from sqlalchemy import Connection

from chainkit.misbehavior.evidence import Weight
from chainkit_node.reporting.bounds import ROW_BYTES, ReportBounds, Share
from chainkit_node.storage.reports import (
    ReportCount,
    ReportKind,
    delete_reports,
    oldest_reports,
)

_NONE = ReportCount(0, 0)


class ReportQuotas:
    """Counts of one writer's stored reports; to be read anew once a transaction was undone."""

    def __init__(self, bounds: ReportBounds, counts: Mapping[ReportKind, ReportCount]) -> None:
        """Take the bounds, and the counts of the stored reports."""
        self._bounds = bounds
        self._counts = dict(counts)

    def make_room(self, connection: Connection, kind: ReportKind, size: int) -> bool:
        """Delete the reports that a report of ``size`` bytes displaces, and count the new one.

        False, and nothing has changed, where the new report must be refused.
        """
        share = self._bounds.share_of(kind)
        counts = {
            each: count
            for each, count in self._counts.items()
            if (each.origin, each.weight) == (kind.origin, kind.weight)
        }
        counts[kind] = _changed(counts.get(kind, _NONE), 1, size)
        oldest: dict[ReportKind, Iterator[tuple[int, int]]] = {}
        doomed: list[int] = []
        while (largest := _beyond(share, counts, kind)) is not None:
            if kind.weight == Weight.PROVED:
                return False
            if largest not in oldest:
                oldest[largest] = oldest_reports(connection, largest)
            found = next(oldest[largest], None)
            if found is None:
                return False
            doomed.append(found[0])
            counts[largest] = _changed(counts[largest], -1, -found[1])
        delete_reports(connection, doomed)
        self._counts |= counts
        return True

    def rows(self) -> Mapping[tuple[int, str], int]:
        """Return how many reports there are by type and origin."""
        rows: Counter[tuple[int, str]] = Counter()
        for kind, count in self._counts.items():
            rows[kind.type, kind.origin] += count.rows
        return rows


def _beyond(
    share: Share, counts: Mapping[ReportKind, ReportCount], kind: ReportKind
) -> ReportKind | None:
    """Return the kind that has to lose a report, or None where all bounds are kept."""
    if counts[kind].rows > share.rows:
        return kind
    by_accused: Counter[int] = Counter()
    for each, count in counts.items():
        by_accused[each.node_id] += _cost(count)
    accused = kind.node_id
    if by_accused[accused] <= share.accused_bytes:
        if by_accused.total() <= share.bytes:
            return None
        accused = max(by_accused, key=by_accused.__getitem__)
    about = [each for each in counts if each.node_id == accused]
    return max(about, key=lambda each: _cost(counts[each]))


def _cost(count: ReportCount) -> int:
    return count.bytes + count.rows * ROW_BYTES


def _changed(count: ReportCount, rows: int, size: int) -> ReportCount:
    return ReportCount(count.rows + rows, count.bytes + size)
