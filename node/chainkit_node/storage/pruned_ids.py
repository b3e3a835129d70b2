"""Which sequence ids were pruned (``id_blocks.py``), and when a block is looked through again.

Rows are only written by ``node prune``, and never lost: a peer that compares logs learns from them
that nothing was omitted.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select

from chainkit_node.storage import schema
from chainkit_node.storage.id_blocks import IdBlocks

_rows: Final = schema.pruned_blocks.c

PRUNED: Final = IdBlocks(schema.pruned_blocks, {"due_at": 0})
"""Added to in the transaction that deletes the envelopes."""


def read_due(connection: Connection, originator_id: int, number: int) -> int:
    """Return when a block is to be looked through again, in seconds since 1970; 0 for at once."""
    key = {"originator_id": originator_id, "number": number}
    return connection.scalar(select(_rows.due_at).filter_by(**key)) or 0


def set_due(connection: Connection, originator_id: int, number: int, due_at: int) -> None:
    """Record when a block is to be looked through again."""
    PRUNED.write(connection, originator_id, number, {"due_at": due_at})
