"""Gives accepted payloads their sequence ids, in one thread and one transaction for all that wait.

Theory of operation. Ids are last + 1 onwards, and the time is the later of the last envelope's and
the clock's, so neither goes back when the clock does (XIP-49 §3.2.2, §3.3.4). Where the clock went
so far back that this time would count as future-dated, the node waits for the clock. ``last`` is
read from the table in the same transaction that inserts: a transaction that is undone, also by
SIGKILL, has given no id to anybody. Envelopes that were signed in such a transaction never left the
process. Only after the commit are the stored bytes answered and published.

A commit whose own answer was lost may have stored its envelopes all the same. Their payers got an
error; the streams get these envelopes with the next commit, before the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.received_envelope import MOST_SECONDS_AHEAD
from chainkit.service.refusals import NotReady, Refusal
from chainkit.signatures import SigningKey
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.storage.envelopes import StoredEnvelope, read_by_originators, read_last
from chainkit_indexer.storage.store import Store
from chainkit_node.group_thread import GroupThread
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.types import NewEnvelope

MOST_PER_COMMIT: Final = 1_000
"""Envelopes that one transaction stores, but for those of one larger request."""

Publish = Callable[[Sequence[StoredEnvelope]], None]
"""Takes what was committed, in order, on the sequencer's thread."""

Answer = Future[Sequence[bytes]]
"""Has the OriginatorEnvelopes of a request, or the refusal."""


class ClockBehind(NotReady):
    """The next time that does not fall lies too far ahead of the clock (XIP-49 §3.2.7)."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    payloads: Sequence[NewEnvelope]
    answer: Answer


class Sequencer:
    """The one place that signs as originator. Runs a thread from its construction until ``close``.

    The store must be opened to write: its lock keeps a second sequencer out.
    """

    def __init__(
        self,
        store: Store,
        node_id: Callable[[], int],
        key: SigningKey,
        clock_ns: Callable[[], int],
        publish: Publish,
        record: SequenceRecord | None = None,
    ) -> None:
        """Take the database, the registry's id of the node, or its refusal, and the key.

        ``clock_ns`` counts from 1970. Without a record, a database that was restored from an older
        copy is not noticed.
        """
        self._store = store
        self._node_id = node_id
        self._key = key
        self._clock_ns = clock_ns
        self._publish = publish
        self._record = record
        self._known: dict[int, int] = {}
        """Last sequence id of each node id that was published, or was stored before the start."""
        self._thread = GroupThread[_Waiting](
            "sequencer", self._store_all, lambda each: len(each.payloads), MOST_PER_COMMIT
        )

    def submit(self, payloads: Sequence[NewEnvelope], answer: Answer | None = None) -> Answer:
        """Queue accepted payloads; the future has their OriginatorEnvelopes in the same order.

        The future is the given one, or a new one. All payloads are stored, or none is. Raises
        Overloaded where too many requests wait.
        """
        waiting = _Waiting(payloads, answer or Future())
        self._thread.put(waiting)
        return waiting.answer

    def close(self) -> None:
        """Store the waiting payloads, and end the thread."""
        self._thread.close()

    def _store_all(self, waiting: Sequence[_Waiting]) -> None:
        live = [each for each in waiting if each.answer.set_running_or_notify_cancel()]
        try:
            rows = self._commit([payload for each in live for payload in each.payloads])
        except Exception as error:
            for each in live:
                each.answer.set_exception(_refusal(error))
            return
        # Published before the answer: a payer that reads at once finds its envelopes in the stream.
        self._publish(rows)
        start = 0
        for each in live:
            end = start + len(each.payloads)
            each.answer.set_result([row.envelope for row in rows[start:end]])
            start = end

    def _commit(self, payloads: Sequence[NewEnvelope]) -> list[StoredEnvelope]:
        node_id = self._node_id()
        with self._store.writing() as connection:
            last_id, last_ns = read_last(connection, node_id) or (0, 0)
            self._publish_missed(connection, node_id, last_id)
            if self._record is not None:
                last_id = self._record.last_id(node_id, last_id)
            now = max(last_ns, self._clock_ns())
            _check_ahead(now - self._clock_ns())
            rows = [
                self._signed(payload, node_id, sequence_id, now)
                for sequence_id, payload in enumerate(payloads, last_id + 1)
            ]
            self._store.insert_envelopes(connection, rows)
        if self._record is not None:
            self._record.advance(node_id, last_id + len(rows))
        self._known[node_id] = last_id + len(rows)
        return rows

    def _publish_missed(self, connection: Connection, node_id: int, last_id: int) -> None:
        known = self._known.setdefault(node_id, last_id)
        if known < last_id:
            cursor, count = {node_id: known}, last_id - known
            self._publish(read_by_originators(connection, [node_id], cursor, count, now=0))
            self._known[node_id] = last_id

    def _signed(
        self, payload: NewEnvelope, node_id: int, sequence_id: int, now: int
    ) -> StoredEnvelope:
        expires_at = None
        if payload.retention_seconds is not None:
            expires_at = now // NANOSECONDS_PER_SECOND + payload.retention_seconds
        unsigned = unsigned_originated(
            OriginatedEnvelope(node_id, sequence_id, now, payload.payer_envelope, expires_at)
        )
        envelope = sign_originated(unsigned, self._key)
        return StoredEnvelope(node_id, sequence_id, now, payload.topic, expires_at, envelope)


def _check_ahead(nanoseconds: int) -> None:
    if nanoseconds > MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND:
        behind = f"{nanoseconds / NANOSECONDS_PER_SECOND:.0f} s behind; try again once it caught up"
        expected = f"one at most {MOST_SECONDS_AHEAD} s behind the last envelope's time"
        raise ClockBehind("clock", expected, behind)


def _refusal(error: Exception) -> Exception:
    if isinstance(error, Refusal):
        return error
    refusal = NotReady("publish", "a database that stores it", str(error))
    refusal.__cause__ = error
    return refusal
