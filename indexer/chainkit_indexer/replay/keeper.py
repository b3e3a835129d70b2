"""Keeps the signed transactions of payloads that a reorg may still drop (XIP-49 §2.1.2).

Once dropped, an endpoint may know nothing more of them, and ``chainkit index replay`` needs them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, exists, insert, select

from chainkit.chain import Endpoint
from chainkit.errors import AccessRefused, ChainError, RefusedRequest, StoreUnavailable
from chainkit.signatures import keccak256
from chainkit_indexer.monitoring.logs import LogEvent, log_event
from chainkit_indexer.replay.rebuild import rebuild_transaction
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.store import PAYLOAD_TABLES, Store, first_sequence_id_from

BATCH_TRANSACTIONS: Final = 50
"""Fetched at once: with the 128 KiB that nodes take at most, 13 MB of hex digits."""


class UnkeptTransaction(NamedTuple):
    """A transaction with a payload that is not final, by its columns."""

    transaction_hash: bytes
    block_number: int
    transaction_index: int


class RawTransactionKeeper:
    """Work for when there is nothing else to do at the head: a batch at a time."""

    def __init__(self, store: Store) -> None:
        """Keep in the node's own database."""
        self._store = store
        self._last_failure = ""

    def keep(self, endpoint: Endpoint, final_block: int) -> int:
        """Keep up to BATCH_TRANSACTIONS of what is above the final block; return how many.

        Those that became final are forgotten, unless a reorg dropped them. An error is logged,
        once: no envelope depends on this.
        """
        try:
            kept = self._keep(endpoint, final_block)
        except (ChainError, StoreUnavailable) as error:
            if str(error) != self._last_failure:
                self._last_failure = str(error)
                text = f"raw transactions are not kept for a replay: {error}"
                log_event(LogEvent("raw_transactions_unkept", text, level=logging.WARNING))
            return 0
        self._last_failure = ""
        return kept

    def _keep(self, endpoint: Endpoint, final_block: int) -> int:
        with self._store.reading() as connection:
            unkept = self._unkept(connection, final_block)
            old = select(exists().where(_is_forgettable(final_block)))
            is_anything_old = connection.scalar(old)
        raws = fetch_raw_transactions(endpoint, [row.transaction_hash for row in unkept])
        found = [
            row._asdict() | {"raw": raw}
            for row, raw in zip(unkept, raws, strict=True)
            if raw is not None
        ]
        if not found and not is_anything_old:
            return 0
        with self._store.writing() as connection:
            if found:
                connection.execute(insert(schema.raw_transactions), found)
            connection.execute(delete(schema.raw_transactions).where(_is_forgettable(final_block)))
        return len(found)

    def _unkept(self, connection: Connection, final_block: int) -> Sequence[UnkeptTransaction]:
        """Return the newest first: the newer a block is, the likelier it is dropped."""
        originator_ids = {contract.originator_id for contract in self._store.identity.contracts}
        found: dict[bytes, UnkeptTransaction] = {}
        for table in PAYLOAD_TABLES:
            kept = schema.raw_transactions.c.transaction_hash == table.c.transaction_hash
            query = select(
                table.c.transaction_hash, table.c.block_number, table.c.transaction_index
            ).where(~exists().where(kept))
            for originator_id in sorted(originator_ids):
                lowest = first_sequence_id_from(connection, table, originator_id, final_block + 1)
                if lowest is None:
                    continue
                part = query.where(
                    table.c.originator_id == originator_id, table.c.sequence_id >= lowest
                )
                newest = part.order_by(table.c.sequence_id.desc()).limit(BATCH_TRANSACTIONS)
                rows = (UnkeptTransaction(*row) for row in connection.execute(newest))
                found.update((row.transaction_hash, row) for row in rows)
        return sorted(found.values(), key=lambda row: -row.block_number)[:BATCH_TRANSACTIONS]


def fetch_raw_transactions(endpoint: Endpoint, hashes: Sequence[bytes]) -> list[bytes | None]:
    """Return signed transactions, each proved by its hash, None where that cannot be had.

    Where the endpoint does not offer ``eth_getRawTransactionByHash``, they are put together from
    their fields.
    """
    if not hashes:
        return []
    try:
        return endpoint.raw_transactions(hashes)
    except AccessRefused:
        raise
    except RefusedRequest:
        return _rebuilt(endpoint, hashes)


def _rebuilt(endpoint: Endpoint, hashes: Sequence[bytes]) -> list[bytes | None]:
    answers = endpoint.batch(
        [("eth_getTransactionByHash", ("0x" + each.hex(),)) for each in hashes]
    )
    raws: list[bytes | None] = []
    for transaction_hash, answer in zip(hashes, answers, strict=True):
        subject = f"transaction 0x{transaction_hash.hex()}"
        raw = None if answer is None else endpoint.parsed(subject, rebuild_transaction, answer)
        # Chains have types of their own, with fields that are not known here.
        raws.append(raw if raw is not None and keccak256(raw) == transaction_hash else None)
    return raws


def _is_forgettable(final_block: int) -> ColumnElement[bool]:
    raws, journal = schema.raw_transactions, schema.journal
    is_dropped = exists().where(
        journal.c.transaction_hash == raws.c.transaction_hash,
        journal.c.outcome == schema.DROPPED,
    )
    return (raws.c.block_number <= final_block) & ~is_dropped
