"""What a reorg took back, and what became of it.

Nothing that was served is deleted: it moves to the journal as dropped. When a later page holds
the same payload of the same transaction again, the entry becomes kept (same sequence id) or
moved (another one). An entry that stays dropped is not on the chain.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    delete,
    func,
    insert,
    literal,
    null,
    select,
    update,
)

from chainkit_indexer import schema
from chainkit_indexer.types import IndexedBlock, PageRows

_LOOKUP_CHUNK: Final = 500
"""Transactions looked up by one statement: databases limit its parameters."""


@dataclass(frozen=True, slots=True, order=True)
class Retracted:
    """A journal entry whose payload was not seen again so far; fields are columns."""

    reorg_id: int
    originator_id: int
    sequence_id: int
    transaction_hash: bytes
    payload_digest: bytes


def match_outcomes(
    retracted: Iterable[Retracted], rows: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Retracted, int]]:
    """Pair journal entries with rows of the same payload; yield the entry and its new id.

    One row answers one entry, because a single transaction may post the same payload more than
    once: first those of equal sequence id, then the others, the lowest first. ``rows`` come in
    chain order, and all of a transaction's come together.
    """
    entries, others = sorted(retracted), []
    at_its_id = {(_payload_of(entry), entry.sequence_id): entry for entry in entries}
    kept: set[Retracted] = set()
    for row in rows:
        payload = row["transaction_hash"], row["payload_digest"]
        if (entry := at_its_id.get((payload, row["sequence_id"]))) is None:
            others.append((payload, row["sequence_id"]))
            continue
        kept.add(entry)
        yield entry, row["sequence_id"]
    waiting: defaultdict[tuple[bytes, bytes], deque[Retracted]] = defaultdict(deque)
    for entry in entries:
        if entry not in kept:
            waiting[_payload_of(entry)].append(entry)
    for payload, sequence_id in others:
        if left := waiting.get(payload):
            yield left.popleft(), sequence_id


def _payload_of(entry: Retracted) -> tuple[bytes, bytes]:
    return entry.transaction_hash, entry.payload_digest


def insert_reorg(connection: Connection, position: IndexedBlock, ancestor: IndexedBlock) -> int:
    """Write down that the chain forked off above ``ancestor``; return the reorg's id, from 1."""
    latest = connection.execute(select(func.max(schema.reorgs.c.id))).scalar_one()
    reorg_id: int = (latest or 0) + 1
    connection.execute(
        insert(schema.reorgs).values(
            id=reorg_id,
            ancestor_number=ancestor.header.number,
            ancestor_hash=ancestor.header.hash,
            old_head_number=position.header.number,
            old_head_hash=position.header.hash,
            depth=position.header.number - ancestor.header.number,
        )
    )
    return reorg_id


def retract_above(connection: Connection, table: Table, height: int, reorg_id: int) -> int:
    """Move the rows of a payload table above a height to the journal; return how many."""
    journal = schema.journal
    is_above = table.c.block_number > height
    columns: list[ColumnElement[Any]] = [c for c in table.c if c.name in journal.c]
    if "envelope" not in table.c:
        columns.append(null().label("envelope"))
    query = select(
        literal(reorg_id).label("reorg_id"), *columns, literal(schema.DROPPED).label("outcome")
    ).where(is_above)
    names = [column.name for column in query.selected_columns]
    connection.execute(insert(journal).from_select(names, query))
    return connection.execute(delete(table).where(is_above)).rowcount


def record_outcomes(connection: Connection, rows: PageRows) -> None:
    """Mark the journal entries whose payloads a new page holds as kept or moved."""
    new = sorted((*rows.envelopes, *rows.quarantine), key=lambda row: row["sequence_id"])
    retracted = _dropped_of(connection, sorted({row["transaction_hash"] for row in new}))
    for entry, sequence_id in match_outcomes(retracted, new):
        _record_outcome(connection, entry, sequence_id)


def _dropped_of(connection: Connection, transactions: Sequence[bytes]) -> list[Retracted]:
    journal = schema.journal
    columns = [journal.c[field.name] for field in fields(Retracted)]
    found: list[Retracted] = []
    for start in range(0, len(transactions), _LOOKUP_CHUNK):
        chunk = transactions[start : start + _LOOKUP_CHUNK]
        query = select(*columns).where(
            journal.c.transaction_hash.in_(chunk), journal.c.outcome == schema.DROPPED
        )
        found.extend(Retracted(*row) for row in connection.execute(query))
    return found


def _record_outcome(connection: Connection, entry: Retracted, sequence_id: int) -> None:
    journal = schema.journal
    is_kept = entry.sequence_id == sequence_id
    statement = update(journal).where(
        journal.c.reorg_id == entry.reorg_id,
        journal.c.originator_id == entry.originator_id,
        journal.c.sequence_id == entry.sequence_id,
    )
    if is_kept:
        connection.execute(statement.values(outcome=schema.KEPT))
    else:
        connection.execute(statement.values(outcome=schema.MOVED, new_sequence_id=sequence_id))
