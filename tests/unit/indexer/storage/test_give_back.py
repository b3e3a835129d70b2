"""Free space of SQLite's file goes back to the file system, beside another writer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import delete, text

from chainkit_indexer.storage import migrate, schema
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.envelopes import StoredEnvelope, insert_envelopes

SIZE = 2000


def filled_and_emptied(path: Path) -> Database:
    """A database from which most envelopes were deleted, and whose lock is held."""
    database = Database(str(path))
    migrate.create(database)
    rows = [StoredEnvelope(100, each, each, b"\1", None, bytes(SIZE)) for each in range(1, 501)]
    with database.writing() as connection:
        insert_envelopes(database, connection, rows)
    with database.writing() as connection:
        connection.execute(delete(schema.envelopes).where(schema.envelopes.c.sequence_id < 450))
    return database


def test_give_back__file_of_this_version__shrinks_by_pieces(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    with (
        closing(filled_and_emptied(path)) as database,
        closing(Database(str(path), beside=True)) as beside,
    ):
        pieces = []
        while piece := beside.give_back(100_000):
            pieces.append(piece)

        assert max(pieces) <= 100_000
        assert 300 * SIZE < sum(pieces) < 600 * SIZE
        with database.reading() as connection:
            assert connection.scalar(text("PRAGMA integrity_check")) == "ok"
            assert connection.scalar(text("SELECT count(*) FROM envelopes")) == 51
    assert path.stat().st_size < 300 * SIZE


def test_give_back__file_of_an_older_version__is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    filled_and_emptied(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")

    with closing(Database(str(path), beside=True)) as database:
        assert database.give_back(100_000) is None
