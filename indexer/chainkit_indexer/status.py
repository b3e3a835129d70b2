"""What an operator asks a database: how far, how much, and which reorgs there were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from chainkit.cli.options import hex0x
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, BlockReference
from chainkit_indexer import schema
from chainkit_indexer.store import Identity, Store, read_position


@dataclass(frozen=True, slots=True)
class ReorgSummary:
    """A reorg and what became of the payloads that it took back."""

    reorg_id: int
    ancestor: BlockReference
    old_head: BlockReference
    depth: int
    kept: int
    moved: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Status:
    """One state of a database."""

    database: str
    identity: Identity
    cursor: BlockReference | None
    """None before the first page."""
    sequence_ids: dict[int, int]
    """The node's cursor over originators (XIP-49 §3.2.2)."""
    envelopes: int
    quarantined: dict[str, int]
    """Reason to count."""
    reorgs: tuple[ReorgSummary, ...]


def read_status(store: Store) -> Status:
    """Return the state of a database as of one moment."""
    with store.reading() as connection:
        position = read_position(connection)
        last_sequence_id = position.last_sequence_id if position else 0
        return Status(
            database=store.name,
            identity=store.identity,
            cursor=position.header.reference if position else None,
            sequence_ids={BLOCKCHAIN_ORIGINATOR_ID: last_sequence_id},
            envelopes=connection.scalar(select(func.count()).select_from(schema.envelopes)) or 0,
            quarantined=_by_reason(connection),
            reorgs=_reorgs(connection),
        )


def _by_reason(connection: Connection) -> dict[str, int]:
    reason = schema.quarantine.c.reason
    rows = connection.execute(select(reason, func.count()).group_by(reason).order_by(reason))
    return {row[0]: row[1] for row in rows}


def _reorgs(connection: Connection) -> tuple[ReorgSummary, ...]:
    journal = schema.journal.c
    counted = select(journal.reorg_id, journal.outcome, func.count())
    outcomes = {
        (reorg_id, outcome): count
        for reorg_id, outcome, count in connection.execute(
            counted.group_by(journal.reorg_id, journal.outcome)
        )
    }
    return tuple(
        ReorgSummary(
            reorg_id=row.id,
            ancestor=BlockReference(row.ancestor_number, row.ancestor_hash),
            old_head=BlockReference(row.old_head_number, row.old_head_hash),
            depth=row.depth,
            kept=outcomes.get((row.id, schema.KEPT), 0),
            moved=outcomes.get((row.id, schema.MOVED), 0),
            dropped=outcomes.get((row.id, schema.DROPPED), 0),
        )
        for row in connection.execute(select(schema.reorgs).order_by(schema.reorgs.c.id))
    )


def as_json(status: Status) -> dict[str, Any]:
    """Return a status as scripts read it."""
    return {
        "database": status.database,
        "chain_id": status.identity.chain_id,
        "node_public_key": hex0x(status.identity.node_public_key),
        "cursor": _reference(status.cursor) if status.cursor else None,
        "sequence_ids": {str(key): value for key, value in status.sequence_ids.items()},
        "envelopes": status.envelopes,
        "quarantined": status.quarantined,
        "reorgs": [
            {
                "id": reorg.reorg_id,
                "depth": reorg.depth,
                "ancestor": _reference(reorg.ancestor),
                "old_head": _reference(reorg.old_head),
                "kept": reorg.kept,
                "moved": reorg.moved,
                "dropped": reorg.dropped,
            }
            for reorg in status.reorgs
        ],
    }


def as_text(status: Status) -> str:
    """Return a status as a person reads it."""
    lines = [
        f"database     {status.database}",
        f"chain        {status.identity.chain_id}",
        f"node         {hex0x(status.identity.node_public_key)}",
        f"cursor       {f'block {status.cursor}' if status.cursor else 'before the first block'}",
        f"sequence     {status.sequence_ids[BLOCKCHAIN_ORIGINATOR_ID]} of originator 0",
        f"envelopes    {status.envelopes}",
        f"quarantined  {sum(status.quarantined.values())}",
        *(f"             {count} {reason}" for reason, count in status.quarantined.items()),
        f"reorgs       {len(status.reorgs)}",
    ]
    lines += [
        f"             {reorg.reorg_id}: {reorg.depth} blocks above {reorg.ancestor}, "
        f"{reorg.kept} kept, {reorg.moved} moved, {reorg.dropped} dropped"
        for reorg in status.reorgs
    ]
    return "\n".join(lines)


def _reference(block: BlockReference) -> dict[str, Any]:
    return {"number": block.number, "hash": hex0x(block.hash)}
