"""From the database to the open streams: what was committed, and what a reorg took back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import ChainkitError, StoreUnavailable
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.journal import read_reorgs_after
from chainkit_indexer.types import RolledBack, StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.storage.gaps import GapRow, read_filled_after, read_last_change
from chainkit_node.types import Selection

_MOST_PUSHED: Final = 1000
_MOST_PUSHED_BYTES: Final = 16 << 20
"""Envelopes of one look that are handed to the streams; streams read more for themselves."""


class Feed:
    """Hands stored envelopes on to the hub, each envelope once."""

    def __init__(self, hub: Hub, handover: Handover, known: Mapping[int, int]) -> None:
        """Begin behind a cursor: each stream reads the envelopes below the cursor itself."""
        self._hub = hub
        self._handover = handover
        self._known = dict(known)

    def take_back(self, ancestor: Mapping[int, int]) -> None:
        """Take back what lies above a common ancestor: originator id to its sequence id there."""
        self._handover.call(self._hub.retract, dict(ancestor))
        self._known |= {
            each: min(self._known.get(each, 0), last) for each, last in ancestor.items()
        }

    def hand_on(self, connection: Connection, cursor: Mapping[int, int]) -> None:
        """Hand on what was stored up to a cursor, as one transaction sees it."""
        missing = {each: last - self._known.get(each, 0) for each, last in cursor.items()}
        missing = {each: count for each, count in missing.items() if count > 0}
        if not missing:
            return
        rows = self._read(connection, missing, cursor)
        if rows is None:
            self._handover.call(self._hub.skip, tuple(missing))
        else:
            refused = EnvelopeLog.refused(connection, rows)
            self._handover.call(self._hub.publish, rows, refused)
        self._known |= {each: cursor[each] for each in missing}

    def insert(self, connection: Connection, filled: Iterable[GapRow]) -> None:
        """Hand on what was stored below others: gaps that were filled."""
        for gap in filled:
            last = gap.first_id - 1
            while last < gap.last_id:
                behind = {gap.originator_id: last}
                selection = Selection(originator_ids=frozenset([gap.originator_id]), cursor=behind)
                rows = EnvelopeLog.rows(connection, selection, _MOST_PUSHED, _MOST_PUSHED_BYTES)
                rows = [row for row in rows if row.sequence_id <= gap.last_id]
                if not rows:
                    break
                self._handover.call(self._hub.insert, rows)
                last = rows[-1].sequence_id

    def _read(
        self, connection: Connection, missing: Mapping[int, int], cursor: Mapping[int, int]
    ) -> Sequence[StoredEnvelope] | None:
        """Return what is missing, or None where that is too much."""
        if sum(missing.values()) > _MOST_PUSHED:
            return None
        found: list[StoredEnvelope] = []
        for originator_id, count in missing.items():
            behind = {originator_id: self._known.get(originator_id, 0)}
            selection = Selection(originator_ids=frozenset([originator_id]), cursor=behind)
            rows = EnvelopeLog.rows(connection, selection, count, _MOST_PUSHED_BYTES)
            if sum(len(row.envelope) for row in rows) > _MOST_PUSHED_BYTES:
                return None
            # An id may have no envelope: then the page goes beyond the cursor.
            found += [row for row in rows if row.sequence_id <= cursor[originator_id]]
        return found


class ChainFeed:
    """An observer of the indexer's loop that hands the hub what each step committed.

    The feed ends where the identity updates are not judged yet. A database that is away is asked
    again at the next step: nothing is handed on twice, or forgotten.
    """

    def __init__(self, log: EnvelopeLog, hub: Hub, handover: Handover) -> None:
        """Begin where the updates were judged."""
        self._log = log
        with log.reading() as connection:
            self._feed = Feed(hub, handover, log.judged_cursor(connection))
        self._ancestor: int | None = None

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Hand on what was committed or taken back."""
        if isinstance(result, RolledBack):
            number = result.cursor.number
            self._ancestor = number if self._ancestor is None else min(number, self._ancestor)
        try:
            with self._log.reading() as connection:
                if self._ancestor is not None:
                    self._feed.take_back(self._log.cursor_at(connection, self._ancestor))
                    self._ancestor = None
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
            self._feed = Feed(hub, handover, log.served_cursor(connection))
            self._reorg_id = max(read_reorgs_after(connection, 0), default=0)
            self._filled_ns = read_last_change(connection)

    def look(self) -> None:
        """Hand on what was committed or taken back. Raises StoreError."""
        with self._log.reading() as connection:
            ancestors = read_reorgs_after(connection, self._reorg_id)
            if ancestors:
                lowest = min(ancestors.values())
                self._feed.take_back(self._log.cursor_at(connection, lowest))
                self._reorg_id = max(ancestors)
            self._feed.hand_on(connection, self._log.served_cursor(connection))
            # Filled gaps come after new envelopes: only then a stream may have later ones.
            while filled := read_filled_after(connection, self._filled_ns):
                self._feed.insert(connection, filled)
                self._filled_ns = filled[-1].changed_ns
