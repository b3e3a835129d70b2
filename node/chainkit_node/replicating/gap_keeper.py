"""Distinguishes gaps by expiry from gaps by omission (XIP-49 §3.2.4).

An originator without an envelope for an id has pruned it, or never served it, and answers which. An
envelope that cannot have expired yet is omitted, whatever the originator answers; so is one that it
neither has nor calls expired, unless the next envelope is older than the shortest retention.

An answer may change thousands of runs. A transaction changes few: publishers wait for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from chainkit.misbehavior.received_batch import may_have_expired
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import LEAST_RETENTION_SECONDS
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.storage.store import Store
from chainkit_node.replicating.intake import MOST_CHANGES, SafetyReports
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
        decided: list[_Decided] = []
        with self._store.reading() as connection:
            for gap in read_asked_gaps(connection, originator_id):
                ids = range(gap.first_id, min(gap.last_id, through) + 1)
                called = list(_within(ids, expired))
                lacking = list(_without(ids, [*held, *expired]))
                decided += _decided(connection, gap, called, lacking, now_ns)
        evidence: dict[tuple[bytes, ...], None] = {}
        for start in range(0, len(decided), MOST_CHANGES):
            with self._store.writing() as connection:
                for each in decided[start : start + MOST_CHANGES]:
                    asked = (GapState.ASKED,)
                    run = originator_id, each.run, each.state
                    if change_gaps(connection, *run, asked, now_ns) and each.evidence:
                        evidence[each.evidence] = None
        self._forget_filled(now_ns)
        for envelopes in evidence:
            self._reports.submit_own_safety(originator_id, Misbehavior.OUT_OF_ORDER, envelopes)

    def _forget_filled(self, now_ns: int) -> None:
        has_more = True
        while has_more:
            with self._store.writing() as connection:
                has_more = forget_filled(connection, now_ns - _FILLED_NS, MOST_CHANGES)


@dataclass(frozen=True, slots=True)
class _Decided:
    state: GapState
    run: range
    evidence: tuple[bytes, ...]
    """Envelopes that show an omission; none where it is none, or nothing follows."""


def _decided(
    connection: Connection, gap: GapRow, called: list[range], lacking: list[range], now_ns: int
) -> list[_Decided]:
    """Decide about runs of a gap."""
    before = read_before(connection, gap.originator_id, gap.first_id)
    after = read_after(connection, gap.originator_id, gap.last_id)
    if not may_have_expired(before, now_ns):
        omitted, gone = [*called, *lacking], []
    elif after is None or after.originator_ns <= now_ns - _RETENTION_NS:
        omitted, gone = [], [*called, *lacking]
    else:
        omitted, gone = lacking, called
    evidence: tuple[bytes, ...] = ()
    if after is not None:
        evidence = after.envelope, *(() if before is None else (before.envelope,))
    return [
        *(_Decided(GapState.OMITTED, run, evidence) for run in omitted),
        *(_Decided(GapState.EXPIRED, run, ()) for run in gone),
    ]


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
