"""SQLite as the client's database: one file that several processes may use at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from chainkit.errors import StoreError, StoreUnavailable
from chainkit.sqlite import Stamp, connect, errors_as, may_pass, new_engines, use_write_ahead_log
from chainkit_client.storage import exchange_schema, schema

BUSY_SECONDS: Final = 30
"""How long a transaction waits for a writing process, which may wait for its MLS engine."""

_STAMP: Final = Stamp(int.from_bytes(b"ckcl"), schema.VERSION, "a client's database", "another")
_PRIVATE: Final = 0o600
_SETTINGS: Final = (
    "PRAGMA foreign_keys = ON",
    # A payload is on the disk before it leaves: a second one with the same keys would reveal both.
    "PRAGMA synchronous = FULL",
    # Overwrite deleted states in the file.
    "PRAGMA secure_delete = ON",
)


class Database:
    """The file with its two kinds of transaction; threads and processes may share it.

    Everything raises StoreUnavailable where waiting may help, and StoreError for the rest.
    """

    def __init__(self, path: Path) -> None:
        """Open an existing file. Raises StoreError unless it is a database of this version."""
        self.path = path
        self._engine, self._writer = _engines(path)
        try:
            # Copying the file may have let other users read it.
            path.chmod(_PRIVATE)
            with self.reading() as connection:
                _STAMP.check(connection, f"database {path}", StoreError)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run a transaction that sees one state of the database, whatever other processes write."""
        with errors_as(self._error), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Run a transaction that excludes every other writer; an exception undoes all of it."""
        with errors_as(self._error), self._writer.begin() as connection:
            yield connection

    def forget_deleted(self) -> None:
        """Let SQLite's log drop deleted rows that nobody reads; the rows were sealed."""
        with errors_as(self._error), closing(self._engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _error(self, cause: BaseException | None) -> StoreError:
        kind = StoreUnavailable if may_pass(cause) else StoreError
        expected = "a database that can be read and written"
        return kind(f"database {self.path}", expected, cause)


def make(path: Path, first_rows: Callable[[Connection], None]) -> None:
    """Make a database where there is none; a database that another process made meanwhile stays.

    The file appears under its name with all tables and ``first_rows``. Raises StoreError where the
    folder takes no file.
    """
    subject = f"database {path}"
    partial = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
        try:
            _fill(partial, first_rows)
            with suppress(FileExistsError):
                os.link(partial, path)
        finally:
            for end in ("", "-wal", "-shm"):
                partial.with_name(partial.name + end).unlink(missing_ok=True)
    except (OSError, DBAPIError) as error:
        raise StoreError(subject, "a folder that takes new files", error) from error


def _fill(path: Path, first_rows: Callable[[Connection], None]) -> None:
    engine, _ = _engines(path)
    try:
        use_write_ahead_log(engine)
        with engine.begin() as connection:
            exchange_schema.metadata.create_all(connection)
            first_rows(connection)
            _STAMP.write(connection)
    finally:
        # The last connection writes SQLite's log into the file, and removes the log.
        engine.dispose()


def _engines(path: Path) -> tuple[Engine, Engine]:
    return new_engines(lambda: connect(path, "rw", _SETTINGS, BUSY_SECONDS))
