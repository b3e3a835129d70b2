"""The known blocks, from the final one to the head, and the cursor among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update

from chainkit.types import BlockHeader, BlockReference
from chainkit_indexer.finality import NOTHING_FINAL
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.cursor_text import decode_sequence_ids, encode_sequence_ids
from chainkit_indexer.types import IndexedBlock

BLOCK_COLUMNS: Final = ("number", "hash", "parent_hash", "timestamp", "sequence_ids")


def read_cursor(connection: Connection) -> BlockReference | None:
    """Return the block up to which the chain was followed, by reference."""
    query = select(schema.cursor.c.block_number, schema.cursor.c.block_hash)
    row = connection.execute(query).one_or_none()
    return None if row is None else BlockReference(*row)


def read_position(connection: Connection) -> IndexedBlock | None:
    """Return the block at the cursor, or None before the first page."""
    query = select(schema.blocks).join(
        schema.cursor, schema.cursor.c.block_number == schema.blocks.c.number
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else as_block(row)


def read_block(connection: Connection, number: int) -> IndexedBlock | None:
    """Return the known block of a height, or None where no block is known."""
    query = select(schema.blocks).where(schema.blocks.c.number == number)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else as_block(row)


def read_oldest_block(connection: Connection) -> IndexedBlock:
    """Return the lowest known block; there must be one."""
    query = select(schema.blocks).order_by(schema.blocks.c.number).limit(1)
    return as_block(connection.execute(query).mappings().one())


def read_final_block(connection: Connection) -> int:
    """Return the height up to which nothing changes any more; NOTHING_FINAL before."""
    found = connection.scalar(select(schema.cursor.c.final_block_number))
    return NOTHING_FINAL if found is None else found


def as_block(row: Mapping[Any, Any]) -> IndexedBlock:
    """Return the block of a row of ``blocks``."""
    header = BlockHeader(row["number"], row["hash"], row["parent_hash"], row["timestamp"])
    return IndexedBlock(header, decode_sequence_ids(row["sequence_ids"]))


def block_values(block: IndexedBlock) -> tuple[Any, ...]:
    """Return a block's row, in the order of BLOCK_COLUMNS."""
    header = block.header
    return (
        header.number,
        header.hash,
        header.parent_hash,
        header.timestamp,
        encode_sequence_ids(block.sequence_ids),
    )


def move_cursor(
    connection: Connection, block: IndexedBlock, is_first: bool, final_block: int
) -> None:
    """Move the cursor, and the final block; ``is_first`` makes the row."""
    row = {
        "block_number": block.header.number,
        "block_hash": block.header.hash,
        "sequence_ids": encode_sequence_ids(block.sequence_ids),
        "final_block_number": min(final_block, block.header.number),
    }
    statement = insert(schema.cursor) if is_first else update(schema.cursor)
    connection.execute(statement.values(row | {"id": 1}))
