"""Gives accepted payloads their sequence ids, in one thread and one transaction for all that wait.

Theory of operation. Ids are last + 1 onwards, and the time is the clock's, or at least a nanosecond
after the last envelope's, so both rise when the clock does not (XIP-49 §3.2.2, §3.3.5). Where the
clock went so far back that this time would count as future-dated, the node waits for the clock.
``last`` is read from the table in the same transaction that inserts: a transaction that is undone,
also by SIGKILL, has given no id to anybody. Envelopes that were signed in such a transaction never
left the process. Only after the commit are the stored bytes answered and published.

A payload that names a commit gets a later time than the commit, which is up to two seconds ahead
of the clock (ADR 45). Several nodes follow one commit at once, and today's clients lose one of two
messages of a group that have one time: so each node takes times that the others leave out.

A commit whose own answer was lost may have stored its envelopes all the same. Their payers got an
error; the streams get these envelopes with the next commit, before the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import StoreError
from chainkit.protocol.chain_time import NANOSECONDS_PER_PAYLOAD
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.received_envelope import MOST_SECONDS_AHEAD
from chainkit.service.database_away import database_away
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.storage.envelopes import StoredEnvelope, read_by_originators, read_last
from chainkit_indexer.storage.store import Store
from chainkit_node.group_thread import GroupThread
from chainkit_node.originating.sequence_record import SequenceRecord, database_older
from chainkit_node.storage.charges import insert_charges
from chainkit_node.types import NewEnvelope

MOST_PER_COMMIT: Final = 1_000
"""Envelopes that one transaction stores, but for those of one larger request."""

MOST_WAITING_SECONDS: Final = 5.0
"""For how long a publish waits for its turn before others are refused."""

_MOST_FOLLOWED_NS: Final = 60 * NANOSECONDS_PER_SECOND
"""How far ahead of the clock a commit's time is followed: a chain whose clock is wrong must not
make this node's envelopes count as future-dated."""

_LANES: Final = 99
"""Nodes that never give the same time after a commit: ids are multiples of 100."""

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
        fell_back: Callable[[int], None] = lambda signed_id: None,
    ) -> None:
        """Take the database, the registry's id of the node, or its refusal, and the key.

        ``clock_ns`` counts from 1970. Without a record, a database that was restored from an older
        copy is noticed only while the process runs, as where a standby without the last commits
        takes the primary's place: ``fell_back`` gets the last id that was signed.
        """
        self._store = store
        self._node_id = node_id
        self._key = key
        self._clock_ns = clock_ns
        self._publish = publish
        self._record = record
        self._fell_back = fell_back
        self._known: dict[int, int] = {}
        """Last sequence id of each node id that was published, or was stored before the start."""
        self._thread = GroupThread[_Waiting](
            "sequencer",
            self._store_all,
            lambda each: len(each.payloads),
            MOST_PER_COMMIT,
            most_seconds=MOST_WAITING_SECONDS,
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
            refusal = _refusal(error)
            for each in live:
                each.answer.set_exception(refusal)
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
        with self._store.writing(answers=True) as connection:
            last_id, last_ns = read_last(connection, node_id) or (0, 0)
            self._check_not_older(node_id, last_id)
            self._publish_missed(connection, node_id, last_id)
            if self._record is not None:
                last_id = self._record.last_id(node_id, last_id)
            now_ns = self._clock_ns()
            times = list(_times(payloads, node_id, last_ns, now_ns))
            _check_ahead(max(times, default=now_ns) - now_ns)
            timed = zip(payloads, times, strict=True)
            rows = [
                self._signed(payload, node_id, sequence_id, time_ns)
                for sequence_id, (payload, time_ns) in enumerate(timed, last_id + 1)
            ]
            self._store.insert_envelopes(connection, rows)
            charges = (
                (row.sequence_id, each.charge) for row, each in zip(rows, payloads, strict=True)
            )
            insert_charges(self._store, connection, node_id, charges)
        if self._record is not None:
            self._record.advance(node_id, last_id + len(rows))
        self._known[node_id] = last_id + len(rows)
        return rows

    def _check_not_older(self, node_id: int, last_id: int) -> None:
        known = self._known.get(node_id, 0)
        if last_id < known:
            self._fell_back(known)
            raise database_older(node_id, known, last_id, "this process")

    def _publish_missed(self, connection: Connection, node_id: int, last_id: int) -> None:
        known = self._known.setdefault(node_id, last_id)
        if known < last_id:
            cursor, count = {node_id: known}, last_id - known
            self._publish(read_by_originators(connection, [node_id], cursor, count, now=0))
            self._known[node_id] = last_id

    def _signed(
        self, payload: NewEnvelope, node_id: int, sequence_id: int, time_ns: int
    ) -> StoredEnvelope:
        expires_at = None
        if payload.retention_seconds is not None:
            expires_at = time_ns // NANOSECONDS_PER_SECOND + payload.retention_seconds
        unsigned = unsigned_originated(
            OriginatedEnvelope(node_id, sequence_id, time_ns, payload.payer_envelope, expires_at)
        )
        envelope = sign_originated(unsigned, self._key)
        return StoredEnvelope(node_id, sequence_id, time_ns, payload.topic, expires_at, envelope)


def _times(
    payloads: Iterable[NewEnvelope], node_id: int, last_ns: int, now_ns: int
) -> Iterator[int]:
    """Yield the time of each payload, all later than ``last_ns``, and each than the one before."""
    for payload in payloads:
        if now_ns < payload.after_ns <= now_ns + _MOST_FOLLOWED_NS:
            last_ns = _own_time_after(max(last_ns, payload.after_ns), node_id)
        else:
            last_ns = max(last_ns + 1, now_ns)
        yield last_ns


def _own_time_after(time_ns: int, node_id: int) -> int:
    """Return the next time of which the chain and other nodes make no use after a commit."""
    within = time_ns % NANOSECONDS_PER_PAYLOAD
    lane = 1 + node_id % _LANES
    steps = max((within - lane) // _LANES + 1, 0)
    found = lane + steps * _LANES
    if found >= NANOSECONDS_PER_PAYLOAD:
        found = NANOSECONDS_PER_PAYLOAD + lane
    return time_ns - within + found


def _check_ahead(nanoseconds: int) -> None:
    if nanoseconds > MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND:
        behind = f"{nanoseconds / NANOSECONDS_PER_SECOND:.0f} s behind; try again once it caught up"
        expected = f"one at most {MOST_SECONDS_AHEAD} s behind the last envelope's time"
        raise ClockBehind("clock", expected, behind)


def _refusal(error: Exception) -> Exception:
    if isinstance(error, StoreError):
        return database_away("publish", "a database that stores it", error)
    return error
