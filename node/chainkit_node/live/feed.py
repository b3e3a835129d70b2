"""From the database to the open streams: what was committed, and what a reorg took back.

Payloads under sparse sequence ids may come below others that were handed on before (ADR 50). They
are handed on as filled gaps are: streams that have sent later ones go back, or end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import ChainkitError, StoreUnavailable
from chainkit.types import Place
from chainkit_indexer.storage.block_ranges import served_ids_within
from chainkit_indexer.storage.blocks import read_position
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.journal import read_lowest_retracted, read_reorgs_after
from chainkit_indexer.types import RolledBack, StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.storage.gaps import GapRow, read_filled_after, read_last_change
from chainkit_node.types import Selection

_MOST_PUSHED: Final = 1000
_MOST_PUSHED_BYTES: Final = 16 << 20
"""Envelopes of one look that are handed to the streams; streams read more for themselves."""


class LatePayloads:
    """Payloads of sparse originators that came below others, until they are served (ADR 50)."""

    def __init__(self, log: EnvelopeLog, connection: Connection, known: Mapping[int, int]) -> None:
        """Begin with what is stored, of which streams have the ids up to ``known``."""
        self._originator_ids = log.sparse_ids
        self._highest = {each: known.get(each, 0) for each in self._originator_ids}
        """Beyond it no stream has read: what comes at or below it comes late."""
        self._block = _height(connection)
        self._waiting: set[Place] = set()

    def take_back(
        self, connection: Connection, reorg_id: int, ancestor: int, highest: Mapping[int, int]
    ) -> dict[int, int]:
        """Return the ids up to which reorgs after ``reorg_id`` took nothing back, by originator.

        ``ancestor`` is the height of their lowest common ancestor, with the ``highest`` ids there.
        An originator of which nothing was taken back is missing.
        """
        found = read_lowest_retracted(connection, reorg_id, self._originator_ids)
        self._block = min(self._block, ancestor)
        self._highest = {
            each: min(last, highest.get(each, 0)) for each, last in self._highest.items()
        }
        return {each: lowest - 1 for each, lowest in found.items()}

    def look(self, connection: Connection, served: Mapping[int, int]) -> set[Place]:
        """Return the late payloads that are served, until ``handed_on`` has got them."""
        if not self._originator_ids:
            return set()
        height = _height(connection)
        found = served_ids_within(connection, self._originator_ids, self._block + 1, height)
        self._block = height
        # A stream may have read any of these blocks from the database, and not the next one.
        for _, in_block in groupby(found, key=lambda each: each[0]):
            places = [(originator_id, sequence_id) for _, originator_id, sequence_id in in_block]
            self._waiting |= {place for place in places if place[1] <= self._highest[place[0]]}
            for originator_id, sequence_id in places:
                self._highest[originator_id] = max(self._highest[originator_id], sequence_id)
        return {place for place in self._waiting if place[1] <= served.get(place[0], 0)}

    def handed_on(self, late: Collection[Place]) -> None:
        """Forget late payloads that streams know of."""
        self._waiting.difference_update(late)


class Feed:
    """Hands stored envelopes on to the hub, each envelope once."""

    def __init__(
        self,
        log: EnvelopeLog,
        hub: Hub,
        handover: Handover,
        connection: Connection,
        known: Mapping[int, int],
    ) -> None:
        """Begin behind a cursor: each stream reads the envelopes below the cursor itself."""
        self._log = log
        self._hub = hub
        self._handover = handover
        self._known = dict(known)
        self._late = LatePayloads(log, connection, known)
        self._reorg_id = max(read_reorgs_after(connection, 0), default=0)

    def take_back(self, connection: Connection) -> None:
        """Take back what reorgs and rewinds since the last call took from the database."""
        ancestors = read_reorgs_after(connection, self._reorg_id)
        if not ancestors:
            return
        lowest = min(ancestors.values())
        ancestor = dict(self._log.cursor_at(connection, lowest))
        lowered = self._late.take_back(connection, self._reorg_id, lowest, ancestor)
        ancestor |= {each: min(ancestor.get(each, 0), last) for each, last in lowered.items()}
        self._reorg_id = max(ancestors)
        self._handover.call(self._hub.retract, ancestor)
        self._lower(ancestor)

    def hand_on(self, connection: Connection, cursor: Mapping[int, int]) -> None:
        """Hand on what was stored up to a cursor, as one transaction sees it."""
        late = self._late.look(connection, cursor)
        # Identity updates above a late one are judged again, and are not served meanwhile.
        self._lower({each: last for each, last in cursor.items() if each in self._log.sparse_ids})
        missing = {each for each, last in cursor.items() if last > self._known.get(each, 0)}
        if missing:
            rows = self._read(connection, missing, cursor)
            if rows is None:
                self._handover.call(self._hub.skip, tuple(missing))
            else:
                refused = EnvelopeLog.refused(connection, rows)
                self._handover.call(self._hub.publish, rows, refused)
            self._known |= {each: cursor[each] for each in missing}
        if late:
            self._insert_late(connection, late)
            self._late.handed_on(late)

    def insert(self, connection: Connection, filled: Iterable[GapRow]) -> None:
        """Hand on what was stored below others: gaps that were filled."""
        for gap in filled:
            last = gap.first_id - 1
            while last < gap.last_id:
                rows = self._behind(connection, gap.originator_id, last, _MOST_PUSHED)
                rows = [row for row in rows if row.sequence_id <= gap.last_id]
                if not rows:
                    break
                self._handover.call(self._hub.insert, rows)
                last = rows[-1].sequence_id

    def _lower(self, cursor: Mapping[int, int]) -> None:
        self._known |= {each: min(self._known.get(each, 0), last) for each, last in cursor.items()}

    def _insert_late(self, connection: Connection, late: Collection[Place]) -> None:
        if len(late) > _MOST_PUSHED:
            lowest: dict[int, int] = {}
            for originator_id, sequence_id in late:
                last = lowest.get(originator_id, sequence_id)
                lowest[originator_id] = min(last, sequence_id - 1)
            self._handover.call(self._hub.retract, lowest)
            return
        for originator_id, sequence_id in sorted(late):
            rows = self._behind(connection, originator_id, sequence_id - 1, 1)
            self._handover.call(self._hub.insert, rows)

    @staticmethod
    def _behind(
        connection: Connection, originator_id: int, last: int, most: int
    ) -> Sequence[StoredEnvelope]:
        selection = Selection(
            originator_ids=frozenset([originator_id]), cursor={originator_id: last}
        )
        return EnvelopeLog.rows(connection, selection, most, _MOST_PUSHED_BYTES)

    def _read(
        self, connection: Connection, missing: Iterable[int], cursor: Mapping[int, int]
    ) -> Sequence[StoredEnvelope] | None:
        """Return what is missing, or None where that is too much."""
        found: list[StoredEnvelope] = []
        for originator_id in missing:
            known = self._known.get(originator_id, 0)
            most = _MOST_PUSHED + 1 - len(found)
            rows = self._behind(connection, originator_id, known, most)
            # An id may have no envelope: then the page goes beyond the cursor.
            found += [row for row in rows if row.sequence_id <= cursor[originator_id]]
            if len(found) > _MOST_PUSHED:
                return None
            if sum(len(row.envelope) for row in rows) > _MOST_PUSHED_BYTES:
                return None
        return found


class ChainFeed:
    """An observer of the indexer's loop that hands the hub what each step committed.

    The feed ends where the identity updates are not judged yet. A database that is away is asked
    again at a later step: nothing is handed on twice, or forgotten.
    """

    def __init__(self, log: EnvelopeLog, hub: Hub, handover: Handover) -> None:
        """Begin where the updates were judged."""
        self._log = log
        with log.reading() as connection:
            judged = log.judged_cursor(connection)
            self._feed = Feed(log, hub, handover, connection, judged)
        self._has_gone_back = False

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Hand on what was committed or taken back."""
        self._has_gone_back = self._has_gone_back or isinstance(result, RolledBack)
        try:
            with self._log.reading() as connection:
                if self._has_gone_back:
                    self._feed.take_back(connection)
                    self._has_gone_back = False
                self._feed.hand_on(connection, self._log.judged_cursor(connection))
        except StoreUnavailable:
            # The indexer's loop logs the error.
            return

    def failed(self, error: ChainkitError) -> None:
        """Nothing was committed."""


class DatabaseFeed:
    """Hands the hub what another process commits to the same database; for one thread.

    A notification only wakes the feed, which reads the new envelopes itself: a lost notification
    loses no envelope.
    """

    def __init__(self, log: EnvelopeLog, hub: Hub, handover: Handover) -> None:
        """Begin with what is stored."""
        self._log = log
        with log.reading() as connection:
            served = log.served_cursor(connection)
            self._feed = Feed(log, hub, handover, connection, served)
            self._filled_ns = read_last_change(connection)

    def look(self) -> None:
        """Hand on what was committed or taken back. Raises StoreError."""
        with self._log.reading() as connection:
            self._feed.take_back(connection)
            self._feed.hand_on(connection, self._log.served_cursor(connection))
            # Filled gaps come after new envelopes: only then a stream may have later ones.
            while filled := read_filled_after(connection, self._filled_ns):
                self._feed.insert(connection, filled)
                self._filled_ns = filled[-1].changed_ns


def _height(connection: Connection) -> int:
    """Return the height up to which the chain was followed, -1 before the first block."""
    position = read_position(connection)
    return -1 if position is None else position.header.number
