"""Takes what other nodes sent: verified on two threads, compared and stored in one transaction.

Theory of operation. Envelopes of one originator may come from several nodes at once, such as from
its stream and from a repair. They take turns, and bytes that are stored already are not verified
again: two signatures cost far more than a look. The first one under an id is stored; each
transaction compares its batch with what is stored then, so that none is stored twice, and none is
overwritten. Streams are told after the commit. An envelope that fills a gap lies below what some
streams have sent: those end, and go on from below it (``Hub.insert``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Final, Protocol

from sqlalchemy import Connection

from chainkit.misbehavior.judging import HeldEnvelope, Judged, judge_batch
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import originator_digest, parse_originated
from chainkit.protocol.received_envelope import ReceivedEnvelope, read_received
from chainkit_indexer.storage.envelopes import (
    StoredEnvelope,
    read_by_originators,
    read_last,
)
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import GapState
from chainkit_node.storage.gaps import GapRow, fill_gaps, insert_gap, read_last_change
from chainkit_node.storage.range_digests import forget_ranges
from chainkit_node.storage.replicated import (
    insert_dispute,
    is_disputed,
    read_after,
    read_at,
    read_before,
    read_newest_of,
)

MOST_PER_COMMIT: Final = 1_000
"""Envelopes of one transaction: the sequencer waits for it."""

_FEWEST_SHARED: Final = 16
"""Fewer are verified sooner than another thread begins."""
_EVER: Final = 0
"""A time at which nothing has expired."""


class SafetyReports(Protocol):
    """Takes evidence of safety failures; on any thread, and without waiting."""

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> object:
        """Report a node, once for the same evidence."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a batch comes from."""

    originator_id: int
    signing_key: bytes
    """The registry's key of the originator, 65 bytes."""
    is_direct: bool
    """The originator itself sent it, in its own stream."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome of a batch."""

    new: int
    late: int
    """Stored where a gap was."""
    repeated: int
    """Stored already."""
    disputed: int
    """Others were stored under their ids."""
    gaps: int

    def __add__(self, other: Taken) -> Taken:
        """Return both together."""
        return Taken(
            self.new + other.new,
            self.late + other.late,
            self.repeated + other.repeated,
            self.disputed + other.disputed,
            self.gaps + other.gaps,
        )

    @property
    def envelopes(self) -> Mapping[str, int]:
        """How many, by what became of them."""
        return {
            "new": self.new,
            "late": self.late,
            "repeated": self.repeated,
            "disputed": self.disputed,
        }


class Takes(Protocol):
    """Takes what other nodes sent; for several threads."""

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        """Verify and store serialized envelopes of one originator, in the order they came.

        Raises MalformedEnvelope or InvalidSignature, and stores nothing, where one of them is not
        the originator's: its sender made it up. Raises StoreError.
        """

    def last_id(self, originator_id: int) -> int:
        """Return the highest sequence id that is held of an originator, 0 before the first."""


Publish = Callable[[Sequence[StoredEnvelope], Sequence[StoredEnvelope]], None]
"""Takes what was stored behind all others, in order, and what was stored where a gap was."""


class Intake:
    """The one place that stores what other nodes originated; for several threads."""

    def __init__(
        self,
        store: Store,
        reports: SafetyReports,
        clock_ns: Callable[[], int],
        publish: Publish,
        stored: Callable[[Sequence[ReceivedEnvelope]], None],
    ) -> None:
        """Take the database, opened to write, and a clock that counts from 1970.

        ``stored`` is told of each batch after its commit, on the same thread.
        """
        self._store = store
        self._reports = reports
        self._clock_ns = clock_ns
        self._publish = publish
        self._stored = stored
        self._turns: defaultdict[int, Lock] = defaultdict(Lock)
        self._helper = ThreadPoolExecutor(1, "intake")

    def close(self) -> None:
        """End the second thread; nothing is taken any more."""
        self._helper.shutdown()

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        """Verify and store envelopes; see ``Takes``."""
        if not data:
            return Taken(0, 0, 0, 0, 0)
        with self._turns[source.originator_id]:
            others = self._without_stored(data, source.originator_id)
            taken = self._take_all(self._verified(others, source), source.is_direct)
        return taken + Taken(0, 0, len(data) - len(others), 0, 0)

    def _without_stored(self, data: Sequence[bytes], originator_id: int) -> Sequence[bytes]:
        """Leave out those that are stored, byte for byte, from the first one's id on."""
        first = parse_originated(data[0]).envelope.sequence_id
        if first > self.last_id(originator_id):
            return data
        with self._store.reading() as connection:
            rows = read_by_originators(
                connection, [originator_id], {originator_id: first - 1}, len(data), _EVER
            )
        stored = {row.envelope for row in rows}
        return [each for each in data if each not in stored]

    def _verified(self, data: Sequence[bytes], source: Source) -> list[ReceivedEnvelope]:
        if len(data) < _FEWEST_SHARED:
            return _received(data, source)
        # To recover a key takes most of the time, and lets another thread run meanwhile.
        half = len(data) // 2
        second = self._helper.submit(_received, data[half:], source)
        return [*_received(data[:half], source), *second.result()]

    def _take_all(self, received: Sequence[ReceivedEnvelope], is_direct: bool) -> Taken:
        taken = Taken(0, 0, 0, 0, 0)
        for start in range(0, len(received), MOST_PER_COMMIT):
            some = received[start : start + MOST_PER_COMMIT]
            taken = taken + self._take(some, is_direct)
        return taken

    def last_id(self, originator_id: int) -> int:
        """Return the highest sequence id that is held of an originator, 0 before the first."""
        with self._store.reading() as connection:
            last = read_last(connection, originator_id)
        return 0 if last is None else last[0]

    def _take(self, received: Sequence[ReceivedEnvelope], is_direct: bool) -> Taken:
        now_ns = self._clock_ns()
        originator_id = received[0].originator_id
        with self._store.writing() as connection:
            held = StoredLog(connection, originator_id)
            judged = judge_batch(received, held, now_ns, is_direct)
            new, late = _rows(judged.new), _rows(judged.late)
            self._store.insert_envelopes(connection, [*new, *late])
            _note_gaps(connection, judged, now_ns)
            _keep_disputes(connection, judged)
            # The digests that others compare change with what lies below the end.
            changed = [each.sequence_id for each in judged.late]
            changed += [each.other.sequence_id for each in judged.disputes]
            forget_ranges(connection, originator_id, changed)
        for offence in judged.offences:
            self._reports.submit_own_safety(offence.node_id, offence.misbehavior, offence.envelopes)
        if new or late:
            self._publish(new, late)
            self._stored([*judged.new, *judged.late])
        return Taken(len(new), len(late), judged.repeated, len(judged.disputes), len(judged.gaps))


def _received(data: Sequence[bytes], source: Source) -> list[ReceivedEnvelope]:
    return [read_received(each, source.originator_id, source.signing_key) for each in data]


class StoredLog:
    """The stored envelopes of one originator, for ``judge_batch``."""

    def __init__(self, connection: Connection, originator_id: int) -> None:
        """Read within a transaction."""
        self._connection = connection
        self._originator_id = originator_id

    def last(self) -> HeldEnvelope | None:
        """Return the one of the highest id."""
        return _held(read_newest_of(self._connection, self._originator_id))

    def at(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of an id."""
        return _held(read_at(self._connection, self._originator_id, sequence_id))

    def before(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the one of the highest id below an id."""
        return _held(read_before(self._connection, self._originator_id, sequence_id))

    def after(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the one of the lowest id above an id."""
        return _held(read_after(self._connection, self._originator_id, sequence_id))


def _held(row: StoredEnvelope | None) -> HeldEnvelope | None:
    if row is None:
        return None
    digest = originator_digest(parse_originated(row.envelope).unsigned_originator_envelope)
    return HeldEnvelope(row.sequence_id, row.originator_ns, digest, row.envelope)


def _rows(received: Sequence[ReceivedEnvelope]) -> list[StoredEnvelope]:
    return [
        StoredEnvelope(
            each.originator_id,
            each.sequence_id,
            each.originator_ns,
            each.topic,
            each.expires_at,
            each.envelope,
        )
        for each in received
    ]


def _note_gaps(connection: Connection, judged: Judged, now_ns: int) -> None:
    changed_ns = now_ns
    if judged.gaps:
        changed_ns = max(now_ns, read_last_change(connection) + 1)
    for gap in judged.gaps:
        state = GapState.OMITTED if gap.is_omitted else GapState.ASKED
        insert_gap(
            connection,
            GapRow(gap.originator_id, gap.first_id, gap.last_id, state, changed_ns),
        )
    if judged.late:
        ids = [each.sequence_id for each in judged.late]
        fill_gaps(connection, judged.late[0].originator_id, ids, now_ns)


def _keep_disputes(connection: Connection, judged: Judged) -> None:
    for dispute in judged.disputes:
        other = dispute.other
        if not is_disputed(connection, other.originator_id, other.sequence_id):
            insert_dispute(connection, other.originator_id, other.sequence_id, other.envelope)
