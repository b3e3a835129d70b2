"""Distinguishes gaps by expiry from gaps by omission (XIP-49 §3.2.4).

An originator without an envelope for an id has pruned it, or never served it, and answers which. An
envelope that cannot have expired yet is omitted, whatever the originator answers; so is one that it
neither has nor calls expired, unless the next envelope is older than the shortest retention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from sqlalchemy import Connection

from chainkit.misbehavior.judging import may_have_expired
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import LEAST_RETENTION_SECONDS
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.storage.store import Store
from chainkit_node.replicating.intake import SafetyReports
from chainkit_node.storage.gaps import GapRow, GapState, change_gaps, forget_filled, read_asked_gaps
from chainkit_node.storage.replicated import read_after, read_before

_RETENTION_NS: Final = LEAST_RETENTION_SECONDS * NANOSECONDS_PER_SECOND
_FILLED_NS: Final = 24 * 60 * 60 * NANOSECONDS_PER_SECOND
"""How long filled gaps are remembered: readers look within seconds."""


class GapKeeper:
    """Updates the states of gaps; for several threads."""

    def __init__(self, store: Store, reports: SafetyReports, clock_ns: Callable[[], int]) -> None:
        """Take the database, opened to write, and a clock that counts from 1970."""
        self._store = store
        self._reports = reports
        self._clock_ns = clock_ns

    def unexplained(self, originator_id: int) -> list[range]:
        """Return the missing ids of an originator that nobody has explained, the first ones."""
        with self._store.reading() as connection:
            gaps = read_asked_gaps(connection, originator_id)
        return [range(each.first_id, each.last_id + 1) for each in gaps]

    def answered(
        self, originator_id: int, through: int, held: Sequence[range], expired: Sequence[range]
    ) -> None:
        """Record an originator's answer about its own log, up to an id.

        The originator serves ``held``, calls ``expired`` so, and lacks all other ids.
        """
        now_ns = self._clock_ns()
        evidence: list[tuple[bytes, ...]] = []
        with self._store.writing() as connection:
            for gap in read_asked_gaps(connection, originator_id):
                ids = range(gap.first_id, min(gap.last_id, through) + 1)
                called = list(_within(ids, expired))
                lacking = list(_without(ids, [*held, *expired]))
                evidence += _decided(connection, gap, called, lacking, now_ns)
            forget_filled(connection, now_ns - _FILLED_NS)
        for envelopes in evidence:
            self._reports.submit_own_safety(originator_id, Misbehavior.OUT_OF_ORDER, envelopes)


def _decided(
    connection: Connection, gap: GapRow, called: list[range], lacking: list[range], now_ns: int
) -> list[tuple[bytes, ...]]:
    """Decide about runs of a gap; return the evidence, if any run is an omission."""
    before = read_before(connection, gap.originator_id, gap.first_id)
    after = read_after(connection, gap.originator_id, gap.last_id)
    if not may_have_expired(before, now_ns):
        omitted, gone = [*called, *lacking], []
    elif after is None or after.originator_ns <= now_ns - _RETENTION_NS:
        omitted, gone = [], [*called, *lacking]
    else:
        omitted, gone = lacking, called
    for state, runs in ((GapState.OMITTED, omitted), (GapState.EXPIRED, gone)):
        for run in runs:
            asked = (GapState.ASKED,)
            change_gaps(connection, gap.originator_id, run, state, asked, now_ns)
    if not omitted or after is None:
        return []
    return [(after.envelope, *(() if before is None else (before.envelope,)))]


def _within(ids: range, runs: Iterable[range]) -> Iterator[range]:
    """Yield the parts of ``ids`` that lie within ``runs``."""
    for run in runs:
        part = range(max(ids.start, run.start), min(ids.stop, run.stop))
        if part:
            yield part


def _without(ids: range, runs: Iterable[range]) -> Iterator[range]:
    """Yield the parts of ``ids`` that lie outside of ``runs``."""
    start = ids.start
    for part in sorted(_within(ids, runs), key=lambda part: part.start):
        if start < part.start:
            yield range(start, part.start)
        start = max(start, part.stop)
    if start < ids.stop:
        yield range(start, ids.stop)
