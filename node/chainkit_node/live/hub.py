"""Hands each committed envelope to the streams that want it; no I/O, no clock.

Theory of operation. Everything here runs on one thread, the event loop's. A commit is published
after its transaction, in the order of the commits. A stream first subscribes, then reads the
database, then takes what was queued meanwhile: an envelope that was committed before it subscribed
is in the database, and one that is committed later is queued. An envelope that is in both has a
sequence id that the stream has passed already, and the stream drops it.

A queue is bounded in bytes. A full queue is emptied, and its stream reads the database again, from
where it stands. Nothing is skipped.

A reorg takes envelopes back. A stream that has sent such an envelope, or that began behind one, is
notified up to where its reader may keep what it got; the envelopes vanish from every other queue.
An envelope that fills a gap lies below envelopes that came before it: a stream that has sent one of
these is notified in the same way, and every other stream reads the database again. ``generation``
counts reorgs and filled gaps: a page that was read from the database while one came is read again.
A stream that was notified ends, or goes back (``stream``).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.types import Selection

DEFAULT_QUEUE_BYTES: Final = 1 << 20
"""Envelopes that wait for a slow reader, before it has to read the database again."""

_Key = TypeVar("_Key")


class Subscription:
    """The queue of one stream. Its fields change on the event loop's thread only."""

    def __init__(self, selections: Sequence[Selection], most: int) -> None:
        """Use ``Hub.subscribe``; at most ``most`` bytes may wait."""
        self.topics = frozenset[bytes]().union(*(each.topics for each in selections))
        self.originators = frozenset[int]().union(*(each.originator_ids for each in selections))
        self._cursors = tuple(each.cursor for each in selections)
        self.is_behind = False
        """The queue was full and was emptied: the database has what it missed."""
        self.taken_back: Mapping[int, int] | None = None
        """Originator id to the last sequence id that still holds, once a reorg took back what this
        stream has sent, or a gap below it was filled."""
        self._most = most
        self._queue: list[StoredEnvelope] = []
        self._bytes = 0
        self._sent: dict[int, int] = {}
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> bool:
        """Wait until there is something to read; return False after ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True

    def take(self, most: int) -> list[StoredEnvelope]:
        """Take the first of what is queued, in the order of the commits.

        A reorg still takes back what stays in the queue.
        """
        taken, self._queue = self._queue[:most], self._queue[most:]
        self._bytes -= sum(len(row.envelope) for row in taken)
        if not self._queue:
            self._event.clear()
        return taken

    def catch_up(self) -> None:
        """Queue again: the stream is about to read the database from where it stands."""
        self.is_behind = False

    def sends(self, rows: Iterable[StoredEnvelope]) -> None:
        """Record what the stream is about to send: a reorg may take it back.

        The sequence ids of each originator rise.
        """
        last = {row.originator_id: row.sequence_id for row in rows}
        self._sent |= {each: max(self._sent.get(each, 0), top) for each, top in last.items()}

    def put(self, row: StoredEnvelope) -> None:
        """Queue an envelope, unless the stream has to read the database anyway."""
        if self.is_behind:
            return
        self._bytes += len(row.envelope)
        self._queue.append(row)
        if self._bytes > self._most:
            self.fall_behind()
        self._event.set()

    def fall_behind(self) -> None:
        """Empty the queue, and let the stream read the database again."""
        self.is_behind = True
        self._queue, self._bytes = [], 0
        self._event.set()

    def retract(self, ancestor: Mapping[int, int]) -> None:
        """Take back what lies above a common ancestor; see ``Hub.retract``."""
        # The reader may have got these envelopes in an earlier stream, even of an earlier process.
        if any(
            max(self._sent.get(each, 0), *(cursor.get(each, 0) for cursor in self._cursors)) > last
            for each, last in ancestor.items()
        ):
            self._take_back(ancestor)
        self._queue = [
            row
            for row in self._queue
            if row.sequence_id <= ancestor.get(row.originator_id, row.sequence_id)
        ]
        self._bytes = sum(len(row.envelope) for row in self._queue)

    def insert(self, row: StoredEnvelope) -> None:
        """Take an envelope that lies below others; see ``Hub.insert``."""
        # The reader may have got what lies above in an earlier stream.
        begun = min(cursor.get(row.originator_id, 0) for cursor in self._cursors)
        if max(self._sent.get(row.originator_id, 0), begun) > row.sequence_id:
            self._take_back({row.originator_id: row.sequence_id - 1})
        else:
            self.fall_behind()

    def go_back(self) -> None:
        """Forget what was taken back: the stream is about to read the database from there."""
        back = self.taken_back or {}
        self._sent = {each: min(last, back.get(each, last)) for each, last in self._sent.items()}
        self.taken_back = None
        self.fall_behind()

    def _take_back(self, cursor: Mapping[int, int]) -> None:
        # The reader may be slow: a second reorg does not give back what the first one took.
        before = self.taken_back or {}
        lower = {each: min(last, before.get(each, last)) for each, last in cursor.items()}
        self.taken_back = {**before, **lower}
        self._event.set()


class Hub:
    """All open streams, by what they want."""

    def __init__(self, queue_bytes: int = DEFAULT_QUEUE_BYTES) -> None:
        """Begin with no stream; each stream may let ``queue_bytes`` wait."""
        self.generation = 0
        """How often stored envelopes changed since the start: by a reorg, or below others."""
        self._queue_bytes = queue_bytes
        self._by_topic: defaultdict[bytes, set[Subscription]] = defaultdict(set)
        self._by_originator: defaultdict[int, set[Subscription]] = defaultdict(set)
        self._all: set[Subscription] = set()

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._all)

    def subscribe(self, selections: Sequence[Selection]) -> Subscription:
        """Queue what is committed from now on and selected; ``unsubscribe`` must follow."""
        subscription = Subscription(selections, self._queue_bytes)
        self._all.add(subscription)
        for topic in subscription.topics:
            self._by_topic[topic].add(subscription)
        for originator_id in subscription.originators:
            self._by_originator[originator_id].add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a stream."""
        self._all.discard(subscription)
        for topic in subscription.topics:
            _discard(self._by_topic, topic, subscription)
        for originator_id in subscription.originators:
            _discard(self._by_originator, originator_id, subscription)

    def publish(
        self, rows: Iterable[StoredEnvelope], refused: Collection[tuple[int, int]] = ()
    ) -> None:
        """Queue committed envelopes, in the order of their commits.

        ``refused`` has originator and sequence ids of identity updates that break a rule: they
        stand in their originator's order, and not on their topic.
        """
        for row in rows:
            if (row.originator_id, row.sequence_id) not in refused:
                for subscription in self._by_topic.get(row.topic, ()):
                    subscription.put(row)
            for subscription in self._by_originator.get(row.originator_id, ()):
                subscription.put(row)

    def insert(self, rows: Iterable[StoredEnvelope]) -> None:
        """Take committed envelopes that lie below others of their originator: gaps are filled."""
        self.generation += 1
        for row in rows:
            wanted = self._by_topic.get(row.topic, set()) | self._by_originator.get(
                row.originator_id, set()
            )
            for subscription in wanted:
                subscription.insert(row)

    def skip(self, originator_ids: Iterable[int]) -> None:
        """Let every stream that may want these originators read the database instead.

        For a commit of so many envelopes that each stream had better read only what it wants.
        """
        originators = frozenset(originator_ids)
        for subscription in self._all:
            if subscription.topics or originators & subscription.originators:
                subscription.fall_behind()

    def retract(self, ancestor: Mapping[int, int]) -> None:
        """Take back what lies above a common ancestor: originator id to its sequence id there."""
        self.generation += 1
        for subscription in self._all:
            subscription.retract(ancestor)


def _discard(
    index: defaultdict[_Key, set[Subscription]], key: _Key, subscription: Subscription
) -> None:
    index[key].discard(subscription)
    if not index[key]:
        del index[key]
