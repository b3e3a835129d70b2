"""The operator's database for a step: each method is one transaction, all or nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Table, delete, select

from chainkit.errors import StoreError
from chainkit.types import BlockReference, TopicKind
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.block_ranges import PAYLOAD_TABLES, BlockCut, cuts_above
from chainkit_indexer.storage.blocks import (
    BLOCK_COLUMNS,
    as_block,
    block_values,
    move_cursor,
    read_block,
    read_cursor,
    read_final_block,
    read_oldest_block,
    read_position,
)
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.envelopes import StoredEnvelope, insert_envelopes
from chainkit_indexer.storage.identity import (
    Identity,
    check_identity,
    insert_identity,
    read_identity,
)
from chainkit_indexer.storage.journal import (
    find_final_above,
    insert_reorg,
    insert_reorg_between,
    record_outcomes,
    retract_after,
    retract_inboxes,
)
from chainkit_indexer.storage.migrate import check_revision, create
from chainkit_indexer.storage.provenance import cut_runs, extend_runs
from chainkit_indexer.storage.repeated import without_repeated
from chainkit_indexer.types import (
    ENVELOPE_COLUMNS,
    LOG_COLUMNS,
    QUARANTINE_COLUMNS,
    CursorState,
    IndexedBlock,
    PageRows,
    PlacedEvent,
    ProvenanceRun,
    VerifiedPage,
)


class Store:
    """An opened database whose identity was checked.

    One thread follows the chain; other threads may read, and write by ``writing``.
    """

    def __init__(self, database: Database, identity: Identity) -> None:
        """Use ``open`` or ``open_existing``."""
        self._database = database
        self.identity = identity
        self._cursor_state: CursorState | None = None
        self._numbers = itertools.count(1)
        self.generation = 0
        """Another number behind each transaction of ``writing`` and each error of the database."""

    @classmethod
    def open(cls, location: str, identity: Identity) -> Self:
        """Open a node's database to write, or make it where there is none.

        Raises StoreInUse where another indexer has the database, and StoreError, and changes
        nothing, where it belongs to another chain, deployment or key, or is no indexer's database
        at all.
        """
        database = Database(location)
        try:
            database.check_file(create=True)
            database.lock()
            if check_revision(database) is None:
                create(database)
            with database.writing() as connection:
                found = read_identity(connection)
                if found is None:
                    insert_identity(connection, identity)
            found = found or identity
            check_identity(database.name, identity, found)
        except BaseException:
            database.close()
            raise
        return cls(database, found)

    @classmethod
    def open_existing(cls, location: str) -> Self:
        """Open a database of any identity, to read. Raises StoreError where there is none."""
        return cls._open_whosever(Database(location, read_only=True))

    @classmethod
    def open_to_repair(cls, location: str) -> Self:
        """Open a database of any identity, to write. Raises StoreError where there is none."""
        return cls._open_whosever(Database(location))

    @classmethod
    def open_beside(cls, location: str) -> Self:
        """Open a database of any identity, to write beside the process that has its lock.

        Raises StoreError where there is none.
        """
        return cls._open_whosever(Database(location, beside=True))

    @classmethod
    def _open_whosever(cls, database: Database) -> Self:
        try:
            database.check_file(create=False)
            if not (database.is_read_only or database.is_beside):
                database.lock()
            found = None
            if check_revision(database) is not None:
                with database.reading() as connection:
                    found = read_identity(connection)
            if found is None:
                raise StoreError(f"database {database.name}", "an indexer's tables", "none")
        except BaseException:
            database.close()
            raise
        return cls(database, found)

    @property
    def name(self) -> str:
        """Path or URL without password, for messages."""
        return self._database.name

    @property
    def file(self) -> Path | None:
        """The file of SQLite; None for PostgreSQL, whose disk only its own machine can read."""
        return self._database.file

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run several queries that see the same state."""
        try:
            with self._database.reading() as connection:
                yield connection
        except StoreError:
            self.generation = next(self._numbers)
            raise

    @contextmanager
    def writing(self, *, answers: bool = False) -> Iterator[Connection]:
        """Run a transaction that excludes every other writer; an exception undoes all of it.

        With ``answers`` somebody waits for its end: other writers hold it up by two turns at most.
        """
        try:
            with self._database.writing(answers=answers) as connection:
                yield connection
        except BaseException:
            # The lock may have been lost, and another process may have moved the cursor.
            self._cursor_state = None
            raise
        finally:
            # No number comes twice, whichever of two threads is the last to set it.
            self.generation = next(self._numbers)

    def insert_envelopes(
        self, connection: Connection, rows: Sequence[StoredEnvelope | tuple[Any, ...]]
    ) -> None:
        """Insert envelopes of other originators than the chain's, within ``writing``.

        Raises StoreError where a sequence id is taken.
        """
        insert_envelopes(self._database, connection, rows)

    def insert_rows(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Any]
    ) -> None:
        """Insert rows of a table that only a node fills, within ``writing``.

        Raises StoreError where a key is taken.
        """
        self._database.insert_many(connection, table, columns, rows)

    def insert_new(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Any]
    ) -> None:
        """Insert rows as ``insert_rows`` does, but for those whose key is taken."""
        self._database.insert_many(connection, table, columns, rows, only_new=True)

    def wait_for_commit(self, seconds: float) -> bool:
        """Return True once another process may have written, False where none did in this time.

        The first call, and a call after a failure, returns at once. Only with PostgreSQL.
        """
        return self._database.wait_for_commit(seconds)

    def free_bytes(self, most: int) -> int | None:
        """Return how many bytes the database may still take; see ``Database.free_bytes``."""
        return self._database.free_bytes(most)

    def used_bytes(self) -> int:
        """Return the size of the database."""
        return self._database.used_bytes()

    def give_back(self, most_bytes: int) -> int | None:
        """Give free space back to the file system; see ``Database.give_back``."""
        return self._database.give_back(most_bytes)

    def close(self) -> None:
        """Give all connections, and the lock, back."""
        self._database.close()

    def cursor_state(self) -> CursorState:
        """Return how far the chain was followed, without a query where the state is remembered.

        The state is remembered while this store holds the lock and its last write succeeded: no
        other process can have moved the cursor. The writer still compares the state.
        """
        return self._cursor_state or self.read_cursor_state()

    def read_cursor_state(self) -> CursorState:
        """Return how far the chain was followed, and remember the state."""
        self._cursor_state = None
        with self.reading() as connection:
            found = CursorState(read_position(connection), read_final_block(connection))
        self._cursor_state = found
        return found

    def position(self) -> IndexedBlock | None:
        """Return the block up to which the chain was followed, or None before the first page."""
        with self.reading() as connection:
            return read_position(connection)

    def final_block(self) -> int:
        """Return the height up to which nothing changes any more; NOTHING_FINAL before."""
        with self.reading() as connection:
            return read_final_block(connection)

    def blocks(self, highest: int) -> list[IndexedBlock]:
        """Return the known blocks up to a height, in rising order; they are consecutive."""
        query = select(schema.blocks).where(schema.blocks.c.number <= highest)
        with self.reading() as connection:
            rows = connection.execute(query.order_by("number")).mappings()
            return [as_block(row) for row in rows]

    def block(self, number: int) -> IndexedBlock | None:
        """Return the known block of a height, or None where no block is known."""
        with self.reading() as connection:
            return read_block(connection, number)

    def append(self, page: VerifiedPage, rows: PageRows, final_block: int) -> PageRows:
        """Commit a page: rows, journal outcomes, known blocks, cursor and final block.

        Returns the rows without those under a sparse sequence id that an earlier payload has: the
        first one stays. Blocks below the final one are forgotten. Raises StoreError if the cursor
        is no longer where the page starts: somebody else writes too.
        """
        insert_many = self._database.insert_many
        with self.writing() as connection:
            found = read_cursor(connection)
            is_first = found is None
            if not is_first:
                self._check_cursor(found, page.start)
            events: Sequence[PlacedEvent] = page.events
            if sparse := self.identity.sparse_originator_ids:
                events, rows = without_repeated(connection, page, rows, sparse)
            record_outcomes(connection, events)
            insert_many(connection, schema.envelopes, ENVELOPE_COLUMNS, rows.envelopes)
            insert_many(connection, schema.envelope_logs, LOG_COLUMNS, rows.logs)
            insert_many(connection, schema.quarantine, QUARANTINE_COLUMNS, rows.quarantine)
            self._judge_again(connection, rows)
            new = (page.start, *page.blocks) if is_first else page.blocks
            # The cursor's own block is always known, even if it is final at once.
            lowest = min(final_block, page.last.header.number)
            kept = [block_values(block) for block in new if block.header.number >= lowest]
            insert_many(connection, schema.blocks, BLOCK_COLUMNS, kept)
            move_cursor(connection, page.last, is_first, final_block)
            first, last = page.blocks[0].header.number, page.last.header.number
            extend_runs(connection, ProvenanceRun(first, last, page.provenance))
            connection.execute(delete(schema.blocks).where(schema.blocks.c.number < lowest))
        self._cursor_state = CursorState(page.last, lowest)
        return rows

    def retract(
        self,
        position: IndexedBlock,
        ancestor: IndexedBlock,
        below_final: bool = False,
        rewound_to: int | None = None,
    ) -> tuple[int, int]:
        """Take back the rows above a common ancestor; return the reorg's id and their number.

        The rows move to the journal as dropped, until their payloads are seen again. Raises
        StoreError if the cursor is no longer at ``position``, or if anything final would be taken
        back, whatever is known of the ancestor. With ``below_final`` the ancestor may lie below the
        final block, and becomes the final one. ``rewound_to`` is the height that an operator asked
        for, None for a reorg of the chain.
        """
        self._cursor_state = None
        with self.writing() as connection:
            self._check_cursor(read_cursor(connection), position)
            number, final_block = ancestor.header.number, read_final_block(connection)
            cuts = self._cuts(ancestor.sequence_ids, number)
            if number >= final_block:
                self._check_above_final(connection, cuts, final_block)
            elif not below_final:
                raise self._is_final(final_block, f"those above block {number}")
            reorg_id = insert_reorg(connection, position, ancestor, rewound_to)
            retracted = _retract_rows(connection, cuts, reorg_id)
            if read_block(connection, number) is None:
                row = block_values(ancestor)
                self._database.insert_many(connection, schema.blocks, BLOCK_COLUMNS, [row])
            move_cursor(connection, ancestor, is_first=False, final_block=final_block)
            connection.execute(delete(schema.blocks).where(schema.blocks.c.number > number))
            cut_runs(connection, number)
        return reorg_id, retracted

    def retract_all(self, position: IndexedBlock) -> tuple[int, int]:
        """Take back all that was followed; return the reorg's id and the number of rows.

        For a chain that forked off below the oldest known block while nothing stored is final: the
        journal holds the rows, and the next step begins anew. The ancestor in the journal is the
        parent of the oldest known block, which may be gone, too. Raises StoreError if the cursor is
        no longer at ``position``, if the oldest known block or any row is final, or if it is block
        0, below which no chain forks.
        """
        self._cursor_state = None
        with self.writing() as connection:
            self._check_cursor(read_cursor(connection), position)
            oldest = read_oldest_block(connection).header
            final_block = read_final_block(connection)
            if oldest.number <= max(final_block, 0):
                raise self._is_final(max(final_block, 0), f"those from block {oldest.number} on")
            before = dict.fromkeys(
                (contract.originator_id for contract in self.identity.contracts), 0
            )
            cuts = self._cuts(before, oldest.number - 1)
            self._check_above_final(connection, cuts, final_block)
            parent = BlockReference(oldest.number - 1, oldest.parent_hash)
            reorg_id = insert_reorg_between(connection, position.header.reference, parent)
            retracted = _retract_rows(connection, cuts, reorg_id)
            connection.execute(delete(schema.cursor))
            connection.execute(delete(schema.provenance))
            connection.execute(delete(schema.blocks))
        return reorg_id, retracted

    def _judge_again(self, connection: Connection, rows: PageRows) -> None:
        """Take back the members that came of identity updates above new ones (ADR 50)."""
        for contract in self.identity.contracts:
            if contract.is_sparse and contract.kind is TopicKind.IDENTITY_UPDATE:
                ids = [row[1] for row in rows.envelopes if row[0] == contract.originator_id]
                if ids:
                    retract_inboxes(connection, contract.originator_id, min(ids) - 1)

    def _cuts(self, sequence_ids: Mapping[int, int], block_number: int) -> list[BlockCut]:
        return cuts_above(sequence_ids, block_number, self.identity.sparse_originator_ids)

    def _check_above_final(
        self, connection: Connection, cuts: Sequence[BlockCut], final_block: int
    ) -> None:
        for table in PAYLOAD_TABLES:
            for cut in cuts:
                found = find_final_above(connection, table, cut, final_block)
                if found is not None:
                    got = f"sequence id {found} of originator {cut.originator_id}"
                    raise self._is_final(final_block, got)

    def _is_final(self, final_block: int, got: str) -> StoreError:
        expected = f"payloads above the final block {final_block} to take back"
        place = "nothing was changed; the known blocks are not those of what is stored"
        return StoreError(f"database {self.name}", expected, got, place)

    def _check_cursor(self, found: BlockReference | None, expected: IndexedBlock) -> None:
        if found != expected.header.reference:
            raise StoreError(
                f"database {self.name}",
                f"the cursor at block {expected.header.reference}",
                f"block {found}" if found else "none",
                "another process writes to it",
            )


def _retract_rows(connection: Connection, cuts: Sequence[BlockCut], reorg_id: int) -> int:
    for cut in cuts:
        retract_inboxes(connection, cut.originator_id, cut.last_below(connection))
    return sum(
        retract_after(connection, table, cut, reorg_id) for table in PAYLOAD_TABLES for cut in cuts
    )
