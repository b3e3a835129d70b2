"""The stored envelopes as readers see them: queries in threads, so that no stream waits for one."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice, takewhile
from typing import Final, TypeVar

from sqlalchemy import Connection

from chainkit.identity.identifiers import MemberKind, parse_identifier
from chainkit.protocol.log_ranges import LogRange
from chainkit.service.refusals import InvalidRequest
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, Cursor, Place, TopicKind
from chainkit_indexer.storage.blocks import read_block, read_position
from chainkit_indexer.storage.envelopes import (
    StoredEnvelope,
    read_by_originators,
    read_by_topics,
    read_highest,
    read_last_on_topics,
    read_newest,
)
from chainkit_indexer.storage.store import Store
from chainkit_node.reader_threads import ReaderThreads
from chainkit_node.storage.epoch_order import in_epoch_order
from chainkit_node.storage.held_back import without_held_back
from chainkit_node.storage.inboxes import (
    Identifier,
    find_inboxes,
    read_inbox_cursors,
    read_refused,
)
from chainkit_node.storage.range_digests import read_contents, read_highest_id
from chainkit_node.types import HeldRanges, Page, Selection

_TOPICS_AT_ONCE: Final = 200
"""Topics that one statement looks for."""
_NEWEST_AT_ONCE: Final = 50
"""Fewer topics: each envelope may have a megabyte."""
_BEHIND_ALL: Final = 2**63
"""A sequence id above all that are stored."""

_Answer = TypeVar("_Answer")


class EnvelopeLog:
    """Reads the node's database. Each method is one transaction."""

    def __init__(self, store: Store) -> None:
        """Take the database; ``close`` ends the threads, not the database."""
        self._store = store
        self._threads = ReaderThreads()

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def page(
        self, selection: Selection, limit: int, most_bytes: int, *, holds_back: bool = False
    ) -> Page:
        """Return a page of at least one envelope, if there is any, and of ``most_bytes`` at most.

        A page by originators has every envelope. A page by topics leaves out identity updates that
        are not judged or break a rule (XIP-46): for one, a client would give up the inbox. One that
        ``holds_back`` leaves messages out that come before what they name (ADR 55), and what their
        originators have behind them.
        """
        topics = selection.topics
        with self._store.reading() as connection:
            if (holds_back and topics) or any(map(_is_of_inbox, topics)):
                return self._ready(connection, selection, limit, most_bytes, holds_back)
            return _cut(self.rows(connection, selection, limit, most_bytes), limit, most_bytes)

    def _ready(
        self,
        connection: Connection,
        selection: Selection,
        limit: int,
        most_bytes: int,
        holds_back: bool,
    ) -> Page:
        cursor = dict(selection.cursor)

        def read(limit: int, *, in_time: bool = False) -> tuple[Sequence[StoredEnvelope], bool]:
            rest = replace(selection, cursor=dict(cursor))
            rows = self.rows(connection, rest, limit, most_bytes, in_time=in_time)
            return rows, _is_full(rows, limit, most_bytes)

        rows, has_more = read(limit)
        commits = list(takewhile(_is_commit, rows)) if holds_back else []
        # For more topics, the rows of several statements would have to be brought in order.
        in_time = has_more and bool(commits) and len(selection.topics) <= _TOPICS_AT_ONCE
        if commits:
            cursor[BLOCKCHAIN_ORIGINATOR_ID] = _BEHIND_ALL if in_time else commits[-1].sequence_id
        rows, has_more = read(limit, in_time=True) if in_time else (rows[len(commits) :], has_more)
        is_valid = _judgement(connection, selection.topics)
        others: list[StoredEnvelope] = []
        held: set[int] = set()
        while True:
            cursor |= {row.originator_id: row.sequence_id for row in rows}
            if holds_back:
                now_ns = time.time_ns()
                rows, waiting = without_held_back(connection, rows, selection.cursor, now_ns)
                cursor |= dict.fromkeys(waiting, _BEHIND_ALL)
                held.update(waiting)
            others += filter(is_valid, rows)
            known = others if in_time else [*commits, *others]
            if not has_more or _is_full(known, limit, most_bytes):
                break
            rows, has_more = read(limit - len(known), in_time=in_time)
        if not holds_back:
            return _cut(others, limit, most_bytes)
        seen = selection.cursor.get(BLOCKCHAIN_ORIGINATOR_ID, 0)
        ready = in_epoch_order(commits, others, seen)
        page = _cut(ready[:limit], limit, most_bytes)
        is_last = page.is_last and len(ready) == len(commits) + len(others)
        return Page(sorted(page.rows, key=_place), is_last, frozenset(held))

    def reading(self) -> AbstractContextManager[Connection]:
        """Begin a transaction in which several queries see the same state."""
        return self._store.reading()

    @staticmethod
    def refused(
        connection: Connection, rows: Iterable[StoredEnvelope]
    ) -> Collection[tuple[int, int]]:
        """Return originator and sequence ids of the updates among some envelopes that break a rule.

        All updates must have been judged.
        """
        inbox_ids = {row.topic[1:] for row in rows if _is_of_inbox(row.topic)}
        return read_refused(connection, inbox_ids) if inbox_ids else ()

    @staticmethod
    def rows(
        connection: Connection,
        selection: Selection,
        limit: int,
        most_bytes: int | None = None,
        *,
        in_time: bool = False,
    ) -> Sequence[StoredEnvelope]:
        """Return a page within a transaction, with the updates that break a rule.

        The page ends with the first envelope that goes beyond ``most_bytes``. One ``in_time`` has
        the first envelopes by ``in_time_order``, of topics that one statement looks for.
        """
        cursor, now, some = selection.cursor, _now(), selection.originator_ids
        if not selection.topics:
            return read_by_originators(connection, some, cursor, limit, now, most_bytes)
        rows: Sequence[StoredEnvelope] = ()
        for topics in _portions(sorted(selection.topics)):
            page = read_by_topics(
                connection, topics, cursor, limit, now, most_bytes, in_time=in_time
            )
            if in_time:
                return page
            # Each page is in order, so the first rows of the merged pages are a page again.
            merged = heapq.merge(rows, page, key=_place)
            rows = list(islice(merged, limit))
            if most_bytes is not None:
                rows = rows[: _count_within(rows, most_bytes) + 1]
        return rows

    def chain_cursor(self) -> Mapping[int, int]:
        """Return the last sequence id of each of the chain's originators, 0 before the first."""
        with self._store.reading() as connection:
            return self._chain_cursor(connection)

    def judged_cursor(self, connection: Connection) -> Mapping[int, int]:
        """Return up to where the identity updates of each of the chain's originators are judged."""
        judged = read_inbox_cursors(connection)
        return {each: judged.get(each, 0) for each in self._chain_cursor(connection)}

    def served_cursor(self, connection: Connection) -> Mapping[int, int]:
        """Return the id up to which each originator is served: the chain's as far as judged."""
        return read_highest(connection) | dict(self.judged_cursor(connection))

    def cursor_at(self, connection: Connection, block_number: int) -> Mapping[int, int]:
        """Return the chain's cursor after a known block; all zeros after an unknown block."""
        block = read_block(connection, block_number)
        return self._before_first() if block is None else block.sequence_ids

    @property
    def sparse_ids(self) -> Collection[int]:
        """The chain's originators whose payloads come under any sequence ids (ADR 50)."""
        return self._store.identity.sparse_originator_ids

    def position(self, topics: Collection[bytes]) -> tuple[Cursor, Mapping[bytes, tuple[int, int]]]:
        """Return the node's cursor, and the latest payload that the chain has on each topic.

        The latter as its sequence id, and its time in nanoseconds; both are 0 where there is none.
        """
        with self._store.reading() as connection:
            chain = self._chain_cursor(connection)
            latest: dict[bytes, tuple[int, int]] = {}
            for some in _portions(list(topics)):
                latest |= read_last_on_topics(connection, some, chain)
            return Cursor(read_highest(connection) | dict(chain)), latest

    async def read_page(
        self, selection: Selection, limit: int, most_bytes: int, *, holds_back: bool = False
    ) -> Page:
        """Return ``page``, read in a thread."""
        return await self.in_thread(
            lambda: self.page(selection, limit, most_bytes, holds_back=holds_back)
        )

    async def newest(
        self, topics: Sequence[bytes], most_bytes: int
    ) -> Mapping[bytes, StoredEnvelope]:
        """Return the newest envelope of each topic that has one.

        Raises InvalidRequest where these envelopes have more bytes together.
        """

        def read() -> Mapping[bytes, StoredEnvelope]:
            found: dict[bytes, StoredEnvelope] = {}
            with self._store.reading() as connection:
                for some in _portions(topics, _NEWEST_AT_ONCE):
                    found |= read_newest(connection, some, _now())
                    if _size(found.values()) > most_bytes:
                        expected = f"some whose newest envelopes have {most_bytes} bytes at most"
                        raise InvalidRequest("topics", expected, "more; ask for fewer at a time")
            return found

        return await self.in_thread(read)

    async def inbox_ids(self, asked: Sequence[tuple[str, MemberKind]]) -> Sequence[str | None]:
        """Return the inbox id of each identifier, in hex, or None where it has none."""

        def read() -> Sequence[str | None]:
            keys = [_key(text, kind) for text, kind in asked]
            with self._store.reading() as connection:
                found = find_inboxes(connection, frozenset(key for key in keys if key))
            return [found[key].hex() if key and key in found else None for key in keys]

        return await self.in_thread(read)

    async def read_ranges(
        self, originator_id: int, through: int, ranges: Sequence[LogRange]
    ) -> HeldRanges:
        """Return the contents of ranges of a node's ids, up to ``through`` or to the highest id.

        Raises InvalidRequest for an originator of the chain, and StoreUnavailable while the
        ranges' digests are being computed.
        """
        if originator_id in self._before_first():
            raise InvalidRequest("originator", "a node", f"{originator_id}, which is the chain's")

        def read() -> HeldRanges:
            with self._store.reading() as connection:
                highest = read_highest_id(connection, originator_id)
                end = min(through, highest)
                contents = read_contents(connection, originator_id, end, ranges, _now())
                return HeldRanges(highest, contents)

        return await self.in_thread(read)

    async def in_thread(self, read: Callable[[], _Answer]) -> _Answer:
        """Run a database query in a thread; the caller of a request has a share of the threads."""
        return await self._threads.run(read)

    def _chain_cursor(self, connection: Connection) -> Mapping[int, int]:
        position = read_position(connection)
        if position is not None:
            return position.sequence_ids
        return self._before_first()

    def _before_first(self) -> Mapping[int, int]:
        return {contract.originator_id: 0 for contract in self._store.identity.contracts}


def _is_of_inbox(topic: bytes) -> bool:
    return TopicKind.IDENTITY_UPDATE.matches(topic)


def _judgement(connection: Connection, topics: Iterable[bytes]) -> Callable[[StoredEnvelope], bool]:
    """Return what tells whether a row is no identity update, or one that keeps to the rules."""
    inbox_ids = [topic[1:] for topic in topics if _is_of_inbox(topic)]
    judged = read_inbox_cursors(connection) if inbox_ids else {}
    refused = read_refused(connection, inbox_ids) if inbox_ids else ()

    def is_valid(row: StoredEnvelope) -> bool:
        if not _is_of_inbox(row.topic):
            return True
        is_judged = row.sequence_id <= judged.get(row.originator_id, 0)
        return is_judged and (row.originator_id, row.sequence_id) not in refused

    return is_valid


def _is_commit(row: StoredEnvelope) -> bool:
    return row.originator_id == BLOCKCHAIN_ORIGINATOR_ID


def _place(row: StoredEnvelope) -> Place:
    return row.originator_id, row.sequence_id


def _is_full(rows: Sequence[StoredEnvelope], limit: int, most_bytes: int) -> bool:
    return len(rows) >= limit or _size(rows) > most_bytes


def _portions(topics: Sequence[bytes], most: int = _TOPICS_AT_ONCE) -> Iterable[Sequence[bytes]]:
    return (topics[start : start + most] for start in range(0, len(topics), most))


def _cut(rows: Sequence[StoredEnvelope], limit: int, most_bytes: int) -> Page:
    """Cut a page to ``most_bytes``; a single envelope always fits, as its publish request did."""
    count = _count_within(rows, most_bytes)
    if count < len(rows):
        return Page(rows[: max(count, 1)], is_last=False)
    return Page(rows, is_last=count < limit)


def _count_within(rows: Sequence[StoredEnvelope], most_bytes: int) -> int:
    """Count the first envelopes that have ``most_bytes`` together at most."""
    total = 0
    for count, row in enumerate(rows):
        total += len(row.envelope)
        if total > most_bytes:
            return count
    return len(rows)


def _size(rows: Iterable[StoredEnvelope]) -> int:
    return sum(len(row.envelope) for row in rows)


def _key(text: str, kind: MemberKind) -> Identifier | None:
    identifier = parse_identifier(text, kind)
    return None if identifier is None else (str(identifier.kind), identifier.value)


def _now() -> int:
    return int(time.time())
