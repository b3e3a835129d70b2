"""Tells gaps by expiry from gaps by omission (XIP-49 §3.2.4).

An originator that has no envelope for an id has pruned it, or never served it. It says which. An
envelope that cannot have expired yet is omitted, whatever the originator says; and so is one that
it neither has nor calls expired, unless the next one is older than the shortest retention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Connection

from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import LEAST_RETENTION_SECONDS
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.storage.gaps import GapRow, change_gaps, read_open_gaps
from chainkit_indexer.storage.replicated import read_after, read_before
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import GapState
from chainkit_node.replicating.intake import SafetyReports

_RETENTION_NS: Final = LEAST_RETENTION_SECONDS * NANOSECONDS_PER_SECOND


class GapKeeper:
    """Changes what is known of gaps; for several threads."""

    def __init__(self, store: Store, reports: SafetyReports, clock_ns: Callable[[], int]) -> None:
        """Take the database, opened to write, and a clock that counts from 1970."""
        self._store = store
        self._reports = reports
        self._clock_ns = clock_ns

    def explained(self, originator_id: int, runs: Sequence[range]) -> None:
        """Take note that an originator says of its own envelopes that they have expired."""
        with self._store.writing() as connection:
            for run in runs:
                asked = (GapState.ASKED,)
                now_ns = self._clock_ns()
                change_gaps(connection, originator_id, run, GapState.EXPIRED, asked, now_ns)

    def denied(self, originator_id: int, through: int, held: Sequence[range]) -> None:
        """Take note that an originator has none of what is missing up to an id, but for ``held``.

        It does not call it expired either.
        """
        evidence: list[tuple[bytes, ...]] = []
        with self._store.writing() as connection:
            for gap in read_open_gaps(connection):
                is_asked = gap.originator_id == originator_id and gap.state == GapState.ASKED
                if is_asked and gap.last_id <= through and not _is_within(gap, held):
                    evidence += self._decided(connection, gap)
        for envelopes in evidence:
            self._reports.submit_own_safety(originator_id, Misbehavior.OUT_OF_ORDER, envelopes)

    def _decided(self, connection: Connection, gap: GapRow) -> list[tuple[bytes, ...]]:
        """Decide about a gap; return the evidence, if it is an omission."""
        ids = range(gap.first_id, gap.last_id + 1)
        after = read_after(connection, gap.originator_id, gap.last_id)
        now_ns = self._clock_ns()
        is_old = after is None or after.originator_ns <= now_ns - _RETENTION_NS
        state = GapState.EXPIRED if is_old else GapState.OMITTED
        change_gaps(connection, gap.originator_id, ids, state, (GapState.ASKED,), now_ns)
        if is_old or after is None:
            return []
        before = read_before(connection, gap.originator_id, gap.first_id)
        return [(after.envelope, *(() if before is None else (before.envelope,)))]


def _is_within(gap: GapRow, runs: Sequence[range]) -> bool:
    return any(run.start <= gap.last_id and gap.first_id < run.stop for run in runs)
