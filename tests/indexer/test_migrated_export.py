from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from chainkit.exports import files_of, read_manifest
from chainkit_indexer.export import write_export
from chainkit_indexer.inspection.history import read_history
from chainkit_indexer.storage import migrate, schema
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.store import Store
from support.chains.fake_chain import FakeChain, Post, malformed, update
from support.chains.model_databases import Killed, killed_at
from support.indexer.fake_node import FakeNode
from support.indexer.revisions import copy_rows_to_0003, make_tables

RANGE_BLOCKS = 5
EXPORTED = ("envelopes", "quarantine", "journal")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    """A node with final blocks, quarantine, and a reorg that kept, moved and dropped payloads."""
    chain = FakeChain()
    chain.mine(*[[Post(f"a{n}"), update(f"b{n}"), malformed(f"c{n}")] for n in range(12)])
    node = FakeNode(chain, tmp_path / "followed.db", window_blocks=3)
    node.catch_up()
    chain.fork(2, [Post("a10"), update("b11")], [malformed("new")], [])
    node.catch_up()
    yield node
    node.store.close()


@pytest.fixture
def older(node: FakeNode, database_url: str) -> Iterator[Database]:
    """The same rows in a database of revision 0003, of each kind."""
    database = Database(database_url)
    make_tables(database, "0003")
    copy_rows_to_0003(node.store, database)
    yield database
    database.close()


def contents_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def rows_in(database: Database, table: str) -> list[dict[str, Any]]:
    with database.reading() as connection:
        rows = connection.execute(text(f"SELECT * FROM {table} ORDER BY 1, 2, 3")).mappings()
        return [dict(row) for row in rows]


def exported_rows(folder: Path, table: str) -> list[dict[str, Any]]:
    names = files_of(read_manifest(folder, "node"), table)
    return [row for name in names for row in pq.read_table(folder / name).to_pylist()]


def test_export__of_a_migrated_database__holds_each_old_row_in_the_same_bytes(
    node: FakeNode, older: Database, database_url: str, tmp_path: Path
) -> None:
    before = {table: rows_in(older, table) for table in EXPORTED}

    assert migrate.upgrade(older) == "0003"
    older.close()

    store = Store.open_existing(database_url)
    write_export(store, tmp_path / "migrated", RANGE_BLOCKS)
    store.close()
    write_export(node.store, tmp_path / "followed", RANGE_BLOCKS)
    assert contents_of(tmp_path / "migrated") == contents_of(tmp_path / "followed")
    assert min(len(rows) for rows in before.values()) > 0
    for table, old in before.items():
        rows = exported_rows(tmp_path / "migrated", table)
        assert rows == [{name: row[name] for name in rows[0]} for row in old]


def test_upgrade__database_that_an_indexer_goes_on_with__ends_as_one_that_was_never_older(
    node: FakeNode, older: Database, database_url: str
) -> None:
    migrate.upgrade(older)
    older.close()
    migrated = FakeNode(node.chain, database_url, window_blocks=3)
    node.chain.fork(2, [Post("z")], [update("y")], [])

    for each in (node, migrated):
        each.catch_up()

    assert migrated.content() == node.content()
    assert read_history(migrated.store, 0, 5) == read_history(node.store, 0, 5)
    migrated.store.close()


def test_upgrade__interrupted_at_any_statement__leaves_revision_0003(older: Database) -> None:
    tables = ("envelopes", "served_envelopes", "quarantine")
    before = [rows_in(older, table) for table in tables]
    statement = interruptions = 0
    while True:
        try:
            with killed_at(statement):
                migrate.upgrade(older)
        except Killed:
            interruptions += 1
        else:
            break
        assert migrate.revision(older) == "0003"
        assert [rows_in(older, table) for table in tables] == before
        statement += 1

    assert interruptions > 10
    assert migrate.revision(older) == migrate.REVISION
    assert len(rows_in(older, schema.envelope_logs.name)) == len(before[0])
