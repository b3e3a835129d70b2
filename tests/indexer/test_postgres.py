import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import BigInteger, Boolean, Integer, LargeBinary, Text, make_url, select, text

from chainkit.errors import StoreError, StoreInUse, StoreUnavailable
from chainkit_indexer.storage import migrate, schema
from chainkit_indexer.storage.database import Database
from localnet.postgres import Postgres
from support.indexer.databases import PAGE_PAYLOADS, whole_pages, write_page

EXTREMES = {
    BigInteger: 2**63 - 1,
    Integer: 2**31 - 1,
    LargeBinary: bytes(range(256)),
    Text: "“é” \\N\t\n\\.",
    Boolean: True,
}
HOLDER = """
import sys, time
from chainkit_indexer.storage.database import Database
database = Database(sys.argv[1])
database.lock()
print("locked", flush=True)
time.sleep(600)
"""
OWNER_OF_A_SERVER = """
import time
from localnet.postgres import Postgres
server = Postgres()
print(server.folder, server.port, flush=True)
time.sleep(600)
"""
TEMPORARY_TABLES = """
DO $$ BEGIN
  FOR number IN 1..1000 LOOP
    EXECUTE format('CREATE TEMPORARY TABLE temporary_%s ()', number);
  END LOOP;
END $$
"""
UNPRIVILEGED_READER = """
import os, sys
from sqlalchemy import func, select
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.database import Database

def count():
    with Database(sys.argv[1], read_only=True).reading() as connection:
        return connection.scalar(select(func.count()).select_from(schema.envelopes))

count()  # loads what is closed to others, too
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
print(os.access(os.path.dirname(sys.argv[1]), os.W_OK), count())
"""


@contextmanager
def child(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def pages_to_a_reader(url: str) -> int:
    reader = Database(url, read_only=True)
    try:
        return whole_pages(reader)
    finally:
        reader.close()


def row_of(table: Any, columns: list[str]) -> tuple[Any, ...]:
    # The primary key of a table that has one row.
    return tuple(
        1 if name == "id" and table.name != "reorgs" else EXTREMES[type(table.c[name].type)]
        for name in columns
    )


def answers(port: int) -> bool:
    try:
        psycopg.connect(f"host=127.0.0.1 port={port} user=postgres password=x")
    except psycopg.OperationalError as error:
        return "authentication failed" in str(error)
    raise AssertionError("let in without the password")


def test_server__without_its_password__lets_nobody_in(postgres: Postgres) -> None:
    wrong = make_url(postgres.new_database()).set(password="guess")

    with pytest.raises(StoreError, match="password authentication failed") as caught:
        Database(wrong.render_as_string(hide_password=False)).lock()

    assert not isinstance(caught.value, StoreUnavailable)


def test_server__owner_killed__ends_too() -> None:
    with child(OWNER_OF_A_SERVER) as owner:
        assert owner.stdout is not None
        folder, port = owner.stdout.readline().split()
        assert answers(int(port))
        owner.send_signal(signal.SIGKILL)
        owner.wait()

    deadline = time.monotonic() + 30
    # The last thing that it removes.
    while Path(folder, "data", "postmaster.pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)

    assert not answers(int(port))
    shutil.rmtree(folder)


def test_server__stopped_as_by_a_crash_and_started__has_what_was_committed(
    postgres: Postgres,
) -> None:
    database = Database(postgres.new_database())
    migrate.create(database)
    write_page(database)

    postgres.stop(immediately=True)
    with pytest.raises(StoreUnavailable):
        whole_pages(database)
    postgres.start()

    assert whole_pages(database) == 1
    database.close()


def test_insert_many__extremes_of_every_type__are_read_back(indexed: Database) -> None:
    for table in schema.metadata.sorted_tables:
        columns = list(table.c.keys())
        row = row_of(table, columns)
        with indexed.writing() as connection:
            indexed.insert_many(connection, table, columns, [row])
            found = connection.execute(select(table)).one()

        assert tuple(found) == row


def test_free_bytes__size_that_it_may_reach__is_what_is_left_of_it(indexed: Database) -> None:
    most = 10**9

    left = indexed.free_bytes(most)

    assert left is not None and 10_000 < most - left < 100_000_000
    assert indexed.free_bytes(10_000) == 10_000 - (most - left)
    assert (indexed.free_bytes(0) is None) == (indexed.file is None)


def test_free_bytes__folder_that_is_gone__is_an_error_of_the_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="expected a database that can be read and written"):
        Database(str(tmp_path / "gone" / "node.db")).free_bytes(0)


def test_insert_many__key_that_is_there_already__undoes_the_transaction(indexed: Database) -> None:
    write_page(indexed)
    columns = list(schema.blocks.c.keys())
    rows = [(7, b"", b"", 0, ""), (0, b"", b"", 0, "")]

    expected = pytest.raises(StoreError, match=r"(?i)unique")
    with expected as caught, indexed.writing() as connection:
        indexed.insert_many(connection, schema.blocks, columns, rows)

    assert not isinstance(caught.value, StoreUnavailable)
    write_page(indexed)
    assert whole_pages(indexed) == 2


def test_lock__held_by_another_process__is_refused_until_that_is_killed(
    indexed: Database, database_url: str
) -> None:
    indexed.close()
    with child(HOLDER, database_url) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(StoreInUse, match=f"expected no other indexer, got .*{holder.pid}"):
            indexed.lock()
        with pytest.raises(StoreInUse):
            write_page(indexed)
        assert pages_to_a_reader(database_url) == 0
        holder.send_signal(signal.SIGKILL)
        holder.wait()

    deadline = time.monotonic() + 10
    while True:
        # The server has to notice, too.
        with suppress(StoreInUse):
            write_page(indexed)
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert whole_pages(indexed) == 1


def test_lock__predecessors_session_still_ends__is_had_once_it_has(postgres: Postgres) -> None:
    url = postgres.new_database()
    first, second = Database(url), Database(url)
    with first.writing() as connection:
        # The server drops them before it gives the lock of a closed session back.
        connection.execute(text(TEMPORARY_TABLES))

    first.close()
    second.lock()

    second.close()


def test_lock__two_schemas_of_one_database__are_two_databases(postgres: Postgres) -> None:
    url = postgres.new_database()
    first = Database(url)
    with first.writing() as connection:
        connection.execute(text("CREATE SCHEMA second"))
    second = Database(f"{url}?options=-csearch_path%3Dsecond")

    for database in (first, second):
        migrate.create(database)
        write_page(database)

    write_page(second)
    assert (whole_pages(first), whole_pages(second)) == (1, 2)
    first.close()
    second.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_reading__while_a_page_is_written__sees_one_state_and_holds_nobody_up(
    indexed: Database, database_url: str, read_only: bool
) -> None:
    reader = Database(database_url, read_only)
    write_page(indexed)

    def read() -> None:
        assert whole_pages(reader) == 1

    write_page(indexed, half_way=read, before_commit=read)
    with reader.reading() as connection:
        query = select(schema.cursor.c.block_number)
        assert connection.scalar(query) == 1
        write_page(indexed)
        assert connection.scalar(query) == 1

    assert whole_pages(reader) == 3
    reader.close()


def test_reading__read_only__refuses_to_write(indexed: Database, database_url: str) -> None:
    reader = Database(database_url, read_only=True)

    expected = pytest.raises(StoreError, match=r"read-?only")
    with expected as caught, reader.reading() as connection:
        connection.execute(schema.blocks.delete())

    assert not isinstance(caught.value, StoreUnavailable)
    reader.close()


@pytest.mark.parametrize("is_at_rest", [False, True])
def test_reading__file_and_folder_that_may_not_be_written__reads(is_at_rest: bool) -> None:
    # pytest's own folders are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "node.db"
        database = Database(str(path))
        migrate.create(database)
        write_page(database)
        if is_at_rest:
            database.close()
        files = sorted(entry.name for entry in path.parent.iterdir())
        path.parent.chmod(0o555)
        with child(UNPRIVILEGED_READER, str(path)) as reader:
            assert reader.stdout is not None
            output = reader.stdout.read()
        path.parent.chmod(0o755)

        assert output == f"False {PAGE_PAYLOADS}\n"
        assert sorted(entry.name for entry in path.parent.iterdir()) == files
        database.close()


def test_reading__account_without_the_right__is_no_matter_of_waiting(postgres: Postgres) -> None:
    url = postgres.new_database()
    database = Database(url)
    migrate.create(database)
    database.close()
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    guest = make_url(url).set(username="guest", password="guest")

    with pytest.raises(StoreError, match="permission denied for table") as caught:
        pages_to_a_reader(guest.render_as_string(hide_password=False))

    assert not isinstance(caught.value, StoreUnavailable)
