"""The operator's database as a step sees it: each method is one transaction, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Self

from sqlalchemy import Connection, Table, delete, insert, inspect, select, update

from chainkit.deployment import DeploymentRecord
from chainkit.errors import StoreError
from chainkit.types import BlockHeader
from chainkit_indexer import schema
from chainkit_indexer.database import Database
from chainkit_indexer.journal import insert_reorg, record_outcomes, retract_above
from chainkit_indexer.types import IndexedBlock, PageRows, VerifiedPage


@dataclass(frozen=True, slots=True)
class Identity:
    """Which chain, deployment and key a database belongs to, for all its life."""

    chain_id: int
    genesis_hash: bytes
    """32 bytes: hash of block 0."""
    node_public_key: bytes
    """65 bytes: whose signatures the envelopes carry."""
    group_messages: bytes
    """20 bytes."""
    identity_updates: bytes
    """20 bytes."""
    first_block: int
    """Height below which the contracts have no log."""

    @classmethod
    def of(cls, record: DeploymentRecord, node_public_key: bytes) -> Self:
        """Return the identity of a node's database for a deployment."""
        return cls(
            chain_id=record.chain_id,
            genesis_hash=record.genesis_hash,
            node_public_key=node_public_key,
            group_messages=record.group_messages.address,
            identity_updates=record.identity_updates.address,
            first_block=record.first_block,
        )


class Store:
    """An opened database whose identity was checked."""

    def __init__(self, database: Database, identity: Identity) -> None:
        """Use ``open`` or ``open_existing``."""
        self._database = database
        self.identity = identity

    @classmethod
    def open(cls, location: str, identity: Identity) -> Self:
        """Open a node's database, or make it where there is none.

        Raises StoreError, and changes nothing, where it belongs to another chain, deployment or
        key, or is no indexer's database at all.
        """
        database = Database(location)
        database.check_file(create=True)
        with database.reading() as connection:
            found = _read_identity(connection, database.name)
        if found is None:
            database.prepare()
            with database.writing() as connection:
                # Another process may have been faster.
                found = _read_identity(connection, database.name)
                if found is None:
                    found = _create(connection, identity)
        _check_identity(database.name, identity, found)
        return cls(database, found)

    @classmethod
    def open_existing(cls, location: str) -> Self:
        """Open a database whosever it is, to read. Raises StoreError where there is none."""
        database = Database(location)
        database.check_file(create=False)
        with database.reading() as connection:
            found = _read_identity(connection, database.name)
        if found is None:
            raise StoreError(f"database {database.name}", "an indexer's tables", "none")
        return cls(database, found)

    @property
    def name(self) -> str:
        """Path or URL without password, for messages."""
        return self._database.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run several queries that see the same state."""
        with self._database.reading() as connection:
            yield connection

    def close(self) -> None:
        """Give all connections back."""
        self._database.close()

    def position(self) -> IndexedBlock | None:
        """Return the block up to which the chain was followed, or None before the first page."""
        with self.reading() as connection:
            return read_position(connection)

    def blocks(self, highest: int) -> list[IndexedBlock]:
        """Return the known blocks up to a height, in rising order; they are consecutive."""
        query = select(schema.blocks).where(schema.blocks.c.number <= highest)
        with self.reading() as connection:
            return [_block(row) for row in connection.execute(query.order_by("number")).mappings()]

    def append(self, page: VerifiedPage, rows: PageRows, window_blocks: int) -> None:
        """Commit a page: rows, journal outcomes, known blocks and cursor.

        Blocks that are more than ``window_blocks`` below the new cursor are forgotten. Raises
        StoreError if the cursor is no longer where the page starts: somebody else writes too.
        """
        lowest = page.last.header.number - window_blocks
        with self._database.writing() as connection:
            is_first = self._check_cursor(connection, page.start)
            record_outcomes(connection, rows)
            _insert(connection, schema.envelopes, rows.envelopes)
            _insert(connection, schema.quarantine, rows.quarantine)
            new = (page.start, *page.blocks) if is_first else page.blocks
            kept = [_block_row(block) for block in new if block.header.number >= lowest]
            _insert(connection, schema.blocks, kept)
            _move_cursor(connection, page.last, is_first)
            connection.execute(delete(schema.blocks).where(schema.blocks.c.number < lowest))

    def retract(self, position: IndexedBlock, ancestor: IndexedBlock) -> tuple[int, int]:
        """Take back what lies above a common ancestor; return the reorg's id and how many rows.

        The rows move to the journal as dropped, until their payloads are seen again. Raises
        StoreError if the cursor is no longer at ``position``.
        """
        height = ancestor.header.number
        with self._database.writing() as connection:
            self._check_cursor(connection, position)
            reorg_id = insert_reorg(connection, position, ancestor)
            retracted = sum(
                retract_above(connection, table, height, reorg_id)
                for table in (schema.envelopes, schema.quarantine)
            )
            _move_cursor(connection, ancestor, is_first=False)
            connection.execute(delete(schema.blocks).where(schema.blocks.c.number > height))
        return reorg_id, retracted

    def _check_cursor(self, connection: Connection, expected: IndexedBlock) -> bool:
        found = read_position(connection)
        if found is not None and found.header.reference != expected.header.reference:
            raise StoreError(
                f"database {self.name}",
                f"the cursor at block {expected.header.reference}",
                f"block {found.header.reference}",
                "another process writes to it",
            )
        return found is None


def read_position(connection: Connection) -> IndexedBlock | None:
    """Return the block at the cursor, or None before the first page."""
    query = select(schema.blocks).join(
        schema.cursor, schema.cursor.c.block_number == schema.blocks.c.number
    )
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _block(row)


def _read_identity(connection: Connection, name: str) -> Identity | None:
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return None
    if not tables >= set(schema.metadata.tables):
        raise StoreError(f"database {name}", "an indexer's tables", ", ".join(sorted(tables)))
    row = connection.execute(select(schema.identity)).mappings().one_or_none()
    if row is None:
        raise StoreError(f"database {name}", "a row in the table identity", "none")
    if (version := row["schema_version"]) != schema.SCHEMA_VERSION:
        raise StoreError(f"database {name}", f"schema version {schema.SCHEMA_VERSION}", version)
    return Identity(**{field.name: row[field.name] for field in fields(Identity)})


def _create(connection: Connection, identity: Identity) -> Identity:
    schema.metadata.create_all(connection)
    row = {field.name: getattr(identity, field.name) for field in fields(Identity)}
    row |= {"id": 1, "schema_version": schema.SCHEMA_VERSION}
    _insert(connection, schema.identity, [row])
    return identity


def _check_identity(name: str, expected: Identity, found: Identity) -> None:
    for field in fields(Identity):
        wanted, got = getattr(expected, field.name), getattr(found, field.name)
        if wanted != got:
            what = field.name.replace("_", " ")
            raise StoreError(f"database {name}", f"{what} {_shown(wanted)}", _shown(got))


def _shown(value: int | bytes) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else str(value)


def _insert(connection: Connection, table: Table, rows: Any) -> None:
    if rows:
        connection.execute(insert(table), list(rows))


def _block(row: Mapping[Any, Any]) -> IndexedBlock:
    header = BlockHeader(row["number"], row["hash"], row["parent_hash"], row["timestamp"])
    return IndexedBlock(header, row["last_sequence_id"])


def _block_row(block: IndexedBlock) -> dict[str, Any]:
    header = block.header
    return {
        "number": header.number,
        "hash": header.hash,
        "parent_hash": header.parent_hash,
        "timestamp": header.timestamp,
        "last_sequence_id": block.last_sequence_id,
    }


def _move_cursor(connection: Connection, block: IndexedBlock, is_first: bool) -> None:
    row = {
        "block_number": block.header.number,
        "block_hash": block.header.hash,
        "last_sequence_id": block.last_sequence_id,
    }
    statement = insert(schema.cursor) if is_first else update(schema.cursor)
    connection.execute(statement.values(row | {"id": 1}))
