"""Keeps the signed transactions of payloads that a reorg may still drop (XIP-49 §2.1.2).

An endpoint may no longer know a dropped transaction, and ``chainkit index replay`` needs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Connection, Select, delete, exists, insert, select

from chainkit.chain import Endpoint
from chainkit.chain.backoff import Backoff
from chainkit.errors import (
    ChainError,
    InconsistentAnswer,
    RefusedRequest,
)
from chainkit.signatures import keccak256
from chainkit_indexer.background_task import BackgroundTask
from chainkit_indexer.replay.rebuild import rebuild_transaction
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.block_ranges import PAYLOAD_TABLES, rows_within
from chainkit_indexer.storage.store import Store

BATCH_TRANSACTIONS: Final = 50
"""Fetched at once: with the 128 KiB that nodes take at most, 13 MB of hex digits."""

PAUSE_SECONDS: Final = 2.0
"""Between two requests, unless there is more that can be had."""

LONGEST_PAUSE_SECONDS: Final = 300.0
"""After errors, and for a transaction that could not be had, the pause doubles up to this."""

MOST_ABSENT: Final = 10_000
"""So many transactions that could not be had are remembered."""

_PAUSES: Final = Backoff(PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
_ROWS_READ_AT_ONCE: Final = 500


class UnkeptTransaction(NamedTuple):
    """A transaction with a payload that is not final, as its columns."""

    transaction_hash: bytes
    block_number: int
    transaction_index: int


class RawTransactionKeeper:
    """Work for when there is nothing else to do at the head: one request at a time."""

    def __init__(
        self,
        store: Store,
        report: Callable[[Endpoint, ChainError], None] = lambda endpoint, error: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep in the node's own database; ``report`` gets errors of endpoints for their pool."""
        self._store = store
        self._report = report
        self._clock = clock
        failure = "raw transactions are not kept for a replay"
        self._task = BackgroundTask("raw_transactions_unkept", failure, _PAUSES, report, clock)
        self._absent = _AbsentTransactions(clock)
        self._without_raw: WeakKeyDictionary[Endpoint, float] = WeakKeyDictionary()

    def keep(self, endpoint: Endpoint, final_block: int) -> int:
        """Keep up to BATCH_TRANSACTIONS from above the final block; return how many.

        Most calls do nothing. The task runs every PAUSE_SECONDS, more often only while it still
        finds transactions, and less often after errors. Transactions that became final are
        forgotten, unless a reorg dropped them. An error is reported and logged, once: no envelope
        depends on this task.
        """
        kept = 0

        def piece() -> float:
            nonlocal kept
            kept, is_more = self._keep(endpoint, final_block)
            return 0.0 if is_more else PAUSE_SECONDS

        self._task.do(endpoint, piece)
        return kept

    def _keep(self, endpoint: Endpoint, final_block: int) -> tuple[int, bool]:
        """Return how many were kept, and whether there may be more that can be had."""
        self._absent.forget(final_block)
        with self._store.reading() as connection:
            unkept = self._unkept(connection, final_block)
            old = select(exists().where(_is_forgettable(final_block)))
            is_anything_old = connection.scalar(old)
        raws = self._fetch(endpoint, unkept) if unkept else []
        found = [
            row._asdict() | {"raw": raw}
            for row, raw in zip(unkept, raws or [None] * len(unkept), strict=True)
            if raw is not None
        ]
        if found or is_anything_old:
            self._write(found, final_block)
        is_full = len(unkept) == BATCH_TRANSACTIONS
        return len(found), raws is None or (is_full and bool(found))

    def _write(self, found: Sequence[dict[str, Any]], final_block: int) -> None:
        with self._store.writing() as connection:
            if found:
                connection.execute(insert(schema.raw_transactions), found)
            connection.execute(delete(schema.raw_transactions).where(_is_forgettable(final_block)))

    def _unkept(self, connection: Connection, final_block: int) -> Sequence[UnkeptTransaction]:
        """Return the newest first: the newer a block is, the likelier a reorg drops it.

        Transactions that could not be fetched before come last.
        """
        sparse = self._store.identity.sparse_originator_ids
        originator_ids = {contract.originator_id for contract in self._store.identity.contracts}
        found: dict[bytes, UnkeptTransaction] = {}
        for table in PAYLOAD_TABLES:
            kept = schema.raw_transactions.c.transaction_hash == table.c.transaction_hash
            query = select(
                table.c.transaction_hash, table.c.block_number, table.c.transaction_index
            ).where(~exists().where(kept))
            for originator_id in sorted(originator_ids):
                blocks = (final_block + 1, None)
                rows = rows_within(connection, table, table.c, originator_id, blocks, sparse)
                if rows is None:
                    continue
                order = table.c.block_number if originator_id in sparse else table.c.sequence_id
                newest = query.where(rows).order_by(order.desc())
                found |= self._newest_that_may_be_had(connection, newest)
        return sorted(found.values(), key=self._turn)[:BATCH_TRANSACTIONS]

    def _turn(self, row: UnkeptTransaction) -> tuple[int, int]:
        return self._absent.times(row.transaction_hash), -row.block_number

    def _newest_that_may_be_had(
        self, connection: Connection, query: Select[Any]
    ) -> dict[bytes, UnkeptTransaction]:
        found: dict[bytes, UnkeptTransaction] = {}
        untried: set[bytes] = set()
        streamed = query.execution_options(yield_per=_ROWS_READ_AT_ONCE)
        with connection.execute(streamed) as rows:
            for row in map(UnkeptTransaction._make, rows):
                transaction_hash = row.transaction_hash
                if not self._absent.is_resting(transaction_hash):
                    found[transaction_hash] = row
                if not self._absent.times(transaction_hash):
                    untried.add(transaction_hash)
                if len(untried) == BATCH_TRANSACTIONS:
                    break
        return found

    def _fetch(
        self, endpoint: Endpoint, wanted: Sequence[UnkeptTransaction]
    ) -> list[bytes | None] | None:
        """Return signed transactions, each proved by its hash, None where one cannot be fetched.

        One request. Where the endpoint does not offer ``eth_getRawTransactionByHash``, None is
        returned for all, and later calls rebuild the transactions from their fields.
        """
        hashes = [row.transaction_hash for row in wanted]
        is_without_raw = self._without_raw.get(endpoint, self._clock()) > self._clock()
        try:
            raws = (_rebuilt if is_without_raw else Endpoint.raw_transactions)(endpoint, hashes)
        except (RefusedRequest, InconsistentAnswer) as error:
            if is_without_raw:
                # Any transaction of the batch may be the cause: the others are tried first.
                self._absent.note(wanted)
                raise
            self._without_raw[endpoint] = self._clock() + LONGEST_PAUSE_SECONDS
            if isinstance(error, InconsistentAnswer):
                raise
            return None
        self._absent.note([row for row, raw in zip(wanted, raws, strict=True) if raw is None])
        return raws


class _AbsentTransactions:
    """Transactions that could not be had: each rests for longer each time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[bytes, tuple[int, int, float]] = {}
        """By hash: the block, the number of requests, and the end of the transaction's rest."""

    def is_resting(self, transaction_hash: bytes) -> bool:
        *_, until = self._known.get(transaction_hash, (0, 0, self._clock()))
        return until > self._clock()

    def times(self, transaction_hash: bytes) -> int:
        return self._known[transaction_hash][1] if transaction_hash in self._known else 0

    def note(self, rows: Sequence[UnkeptTransaction]) -> None:
        for row in rows:
            _, times, _ = self._known.pop(row.transaction_hash, (0, 0, 0.0))
            until = self._clock() + _PAUSES.pause(times + 1)
            self._known[row.transaction_hash] = (row.block_number, times + 1, until)
        for oldest in list(self._known)[: max(len(self._known) - MOST_ABSENT, 0)]:
            del self._known[oldest]

    def forget(self, final_block: int) -> None:
        self._known = {
            transaction_hash: known
            for transaction_hash, known in self._known.items()
            if known[0] > final_block
        }


def _rebuilt(endpoint: Endpoint, hashes: Sequence[bytes]) -> list[bytes | None]:
    answers = endpoint.transactions(hashes)
    return [_raw_of(each, answer) for each, answer in zip(hashes, answers, strict=True)]


def _raw_of(transaction_hash: bytes, answer: Any) -> bytes | None:
    # Chains have transaction types of their own, with fields that are not known here.
    try:
        raw = None if answer is None else rebuild_transaction(answer)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return raw if raw is not None and keccak256(raw) == transaction_hash else None


def _is_forgettable(final_block: int) -> ColumnElement[bool]:
    raws, journal = schema.raw_transactions, schema.journal
    is_dropped = exists().where(
        journal.c.transaction_hash == raws.c.transaction_hash,
        journal.c.outcome == schema.DROPPED,
    )
    return (raws.c.block_number <= final_block) & ~is_dropped
