"""Payloads that were posted and are never served, for an operator who asks why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from chainkit.text.printable import printable
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.store import Store


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A quarantined payload, with bytes as strangers posted them."""

    originator_id: int
    sequence_id: int
    block_number: int
    block_hash: bytes
    transaction_hash: bytes
    log_index: int
    contract: bytes
    identifier: bytes
    """Group id or inbox id."""
    payload: bytes
    reason: str


def list_quarantine(
    store: Store, reason: str | None = None, from_block: int = 0, limit: int | None = None
) -> list[Quarantined]:
    """Return quarantined payloads in the order of their sequence ids."""
    table = schema.quarantine
    query = _query().where(table.c.block_number >= from_block).limit(limit)
    if reason is not None:
        query = query.where(table.c.reason.startswith(reason, autoescape=True))
    with store.reading() as connection:
        ordered = query.order_by(*table.primary_key.columns)
        return [Quarantined(**row) for row in connection.execute(ordered).mappings()]


def find_quarantined(store: Store, originator_id: int, sequence_id: int) -> Quarantined | None:
    """Return one quarantined payload, or None where this sequence id has none."""
    table = schema.quarantine.c
    query = _query().where(table.originator_id == originator_id, table.sequence_id == sequence_id)
    with store.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return None if row is None else Quarantined(**row)


def preview(data: bytes, most: int) -> str:
    """Write the first bytes of a stranger's payload so that no terminal acts on them."""
    text = printable(data[:most].decode("latin-1"))
    return f"{text}…" if len(data) > most else text


def _query() -> Select[Any]:
    return select(*(schema.quarantine.c[name] for name in Quarantined.__slots__))
