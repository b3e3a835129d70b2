import sqlite3
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from chainkit.errors import ConfigurationError, StoreError
from chainkit_indexer import database, schema
from chainkit_indexer.database import Database
from chainkit_indexer.store import Identity, Store
from support.fake_chain import FakeChain

IDENTITY = Identity.of(FakeChain().record, b"\x04" + bytes(64))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.db"


def test_open__no_database__makes_it_and_opens_it_again(path: Path) -> None:
    Store.open(str(path), IDENTITY).close()
    store = Store.open(f"sqlite:///{path}", IDENTITY)

    assert store.identity == IDENTITY
    assert store.position() is None
    store.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chain_id": 1}, "expected chain id 1, got 31337"),
        ({"genesis_hash": b"\x01" * 32}, "expected genesis hash 0x0101"),
        ({"node_public_key": b"\x04" + b"\x01" * 64}, "expected node public key 0x040101"),
        ({"group_messages": b"\x09" * 20}, "expected group messages 0x0909"),
        ({"identity_updates": b"\x09" * 20}, "expected identity updates 0x0909"),
        ({"first_block": 9}, "expected first block 9, got 3"),
    ],
)
def test_open__database_of_another__says_what_differs_and_changes_nothing(
    path: Path, change: dict[str, Any], message: str
) -> None:
    Store.open(str(path), IDENTITY).close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match=message):
        Store.open(str(path), replace(IDENTITY, **change))

    assert path.read_bytes() == before


def test_open__another_programs_database__changes_nothing(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match="expected an indexer's tables, got bookmarks"):
        Store.open(str(path), IDENTITY)

    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_open__file_that_is_no_database__changes_nothing(path: Path) -> None:
    path.write_text("dear diary, " * 100)

    with pytest.raises(StoreError, match="file is not a database"):
        Store.open(str(path), IDENTITY)

    assert path.read_text() == "dear diary, " * 100


def test_open__another_schema_version__names_both(path: Path) -> None:
    Store.open(str(path), IDENTITY).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE identity SET schema_version = 99")
    connection.commit()
    connection.close()

    with pytest.raises(StoreError, match="expected schema version 1, got 99"):
        Store.open(str(path), IDENTITY)


@pytest.mark.parametrize("existing", [False, True])
def test_open__tables_without_an_identity__says_what_is_missing(path: Path, existing: bool) -> None:
    Store.open(str(path), IDENTITY).close()
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM identity")
    connection.commit()
    connection.close()

    with pytest.raises(StoreError, match="expected a row in the table identity, got none"):
        Store.open_existing(str(path)) if existing else Store.open(str(path), IDENTITY)


def test_open__killed_before_the_tables_were_made__makes_them(path: Path) -> None:
    path.touch()

    Store.open(str(path), IDENTITY).close()

    Store.open_existing(str(path)).close()


def test_open__folder_that_does_not_exist__names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no folder"):
        Store.open(str(tmp_path / "missing" / "node.db"), IDENTITY)

    assert list(tmp_path.iterdir()) == []


def test_open__path_of_a_folder__is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="expected a file, got a folder"):
        Store.open(str(tmp_path), IDENTITY)


@pytest.mark.parametrize("location", ["sqlite://", "://x", "nosuch://host/name"])
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
    "location", ["postgresql://op:S3CRET@db/x", "postgresql://op@db/x?password=S3CRET"]
)
def test_name__database_with_a_password__does_not_tell_it(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_engine", lambda url: create_engine("sqlite://"))

    assert Database(location).name in ("postgresql://op:***@db/x", "postgresql://op@db/x")


def test_open_existing__no_file__leaves_none_behind(path: Path) -> None:
    with pytest.raises(StoreError, match="expected a file that exists, got none"):
        Store.open_existing(str(path))

    assert not path.exists()


def test_writing__lock_held_by_another__says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0)
    Store.open(str(path), IDENTITY).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreError, match="database is locked"), Database(str(path)).writing():
        pass

    other.close()


def test_reading__while_another_commits__sees_one_state(path: Path) -> None:
    Store.open(str(path), IDENTITY).close()
    reader, writer = Database(str(path)), Database(str(path))
    with reader.reading() as reading:
        assert reading.execute(schema.reorgs.select()).all() == []
        with writer.writing() as writing:
            writing.execute(schema.reorgs.insert().values(
                id=1, ancestor_number=1, ancestor_hash=b"", old_head_number=2,
                old_head_hash=b"", depth=1))  # fmt: skip
        assert reading.execute(schema.reorgs.select()).all() == []
    with reader.reading() as reading:
        assert len(reading.execute(schema.reorgs.select()).all()) == 1
    reader.close()
    writer.close()


def test_schema__compiled_for_postgresql__has_types_that_hold_the_values() -> None:
    statements = {
        table.name: str(CreateTable(table).compile(dialect=postgresql.dialect()))
        for table in schema.metadata.sorted_tables
    }

    assert "sequence_id BIGINT NOT NULL" in statements["envelopes"]
    assert "envelope BYTEA NOT NULL" in statements["envelopes"]
    assert not any("SERIAL" in statement for statement in statements.values())
