"""The node registry's history in the operator's database: nodes, keys and status by block.

No client reads these rows, so a reorg deletes the rows that it takes back, without a journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from chainkit.contracts.followed import FollowedRegistry
from chainkit.errors import StoreError
from chainkit.types import BlockHeader, BlockReference, Node
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.store import Store


@dataclass(frozen=True, slots=True)
class RegistryUpdate:
    """A NodeUpdated of the registry (XIP-49 §2.2.1): what a node is from that log on."""

    node: Node
    block: BlockReference
    timestamp: int
    """Seconds since 1970, from the block's header."""
    log_index: int
    transaction_hash: bytes
    """32 bytes."""


@dataclass(frozen=True, slots=True)
class FollowedHistory:
    """The registry whose history a database contains, and up to which block."""

    registry: FollowedRegistry
    last: BlockReference | None
    """None before the first block."""


class RegistryHistory:
    """One registry's tables; each method is one transaction."""

    def __init__(self, store: Store, registry: FollowedRegistry) -> None:
        """Begin a history, or go on with the one that the database holds.

        Raises StoreError, and changes nothing, if the database belongs to another registry.
        """
        self._store = store
        with store.writing() as connection:
            found = read_followed_history(connection)
            if found is None:
                connection.execute(insert(schema.registry_cursor).values(_cursor_row(registry)))
            elif found.registry != registry:
                subject = f"database {store.name}"
                raise StoreError(subject, _shown(registry), _shown(found.registry))

    def position(self) -> BlockHeader | None:
        """Return the block up to which the registry was followed, or None before the first."""
        cursor, blocks = schema.registry_cursor, schema.registry_blocks
        query = select(blocks).join(cursor, cursor.c.block_number == blocks.c.number)
        with self._store.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else BlockHeader(*row)

    def blocks(self, highest: int) -> list[BlockHeader]:
        """Return the known blocks up to a height, in rising order; some may be left out."""
        blocks = schema.registry_blocks
        query = select(blocks).where(blocks.c.number <= highest).order_by(blocks.c.number)
        with self._store.reading() as connection:
            return [BlockHeader(*row) for row in connection.execute(query)]

    def nodes(self) -> list[Node]:
        """Return the registry's nodes at the cursor, in the order of their ids."""
        with self._store.reading() as connection:
            return nodes_at(connection, None)

    def append(
        self, blocks: Sequence[BlockHeader], updates: Iterable[RegistryUpdate], lowest_block: int
    ) -> None:
        """Commit updates and move the cursor to the last block; forget blocks below the lowest."""
        table = schema.registry_blocks
        new = [_block_row(block) for block in blocks if block.number >= lowest_block]
        rows = [_update_row(update_) for update_ in updates]
        with self._store.writing() as connection:
            if rows:
                connection.execute(insert(schema.registry_updates), rows)
            connection.execute(delete(table).where(table.c.number < lowest_block))
            connection.execute(insert(table), new)
            _move_cursor(connection, blocks[-1].reference)

    def retract(self, ancestor: BlockHeader) -> int:
        """Delete what lies above a common ancestor; return how many updates."""
        blocks, updates = schema.registry_blocks, schema.registry_updates
        with self._store.writing() as connection:
            above = updates.c.block_number > ancestor.number
            retracted = connection.execute(delete(updates).where(above)).rowcount
            connection.execute(delete(blocks).where(blocks.c.number > ancestor.number))
            _move_cursor(connection, ancestor.reference)
        return retracted


def read_followed_history(connection: Connection) -> FollowedHistory | None:
    """Return whose history the database holds, None where no registry was ever followed."""
    row = connection.execute(select(schema.registry_cursor)).one_or_none()
    if row is None:
        return None
    registry = FollowedRegistry(row.address, row.first_block, row.chain_id, row.genesis_hash)
    is_followed = row.block_number is not None
    last = BlockReference(row.block_number, row.block_hash) if is_followed else None
    return FollowedHistory(registry, last)


def read_updates(connection: Connection, block: int | None) -> list[RegistryUpdate]:
    """Return the updates up to and including a height, or all, in the order of the chain."""
    table = schema.registry_updates
    query = select(table).order_by(table.c.block_number, table.c.log_index)
    if block is not None:
        query = query.where(table.c.block_number <= block)
    return [_update(row) for row in connection.execute(query).mappings()]


def nodes_at(connection: Connection, block: int | None) -> list[Node]:
    """Return the registry's nodes as of a height, or of the cursor, in the order of their ids."""
    return fold_updates((), (update_.node for update_ in read_updates(connection, block)))


def fold_updates(nodes: Iterable[Node], updated: Iterable[Node]) -> list[Node]:
    """Return a listing after some updates: of each node the last entry, in the order of ids."""
    latest = {node.node_id: node for node in (*nodes, *updated)}
    return [latest[node_id] for node_id in sorted(latest)]


def _shown(registry: FollowedRegistry) -> str:
    return (
        f"the history of the registry 0x{registry.address.hex()} from block {registry.block} of "
        f"chain {registry.chain_id}, block 0 being 0x{registry.genesis_hash.hex()}"
    )


def _move_cursor(connection: Connection, block: BlockReference) -> None:
    values = {"block_number": block.number, "block_hash": block.hash}
    connection.execute(update(schema.registry_cursor).values(values))


def _cursor_row(registry: FollowedRegistry) -> dict[str, Any]:
    return {
        "id": 1,
        "chain_id": registry.chain_id,
        "genesis_hash": registry.genesis_hash,
        "address": registry.address,
        "first_block": registry.block,
    }


def _block_row(header: BlockHeader) -> dict[str, Any]:
    return {
        "number": header.number,
        "hash": header.hash,
        "parent_hash": header.parent_hash,
        "timestamp": header.timestamp,
    }


def _update_row(update_: RegistryUpdate) -> dict[str, Any]:
    return {
        "block_number": update_.block.number,
        "block_hash": update_.block.hash,
        "timestamp": update_.timestamp,
        "log_index": update_.log_index,
        "transaction_hash": update_.transaction_hash,
        "node_id": update_.node.node_id,
        "signing_key": update_.node.signing_key,
        # The bytes of the chain: where they are no UTF-8, the text has surrogates.
        "http_address": update_.node.http_address.encode(errors="surrogateescape"),
        "is_enabled": update_.node.is_enabled,
    }


def _update(row: Mapping[Any, Any]) -> RegistryUpdate:
    return RegistryUpdate(
        node=Node(
            row["node_id"],
            row["signing_key"],
            row["http_address"].decode(errors="surrogateescape"),
            row["is_enabled"],
        ),
        block=BlockReference(row["block_number"], row["block_hash"]),
        timestamp=row["timestamp"],
        log_index=row["log_index"],
        transaction_hash=row["transaction_hash"],
    )
