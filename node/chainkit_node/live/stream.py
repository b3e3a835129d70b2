"""One reader's stream: what is stored behind its cursor, then what is committed, each once.

Per originator and selection, sequence ids only rise; ``hub`` explains why nothing is lost between
the two halves.

A reorg, or a gap that is filled, changes what was sent. Then the stream ends, and its reader is
told where to go on. A stream for readers who would not understand that goes back, and sends again
what lies above that place (ADR 47); but it goes back no further than where it began, because its
reader takes nothing from below its own cursor. Nor does it send a message before the payload of the
chain that the message names, or anything that the message's originator has behind it (ADR 55):
nothing of that originator is sent until the stream has read the database again, which it does once
the topics have another payload of the chain, and after a while anyway.
"""

from __future__ import annotations

import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from enum import Enum, auto

from chainkit.service.refusals import taken_back
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.live.hub import Hub, Subscription
from chainkit_node.storage.held_back import LONGEST_NS, waits
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

    def __init__(self, selection: Selection, holds_back: bool) -> None:
        self.topics = selection.topics
        self.originator_ids = selection.originator_ids
        self.cursor = dict(selection.cursor)
        self._begun = selection.cursor
        self._holds_back = holds_back
        self._held: set[int] = set()
        """Originators of whom nothing is sent before the database is read again."""
        self._held_ns = 0
        self._has_new_commit = False
        self._commits: dict[bytes, int] = {}
        """The highest id of the chain that was sent, by topic: a reader keeps it after a reorg."""

    def selection(self) -> Selection:
        return Selection(self.topics, self.originator_ids, dict(self.cursor))

    def move_behind(self, page: Page) -> None:
        """Move the cursor behind a page of what is selected."""
        for row in page.rows:
            self._move_to(row)
        self._held, self._held_ns, self._has_new_commit = set(page.held), time.time_ns(), False

    def must_read_again(self) -> bool:
        """Return whether what is held back may be ready."""
        is_late = time.time_ns() > self._held_ns + LONGEST_NS
        return bool(self._held) and (self._has_new_commit or is_late)

    def go_back(self, cursor: Mapping[int, int]) -> None:
        """Move the cursor back, and no further than where the selection began."""
        for each, last in cursor.items():
            if self.cursor.get(each, 0) > last:
                self.cursor[each] = max(last, self._begun.get(each, 0))

    def passes(self, row: StoredEnvelope) -> bool:
        """Move the cursor to an envelope; return False where it was sent, or is not wanted."""
        if row.topic not in self.topics and row.originator_id not in self.originator_ids:
            return False
        if row.sequence_id <= self.cursor.get(row.originator_id, 0):
            return False
        if self._holds_back and self._is_held(row):
            return False
        self._move_to(row)
        return True

    def _move_to(self, row: StoredEnvelope) -> None:
        self.cursor[row.originator_id] = row.sequence_id
        if row.originator_id == BLOCKCHAIN_ORIGINATOR_ID:
            self._commits[row.topic] = max(row.sequence_id, self._commits.get(row.topic, 0))
            self._has_new_commit = True

    def _is_held(self, row: StoredEnvelope) -> bool:
        if row.originator_id in self._held:
            return True
        begun = self._begun.get(BLOCKCHAIN_ORIGINATOR_ID, 0)
        now_ns = time.time_ns()
        if not waits(row, max(begun, self._commits.get(row.topic, 0)), now_ns):
            return False
        if not self._held:
            self._held_ns, self._has_new_commit = now_ns, False
        self._held.add(row.originator_id)
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
        *,
        goes_back: bool = False,
    ) -> None:
        """Take the selections, each with its cursor, and how many envelopes a page has at most.

        A stream that ``goes_back`` does so where another one would end after a reorg, and sends no
        message before the payload of the chain that it names.
        """
        self._hub = hub
        self._read = read
        self._portions = [_Portion(each, goes_back) for each in selections]
        self._selections = selections
        self._page = page
        self._heartbeat = heartbeat_seconds
        self._goes_back = goes_back
        self._reads_again = False

    async def batches(self) -> AsyncIterator[Sequence[StoredEnvelope] | StreamStatus]:
        """Yield envelopes and statuses, without end.

        Raises TakenBack where a reorg took back what was sent, unless the stream goes back.
        """
        subscription = self._hub.subscribe(self._selections)
        try:
            while True:
                if not self._reads_again:
                    yield StreamStatus.STARTED
                self._reads_again = False
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
            if self._went_back(subscription):
                return
            if self._hub.generation != generation:
                # The page was read while a reorg came: perhaps before it, perhaps after.
                continue
            is_last = page.is_last
            portion.move_behind(page)
            subscription.sends(page.rows)
            if page.rows:
                yield page.rows

    async def _live(
        self, subscription: Subscription
    ) -> AsyncIterator[Sequence[StoredEnvelope] | StreamStatus]:
        while True:
            came = await subscription.wait(self._heartbeat)
            if self._went_back(subscription):
                return
            if came:
                rows = list(self._wanted(subscription.take(self._page)))
                if subscription.is_behind:
                    return
                subscription.sends(rows)
                for some in self._batches_of(rows):
                    yield some
            else:
                yield StreamStatus.WAITING
            if any(portion.must_read_again() for portion in self._portions):
                self._reads_again = True
                return

    def _batches_of(self, rows: Sequence[StoredEnvelope]) -> Iterator[Sequence[StoredEnvelope]]:
        """Yield what goes out at a time: today's clients order a batch by time (ADR 55)."""
        start = 0
        for place, row in enumerate(rows, 1):
            is_of_chain = row.originator_id == BLOCKCHAIN_ORIGINATOR_ID
            if place == len(rows) or (self._goes_back and is_of_chain):
                yield rows[start:place]
                start = place

    def _went_back(self, subscription: Subscription) -> bool:
        """Go back where what was sent has changed: the database is to be read again."""
        back = subscription.taken_back
        if back is None:
            return False
        if not self._goes_back:
            raise taken_back(back)
        for portion in self._portions:
            portion.go_back(back)
        subscription.go_back()
        self._reads_again = True
        return True

    def _wanted(self, rows: Iterable[StoredEnvelope]) -> Iterable[StoredEnvelope]:
        for row in rows:
            # If two selections name a topic, the one that lies behind decides.
            if any([portion.passes(row) for portion in self._portions]):
                yield row
