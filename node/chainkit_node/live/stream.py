"""One reader's stream: what is stored behind its cursor, then what is committed, each once.

Per originator and selection, sequence ids only rise; ``hub`` explains why nothing is lost between
the two halves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from enum import Enum, auto

from chainkit.service.refusals import taken_back
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.live.hub import Hub, Subscription
from chainkit_node.types import Page, Selection

ReadPage = Callable[[Selection, int], Awaitable[Page]]
"""Reads what is selected, up to a number; a page that is not the last has at least one envelope."""


class StreamStatus(Enum):
    """How far a stream is."""

    STARTED = auto()
    """The stream reads what is stored: at its begin, and again after it fell behind."""
    CATCHUP_COMPLETE = auto()
    """Everything that was stored has been sent."""
    WAITING = auto()
    """Nothing new has come for a heartbeat's time."""


class _Portion:
    """One selection, and how far it was sent."""

    def __init__(self, selection: Selection) -> None:
        self.topics = selection.topics
        self.originator_ids = selection.originator_ids
        self.cursor = dict(selection.cursor)

    def selection(self) -> Selection:
        return Selection(self.topics, self.originator_ids, dict(self.cursor))

    def move_behind(self, rows: Sequence[StoredEnvelope]) -> None:
        """Move the cursor behind a page of what is selected."""
        # In the order of sequence ids: the last of each originator counts.
        self.cursor |= {row.originator_id: row.sequence_id for row in rows}

    def passes(self, row: StoredEnvelope) -> bool:
        """Move the cursor to an envelope; return False where it was sent, or is not wanted."""
        if row.topic not in self.topics and row.originator_id not in self.originator_ids:
            return False
        if row.sequence_id <= self.cursor.get(row.originator_id, 0):
            return False
        self.cursor[row.originator_id] = row.sequence_id
        return True


class Stream:
    """The envelopes of one reader. ``batches`` runs once."""

    def __init__(
        self,
        hub: Hub,
        read: ReadPage,
        selections: Sequence[Selection],
        page: int,
        heartbeat_seconds: float,
    ) -> None:
        """Take the selections, each with its cursor, and how many envelopes a page has at most."""
        self._hub = hub
        self._read = read
        self._portions = [_Portion(each) for each in selections]
        self._selections = selections
        self._page = page
        self._heartbeat = heartbeat_seconds

    async def batches(self) -> AsyncIterator[Sequence[StoredEnvelope] | StreamStatus]:
        """Yield envelopes and statuses, without end.

        Raises TakenBack where a reorg took back what was sent.
        """
        subscription = self._hub.subscribe(self._selections)
        try:
            while True:
                yield StreamStatus.STARTED
                subscription.catch_up()
                for portion in self._portions:
                    async for rows in self._stored(portion, subscription):
                        yield rows
                yield StreamStatus.CATCHUP_COMPLETE
                async for batch in self._live(subscription):
                    yield batch
        finally:
            self._hub.unsubscribe(subscription)

    async def _stored(
        self, portion: _Portion, subscription: Subscription
    ) -> AsyncIterator[Sequence[StoredEnvelope]]:
        is_last = False
        while not is_last:
            generation = self._hub.generation
            page = await self._read(portion.selection(), self._page)
            _check(subscription)
            if self._hub.generation != generation:
                # The page was read while a reorg came: perhaps before it, perhaps after.
                continue
            is_last = page.is_last
            portion.move_behind(page.rows)
            subscription.sends(page.rows)
            if page.rows:
                yield page.rows

    async def _live(
        self, subscription: Subscription
    ) -> AsyncIterator[Sequence[StoredEnvelope] | StreamStatus]:
        while True:
            came = await subscription.wait(self._heartbeat)
            _check(subscription)
            if not came:
                yield StreamStatus.WAITING
                continue
            rows = list(self._wanted(subscription.take(self._page)))
            if subscription.is_behind:
                return
            subscription.sends(rows)
            if rows:
                yield rows

    def _wanted(self, rows: Iterable[StoredEnvelope]) -> Iterable[StoredEnvelope]:
        for row in rows:
            # If two selections name a topic, the one that lies behind decides.
            if any([portion.passes(row) for portion in self._portions]):
                yield row


def _check(subscription: Subscription) -> None:
    if subscription.taken_back is not None:
        raise taken_back(subscription.taken_back)
