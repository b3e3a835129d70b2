"""The history of a sequence id: all that a node ever served or quarantined under the id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from chainkit_indexer.storage import schema
from chainkit_indexer.storage.blocks import read_final_block, read_position
from chainkit_indexer.storage.store import Store


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload under a sequence id, and the log that it came from."""

    sequence_id: int
    is_served: bool
    """False for what is, or was, in quarantine."""
    block_number: int
    block_hash: bytes
    transaction_hash: bytes
    log_index: int
    envelope: bytes | None
    """As served; None in quarantine."""
    reason: str | None
    """Why the payload is in quarantine; None where it is served, or where a reorg took it back."""


@dataclass(frozen=True, slots=True)
class Retraction:
    """A payload that a reorg took back."""

    payload: Payload
    reorg_id: int
    ancestor_number: int
    """The reorg replaced the blocks above this one."""
    outcome: str
    """``kept``, ``moved`` or ``dropped``."""
    new_sequence_id: int | None
    """The sequence id to which the payload moved."""


@dataclass(frozen=True, slots=True)
class History:
    """A node's records of a sequence id, oldest first."""

    originator_id: int
    sequence_id: int
    retracted: tuple[Retraction, ...]
    arrived: tuple[Retraction, ...]
    """Payloads that had other sequence ids and were moved to this one."""
    current: Payload | None
    """The record that is current."""
    is_final: bool
    """Whether ``current`` never changes any more."""
    confirmations: int
    """Blocks from that of ``current`` to the cursor, both included; 0 where there is none."""

    @property
    def is_known(self) -> bool:
        """Whether the id was ever used."""
        return self.current is not None or bool(self.retracted)


def read_history(store: Store, originator_id: int, sequence_id: int) -> History:
    """Return the life of a sequence id, as of one moment."""
    with store.reading() as connection:
        position, final_block = read_position(connection), read_final_block(connection)
        current = _current(connection, originator_id, sequence_id)
        retracted = tuple(_retracted(connection, originator_id, sequence_id))
        transactions = {entry.payload.transaction_hash for entry in retracted}
        if current is not None:
            transactions.add(current.transaction_hash)
        arrived = tuple(_arrived(connection, originator_id, sequence_id, transactions))
    cursor = position.header.number if position else 0
    return History(
        originator_id=originator_id,
        sequence_id=sequence_id,
        retracted=retracted,
        arrived=arrived,
        current=current,
        is_final=current is not None and current.block_number <= final_block,
        confirmations=cursor - current.block_number + 1 if current else 0,
    )


def _current(connection: Connection, originator_id: int, sequence_id: int) -> Payload | None:
    for source in (schema.chain_envelopes, schema.quarantine):
        query = select(source).where(
            source.c.originator_id == originator_id, source.c.sequence_id == sequence_id
        )
        if (row := connection.execute(query).mappings().one_or_none()) is not None:
            return _payload(row, is_served=source is schema.chain_envelopes)
    return None


def _retracted(
    connection: Connection, originator_id: int, sequence_id: int
) -> Iterator[Retraction]:
    journal = schema.journal.c
    return _journalled(
        connection, journal.originator_id == originator_id, journal.sequence_id == sequence_id
    )


def _arrived(
    connection: Connection, originator_id: int, sequence_id: int, transactions: set[bytes]
) -> Iterator[Retraction]:
    """Find by the index over transactions: a payload keeps its transaction when it moves."""
    journal = schema.journal.c
    return _journalled(
        connection,
        journal.originator_id == originator_id,
        journal.new_sequence_id == sequence_id,
        journal.transaction_hash.in_(sorted(transactions)),
    )


def _journalled(connection: Connection, *conditions: Any) -> Iterator[Retraction]:
    journal, reorgs = schema.journal, schema.reorgs
    query = (
        select(journal, reorgs.c.ancestor_number)
        .join(reorgs, reorgs.c.id == journal.c.reorg_id)
        .where(*conditions)
        .order_by(journal.c.reorg_id, journal.c.sequence_id)
    )
    for row in connection.execute(query).mappings():
        yield Retraction(
            payload=_payload(row, is_served=row["envelope"] is not None),
            reorg_id=row["reorg_id"],
            ancestor_number=row["ancestor_number"],
            outcome=row["outcome"],
            new_sequence_id=row["new_sequence_id"],
        )


def _payload(row: Mapping[Any, Any], is_served: bool) -> Payload:
    return Payload(
        sequence_id=row["sequence_id"],
        is_served=is_served,
        block_number=row["block_number"],
        block_hash=row["block_hash"],
        transaction_hash=row["transaction_hash"],
        log_index=row["log_index"],
        envelope=row["envelope"] if is_served else None,
        reason=row.get("reason"),
    )
