import errno
import os
import socket
import sqlite3
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select, text

from chainkit.errors import ConfigurationError, StoreError, StoreInUse, StoreUnavailable
from chainkit_indexer.storage import schema, sqlite
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.postgresql import Postgresql
from chainkit_indexer.storage.sqlite import Sqlite

COLUMNS = ("number", "hash", "parent_hash", "timestamp", "sequence_ids")
BLOCKS = [(number, b"\x01" * 32, b"\x00" * 32, 12 * number, "{}") for number in range(3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Database]:
    database = Database(str(path))
    database.prepare()
    with database.writing() as connection:
        schema.metadata.create_all(connection)
    yield database
    database.close()


def count(database: Database) -> Any:
    with database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(schema.blocks))


def insert_blocks(database: Database) -> None:
    with database.writing() as connection:
        database.insert_many(connection, schema.blocks, COLUMNS, BLOCKS)


@pytest.mark.parametrize(
    "location",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "://x",
        "nosuch://host/name",
        "mysql://host/name",
        "postgresql+asyncpg://host/name",
    ],
)
def test_open__url_that_cannot_be_used__is_refused(location: str) -> None:
    with pytest.raises(ConfigurationError):
        Database(location)


@pytest.mark.parametrize(
    ("location", "got"),
    [
        ("postgres-ql://op:S3CRET@db/x", "a malformed postgres-ql:// URL"),
        ("postgresql://op:S3CRET@db:54x2/x", "a malformed postgresql:// URL"),
        ("postgresql://op:S3CRET", "a malformed postgresql:// URL"),
        ("postgresql://op:pass@S3CRET@db/x", "a malformed postgresql:// URL"),
        ("op:S3CRET@db://x", "a malformed URL"),
        ("op:S3CRET@db/x", "a malformed URL"),
        ("postgresql:/op:S3CRET@db/x", "a malformed URL"),
        ("sqlite://op:S3CRET@db/x", "a malformed sqlite:// URL"),
        ("sqlite://op:S3CRET@/:memory:", "a malformed sqlite:// URL"),
        ("sqlite:///x?timeout=S3CRET", "a malformed sqlite:// URL"),
    ],
)
def test_open__malformed_url__shows_its_scheme_only(location: str, got: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Database(location)

    assert str(caught.value) == f"database: expected a path or a URL, got {got}"
    assert "S3CRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "location",
    [
        "host=db password=S3CRET",
        "password = S3CRET",
        "pasword=S3CRET",
        " dbname='x' password='S3CRET'",
        "x password=S3CRET",
        "x\npassword=S3CRET",
        "host=db password=S3CRET options=a://b",
    ],
)
def test_open__words_for_libpq__shows_nothing_of_them(location: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Database(location)

    assert "S3CRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("location", ["/data/user=7/node.db", "./a=b.db", "my host/node.db"])
def test_open__path_with_an_equals_sign_or_a_space__is_a_path(location: str) -> None:
    assert Database(location).file == Path(location)


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("postgresql://op:S3CRET@db/x", "postgresql://op:***@db/x"),
        ("postgresql+psycopg://op@db/x?password=S3CRET", "postgresql+psycopg://op@db/x"),
    ],
)
def test_name__url_with_a_password__does_not_tell_it(location: str, name: str) -> None:
    database = Database(location)

    assert database.name == name
    assert "S3CRET" not in repr(vars(database))


def test_insert_many__rows_of_each_type__are_read_back(writer: Database) -> None:
    insert_blocks(writer)
    with writer.writing() as connection:
        writer.insert_many(connection, schema.blocks, COLUMNS, [])

    with writer.reading() as connection:
        rows = connection.execute(select(schema.blocks)).all()
    assert [tuple(row) for row in rows] == BLOCKS


def test_insert_many__key_that_is_there_already__undoes_the_transaction(writer: Database) -> None:
    expected = pytest.raises(StoreError, match="UNIQUE constraint failed")
    with expected as caught, writer.writing() as connection:
        writer.insert_many(connection, schema.blocks, COLUMNS, BLOCKS)
        writer.insert_many(connection, schema.blocks, COLUMNS, BLOCKS)

    assert not isinstance(caught.value, StoreUnavailable)
    assert count(writer) == 0


def test_writing__exception_in_it__undoes_everything(writer: Database) -> None:
    with pytest.raises(KeyboardInterrupt), writer.writing() as connection:
        writer.insert_many(connection, schema.blocks, COLUMNS, BLOCKS)
        connection.execute(text("CREATE TABLE more (id INTEGER)"))
        raise KeyboardInterrupt

    assert count(writer) == 0
    with pytest.raises(StoreError, match="no such table"), writer.reading() as connection:
        connection.execute(text("SELECT * FROM more"))


def test_writing__file_locked_by_another_program__may_pass(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    database = Database(str(path))

    with pytest.raises(StoreUnavailable, match="database is locked"), database.writing():
        pass

    other.close()
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE more (id INTEGER)"))
    database.close()


def test_lock__held_by_another__names_it_and_frees_it_when_closed(
    path: Path, writer: Database
) -> None:
    second = Database(str(path))
    holder = f"process {os.getpid()} on {socket.gethostname()}"

    with pytest.raises(StoreInUse, match=f"expected no other indexer, got {holder}"):
        second.lock()
    with pytest.raises(StoreInUse), second.writing():
        pass
    writer.close()
    second.lock()
    second.lock()

    with pytest.raises(StoreInUse):
        writer.lock()
    second.close()


@pytest.mark.parametrize("is_link_first", [False, True])
def test_lock__same_file_by_a_symbolic_link__is_in_use(path: Path, is_link_first: bool) -> None:
    link = path.parent / "other" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    first, second = (link, path) if is_link_first else (path, link)
    database = Database(str(first))
    database.lock()

    with pytest.raises(StoreInUse):
        Database(str(second)).lock()

    database.close()
    assert [entry.name for entry in link.parent.iterdir()] == ["link.db"]


def test_reading__by_a_symbolic_link_while_another_writes__sees_what_was_committed(
    path: Path, writer: Database
) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    insert_blocks(writer)

    assert count(Database(str(link), read_only=True)) == len(BLOCKS)


def test_close__lock_held__leaves_no_file_of_it(path: Path) -> None:
    database = Database(str(path))
    database.lock()
    assert [entry.name for entry in path.parent.iterdir()] == ["node.db.lock"]

    database.close()

    assert list(path.parent.iterdir()) == []


def test_lock__taken_and_freed_by_many_at_once__never_has_two_holders(path: Path) -> None:
    holders: list[int] = []
    most: list[int] = []

    def take_turns(number: int) -> None:
        for _ in range(200):
            database = Database(str(path))
            try:
                database.lock()
            except StoreInUse:
                continue
            holders.append(number)
            most.append(len(holders))
            holders.remove(number)
            database.close()

    threads = [threading.Thread(target=take_turns, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(most) == {1}


def test_lock__folder_that_does_not_exist__is_an_error_of_the_store(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "missing" / "node.db"))

    with pytest.raises(StoreError, match="No such file or directory") as caught:
        database.lock()

    assert not isinstance(caught.value, StoreUnavailable)


def test_reading__read_only_and_no_file__makes_none(path: Path) -> None:
    database = Database(str(path), read_only=True)

    with pytest.raises(StoreError, match="unable to open"), database.reading():
        pass

    assert list(path.parent.iterdir()) == []


def test_reading__read_only__refuses_to_write(path: Path, writer: Database) -> None:
    database = Database(str(path), read_only=True)

    with pytest.raises(StoreError, match="readonly"), database.reading() as connection:
        connection.execute(schema.blocks.delete())
    with pytest.raises(AssertionError), database.writing():
        pass


@pytest.mark.parametrize("name", ["a b?c#d%41.db", "été.db", "file:x.db"])
def test_reading__read_only_and_a_strange_path__reads_that_file(tmp_path: Path, name: str) -> None:
    database = Database(str(tmp_path / name))
    with database.writing() as connection:
        schema.metadata.create_all(connection)
    insert_blocks(database)
    database.close()

    assert count(Database(str(tmp_path / name), read_only=True)) == len(BLOCKS)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_reading__read_only_while_another_writes__sees_what_was_committed(
    path: Path, writer: Database
) -> None:
    reader = Database(str(path), read_only=True)
    with writer.writing() as connection:
        writer.insert_many(connection, schema.blocks, COLUMNS, BLOCKS)
        assert count(reader) == 0
    assert count(reader) == len(BLOCKS)


def test_reading__file_that_is_no_database__is_an_error_of_the_store(path: Path) -> None:
    path.write_text("dear diary, " * 100)

    for read_only in (False, True):
        database = Database(str(path), read_only)
        with pytest.raises(StoreError, match="file is not a database") as caught:
            count(database)
        assert not isinstance(caught.value, StoreUnavailable)
    assert path.read_text() == "dear diary, " * 100


def test_reading__read_only_and_at_rest__leaves_no_file_behind(
    path: Path, writer: Database
) -> None:
    insert_blocks(writer)
    writer.close()
    before = path.stat()

    assert count(Database(str(path), read_only=True)) == len(BLOCKS)

    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_reading__at_rest_and_a_writer_comes__says_so_afterwards(
    path: Path, writer: Database
) -> None:
    insert_blocks(writer)
    writer.close()
    reader = Database(str(path), read_only=True)

    expected = pytest.raises(StoreUnavailable, match="no writer while it is read")
    with expected, reader.reading() as connection:
        connection.execute(select(schema.blocks)).all()
        with sqlite3.connect(path) as other:
            other.execute("DELETE FROM blocks")
        other.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_may_pass__disk_full_or_out_of_order__is_true(number: int) -> None:
    assert Sqlite.may_pass(OSError(number, "x"))
    assert not Sqlite.may_pass(OSError(errno.EACCES, "x"))


@pytest.mark.parametrize(
    ("state", "passes"),
    [
        ("08006", True),  # connection failure
        ("40001", True),  # serialization failure
        ("53100", True),  # disk full
        ("53300", True),  # too many connections
        ("55P03", True),  # lock not available
        ("57P01", True),  # shut down
        ("57P03", True),  # starting up
        ("58030", True),  # I/O error
        ("25006", False),  # read-only, as our readers are; a writer knows better
        ("23505", False),  # unique violation
        ("42501", False),  # insufficient privilege
        ("42P01", False),  # undefined table
        ("XX001", False),  # corrupted
    ],
)
def test_may_pass__state_of_postgresql__is_sorted(state: str, passes: bool) -> None:
    assert Postgresql.may_pass(psycopg.errors.lookup(state)("x")) is passes


@pytest.mark.parametrize(
    ("message", "passes"),
    [
        ("connection refused", True),
        ("FATAL:  the database system is starting up", True),
        ("FATAL:  remaining connection slots are reserved for roles with ...", True),
        ("server closed the connection unexpectedly", True),
        ('FATAL:  password authentication failed for user "op"', False),
        ('FATAL:  database "x" does not exist', False),
        ('FATAL:  no pg_hba.conf entry for host "::1"', False),
    ],
)
def test_may_pass__no_session_of_postgresql__is_sorted(message: str, passes: bool) -> None:
    assert Postgresql.may_pass(psycopg.OperationalError(message)) is passes


def test_may_pass__anything_else__is_false() -> None:
    assert not Postgresql.may_pass(psycopg.ProgrammingError("x"))
    assert not Postgresql.may_pass(None)
    assert not Sqlite.may_pass(None)
