import json
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chainkit_indexer.storage import migrate, schema
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.store import Store
from support.chains.chain import LocalChain
from support.command_line import run as run_here

from .conftest import Node, publish


def follow_and_kill(node: Node, count: int, start: int = 0) -> None:
    """Follow new blocks by the command, and kill it once they are committed."""
    publish(node.chain, count, start=start)
    process = node.start()
    assert process.stderr is not None
    head = f"idle at the head {node.chain.head().number} "
    while head not in (line := process.stderr.readline()):
        assert line, "the indexer ended"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    process.stderr.close()


def with_database(node: Node, database: Path) -> Node:
    other = Node(node.chain, database.parent)
    other.database = database
    return other


def test_backup__after_a_kill__has_what_a_copy_of_the_file_lacks(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    follow_and_kill(node, 3)
    shutil.copy(node.database, tmp_path / "copied.db")
    backup = tmp_path / "before-upgrade.db"

    made = run_here("index", "backup", "--database", node.database, "--out", backup, "--json")

    assert made.code == 0, made.err
    assert made.content["cursor"]["number"] == local_chain.head().number
    assert made.content["bytes"] == backup.stat().st_size
    with sqlite3.connect(tmp_path / "copied.db") as copied:
        tables = [name for (name,) in copied.execute("SELECT name FROM sqlite_schema")]
        held = (
            copied.execute("SELECT count(*) FROM envelopes").fetchone()[0]
            if "envelopes" in tables
            else 0
        )
    copied.close()
    assert held < 3
    whole = with_database(node, backup)
    assert whole.payload_rows() == node.payload_rows()
    assert len(whole.rows(schema.envelopes)) == 3


def test_restore__a_backup__is_followed_from_its_cursor_to_the_same_rows(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    follow_and_kill(node, 2)
    backup, restored = tmp_path / "backup.db", tmp_path / "restored.db"
    assert run_here("index", "backup", "--database", node.database, "--out", backup).code == 0
    follow_and_kill(node, 2, start=2)

    done = run_here("index", "restore", backup, "--database", restored)

    assert done.code == 0, done.err
    assert f"cursor block {local_chain.head().number - 2} 0x" in done.out
    again = with_database(node, restored)
    again.catch_up()
    assert again.payload_rows() == node.payload_rows()


def test_backup__beside_a_running_indexer__is_one_state(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    process = node.start()
    assert process.stderr is not None
    try:
        publish(local_chain, 1)
        while "1 envelopes" not in process.stderr.readline():
            pass
        for number in range(3):
            publish(local_chain, 1, start=1 + number)
            out = tmp_path / f"{number}.db"
            made = run_here("index", "backup", "--database", node.database, "--out", out)
            assert made.code == 0, made.err
            store = Store.open_existing(str(out))
            position = store.position()
            store.close()
            assert position is not None
            held = with_database(node, out).rows(schema.envelopes)
            assert len(held) == position.sequence_ids[0]
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
        process.stderr.close()


def test_backup__something_is_in_the_way__is_refused_and_nothing_is_written(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    out = tmp_path / "backup.db"
    database = ("--database", node.database)
    out.write_text("mine")
    assert "backup.db already exists" in run_here("index", "backup", *database, "--out", out).err
    assert out.read_text() == "mine"
    out.unlink()
    log = out.with_name("backup.db-wal")
    log.write_text("another's")
    refused = run_here("index", "backup", *database, "--out", out)
    assert (refused.code, out.exists()) == (2, False)
    assert "backup.db-wal already exists" in refused.err
    log.unlink()
    nowhere = run_here("index", "backup", *database, "--out", tmp_path / "none" / "backup.db")
    assert "expected a folder that exists" in nowhere.err
    missing = run_here("index", "backup", "--database", tmp_path / "none.db", "--out", out)
    assert "none.db: expected a file that exists, got none" in missing.err
    url = "postgresql+psycopg://user:hush@127.0.0.1/chainkit"
    postgres = run_here("index", "backup", "--database", url, "--out", out)
    assert (postgres.code, "pg_dump" in postgres.err, "hush" in postgres.err) == (2, True, False)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize("content", [b"", b"not a database" * 100])
def test_restore__no_backup__is_refused_and_nothing_is_written(
    tmp_path: Path, content: bytes
) -> None:
    backup, target = tmp_path / "backup.db", tmp_path / "node.db"
    backup.write_bytes(content)

    refused = run_here("index", "restore", backup, "--database", target)

    assert refused.code == 2
    assert not target.exists()
    assert backup.read_bytes() == content


def test_restore__damaged_backup__is_refused(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 30)
    node.catch_up()
    backup, target = tmp_path / "backup.db", tmp_path / "restored.db"
    assert run_here("index", "backup", "--database", node.database, "--out", backup).code == 0
    pages = bytearray(backup.read_bytes())
    [(root,)] = sqlite3.connect(backup).execute(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'envelopes'"
    )
    pages[4096 * (root - 1) : 4096 * root] = b"\xff" * 4096
    backup.write_bytes(pages)

    refused = run_here("index", "restore", backup, "--database", target)

    assert (refused.code, target.exists()) == (2, False)
    assert "expected a" in refused.err


def test_restore__over_a_database__is_refused(
    node: Node, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain, 1)
    node.catch_up()
    backup = tmp_path / "backup.db"
    assert run_here("index", "backup", "--database", node.database, "--out", backup).code == 0
    before = node.payload_rows()

    refused = run_here("index", "restore", backup, "--database", node.database)

    assert (refused.code, json.dumps(node.payload_rows(), default=str)) == (
        2,
        json.dumps(before, default=str),
    )
    assert "already exists" in refused.err


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The database of an older chainkit."""
    path = tmp_path / "old.db"
    database = Database(str(path))
    migrate.create(database)
    database.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
    return path


def test_backup__database_of_an_older_chainkit__is_made_and_restored_as_it_is(
    old: Path, tmp_path: Path
) -> None:
    backup, restored = tmp_path / "before-upgrade.db", tmp_path / "restored.db"

    made = run_here("index", "backup", "--database", old, "--out", backup)
    done = run_here("index", "restore", backup, "--database", restored, "--json")

    assert (made.code, made.err) == (0, "")
    assert made.out.endswith("revision 0000, older than 0001\n")
    # Nothing tells the operator to change the only way back.
    assert "migrate" not in made.out
    assert (done.code, done.content["revision"], done.content["cursor"]) == (0, "0000", None)
    for each in (backup, restored):
        with closing(sqlite3.connect(each)) as connection:
            version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        assert version == ("0000",)


@pytest.mark.parametrize(
    "damage", ["UPDATE alembic_version SET version_num = '9999'", "DROP TABLE alembic_version"]
)
def test_backup__database_of_a_newer_chainkit_or_of_nobody__is_refused_and_nothing_is_written(
    old: Path, tmp_path: Path, damage: str
) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute(damage)

    done = run_here("index", "backup", "--database", old, "--out", tmp_path / "backup.db")

    assert (done.code, done.out) == (2, "")
    assert "old.db: expected" in done.err
    assert not (tmp_path / "backup.db").exists()


def test_restore__backup_of_a_newer_chainkit__is_refused_and_nothing_is_written(
    old: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    done = run_here("index", "restore", old, "--database", tmp_path / "restored.db")

    assert done.code == 2
    assert "a newer chainkit made it" in done.err
    assert not (tmp_path / "restored.db").exists()
