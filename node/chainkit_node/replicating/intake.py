"""Takes what other nodes sent: verified on two threads, compared and stored in one transaction.

Theory of operation. Envelopes of one originator may come from several nodes at once, such as from
its stream and from a repair. Batches take turns, and stored bytes are not verified again: two
signatures cost far more than a look. The first envelope under an id is stored; each transaction
compares its batch with the stored envelopes, so that no envelope is stored twice or overwritten.
Pruned envelopes are not stored again.
Streams are notified after the commit. An envelope that fills a gap lies below what some streams
have sent: those streams end, and go on from below the gap (``Hub.insert``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Final, Protocol

from sqlalchemy import Connection

from chainkit.misbehavior.received_batch import compare_batch
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.received_envelope import ReceivedEnvelope, read_received
from chainkit_indexer.storage.envelopes import (
    StoredEnvelope,
    read_by_originators,
    read_last,
)
from chainkit_indexer.storage.store import Store
from chainkit_node.replicating.own_ids import UngivenIds
from chainkit_node.storage.pruned_ids import PRUNED
from chainkit_node.storage.replicated import StoredLog, store_judged

MOST_PER_COMMIT: Final = 1_000
"""Envelopes of one transaction: the sequencer waits for it."""

MOST_CHANGES: Final = 100
"""Envelopes of one transaction where they do not simply follow the last: each may change a gap, and
the digests of several ranges."""

_FEWEST_SHARED: Final = 16
"""Fewer envelopes are verified sooner than another thread begins."""
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
    """Other envelopes were stored under the same ids."""
    gaps: int
    far: int = 0
    """Not stored, because no log can have reached their ids."""

    def __add__(self, other: Taken) -> Taken:
        """Return the sum of two outcomes."""
        return Taken(
            self.new + other.new,
            self.late + other.late,
            self.repeated + other.repeated,
            self.disputed + other.disputed,
            self.gaps + other.gaps,
            self.far + other.far,
        )

    @property
    def envelopes(self) -> Mapping[str, int]:
        """Numbers of envelopes by outcome."""
        return {
            "new": self.new,
            "late": self.late,
            "repeated": self.repeated,
            "disputed": self.disputed,
            "far": self.far,
        }


class Takes(Protocol):
    """Takes what other nodes sent; for several threads."""

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        """Verify and store serialized envelopes of one originator, in the order they came.

        Raises MalformedEnvelope or InvalidSignature, and stores nothing, where an envelope is not
        the originator's: its sender made it up. Raises StoreError.
        """

    def last_id(self, originator_id: int) -> int:
        """Return the highest sequence id that is held of an originator, 0 before the first."""


Found = Callable[[Sequence[ReceivedEnvelope], Sequence[ReceivedEnvelope]], None]
"""Takes envelopes that were not held, and second envelopes under ids."""

Publish = Callable[[Sequence[StoredEnvelope], Sequence[StoredEnvelope]], None]
"""Takes envelopes stored behind all others, in order, and envelopes stored where a gap was."""


class Intake:
    """The one place that stores what other nodes originated; for several threads."""

    def __init__(
        self,
        store: Store,
        reports: SafetyReports,
        clock_ns: Callable[[], int],
        publish: Publish,
        stored: Callable[[Sequence[ReceivedEnvelope]], None],
        ungiven: UngivenIds,
        found: Found = lambda stored, disputed: None,
    ) -> None:
        """Take the database, opened to write, and a clock that counts from 1970.

        ``stored`` gets each batch after its commit, on the same thread; ``ungiven`` before it, and
        ``found`` what else the batch shows.
        """
        self._store = store
        self._reports = reports
        self._clock_ns = clock_ns
        self._publish = publish
        self._stored = stored
        self._ungiven = ungiven
        self._found = found
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
        """Leave out envelopes that are stored byte for byte, from the first envelope's id on."""
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
        if not received:
            return taken
        first = self.last_id(received[0].originator_id) + 1
        follow = [each.sequence_id for each in received] == [*range(first, first + len(received))]
        most = MOST_PER_COMMIT if follow else MOST_CHANGES
        for start in range(0, len(received), most):
            taken = taken + self._take(received[start : start + most], is_direct)
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
            # A peer may hold what was pruned here, and what is stored never comes back.
            kept = _without_pruned(connection, received)
            held = StoredLog(connection, originator_id)
            judged = compare_batch(kept, held, now_ns, is_direct)
            self._found([*judged.new, *judged.late], [each.other for each in judged.disputes])
            new, late = store_judged(self._store, connection, judged, now_ns)
            ahead = self._ungiven.take(connection, [*judged.new, *judged.late])
        for offence in (*judged.offences, *ahead):
            self._reports.submit_own_safety(offence.node_id, offence.misbehavior, offence.envelopes)
        if new or late:
            self._publish(new, late)
            self._stored([*judged.new, *judged.late])
        return Taken(
            len(new),
            len(late),
            judged.repeated + len(received) - len(kept),
            len(judged.disputes),
            len(judged.gaps),
            judged.far,
        )


def _without_pruned(
    connection: Connection, received: Sequence[ReceivedEnvelope]
) -> Sequence[ReceivedEnvelope]:
    originator_id = received[0].originator_id
    last_id, _ = read_last(connection, originator_id) or (0, 0)
    return [
        each
        for each in received
        if each.sequence_id > last_id
        or not PRUNED.read(connection, originator_id, each.sequence_id, each.sequence_id)
    ]


def _received(data: Sequence[bytes], source: Source) -> list[ReceivedEnvelope]:
    return [read_received(each, source.originator_id, source.signing_key) for each in data]
