"""Empty databases of both kinds, for tests that must hold on each, and pages to write to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select, update

from chainkit_indexer.storage import migrate, schema
from chainkit_indexer.storage.database import Database
from chainkit_indexer.types import ENVELOPE_COLUMNS, LOG_COLUMNS
from localnet.postgres import Postgres

PAGE_PAYLOADS = 100


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for the whole run; a test that restarts it leaves it running."""
    # Without fsync only a power cut loses data: a crash of the server does not.
    with Postgres(fsync="off") as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database of each kind; PostgreSQL starts only at its first use."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'node.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def indexed(database_url: str) -> Iterator[Database]:
    """A database of each kind with an indexer's tables, open to write."""
    database = Database(database_url)
    migrate.create(database)
    yield database
    database.close()


class Interrupted(list[Any]):
    """Rows on whose way into the database something happens, when half of them are there."""

    def __init__(self, rows: list[Any], happens: Callable[[], object]) -> None:
        super().__init__(rows)
        self.happens = happens

    def __iter__(self) -> Iterator[Any]:
        for place, row in enumerate(super().__iter__()):
            if place == len(self) // 2:
                self.happens()
            yield row


def write_page(
    database: Database,
    half_way: Callable[[], object] = lambda: None,
    before_commit: Callable[[], object] = lambda: None,
) -> None:
    """Commit the next block with its envelopes and the cursor, in one transaction."""
    with database.writing() as connection:
        number = _pages(connection)
        block = (number, bytes(32), bytes(32), number, "{}")
        names = tuple(schema.blocks.c.keys())
        database.insert_many(connection, schema.blocks, names, [block])
        places = range(PAGE_PAYLOADS)
        rows = Interrupted([_envelope(number, place) for place in places], half_way)
        database.insert_many(connection, schema.envelopes, ENVELOPE_COLUMNS, rows)
        logs = [_log(number, place) for place in places]
        database.insert_many(connection, schema.envelope_logs, LOG_COLUMNS, logs)
        values = {"block_number": number, "block_hash": bytes(32), "sequence_ids": "{}"}
        statement = update(schema.cursor) if number else insert(schema.cursor)
        connection.execute(statement.values(id=1, final_block_number=-1, **values))
        before_commit()


def whole_pages(database: Database) -> int:
    """Return the number of pages, and check that no page is only partly there."""
    with database.reading() as connection:
        pages = _pages(connection)
        counts = [
            connection.scalar(select(func.count()).select_from(table))
            for table in (schema.blocks, schema.envelopes, schema.envelope_logs)
        ]
    assert counts == [pages, pages * PAGE_PAYLOADS, pages * PAGE_PAYLOADS]
    return pages


def _pages(connection: Connection) -> int:
    last = connection.scalar(select(schema.cursor.c.block_number))
    return 0 if last is None else last + 1


def _envelope(number: int, place: int) -> tuple[Any, ...]:
    return (0, _sequence_id(number, place), number, b"\x00" * 33, None, bytes(700))


def _log(number: int, place: int) -> tuple[Any, ...]:
    sequence_id = _sequence_id(number, place)
    hashes = (bytes(32), sequence_id.to_bytes(32))
    return (0, sequence_id, number, *hashes, place, place)


def _sequence_id(number: int, place: int) -> int:
    return number * PAGE_PAYLOADS + place + 1
