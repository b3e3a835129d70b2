"""SQLite as the client's database: one file that several processes may use at the same time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from chainkit.errors import StoreError, StoreUnavailable
from chainkit_client.storage import schema

BUSY_SECONDS: Final = 30
"""How long a transaction waits for another process that writes, and may wait for its engine."""

_APPLICATION: Final = 0x636B636C
"""``PRAGMA application_id``: "ckcl"."""
_PRIVATE: Final = 0o600
_WRITES: Final = "chainkit_writes"
_SETTINGS: Final = (
    "PRAGMA foreign_keys = ON",
    # A payload is on the disk before it leaves: another one with the same keys would betray both.
    "PRAGMA synchronous = FULL",
    # Old states are gone once they are deleted.
    "PRAGMA secure_delete = ON",
)
_PASSING: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
    }
)


class Database:
    """The file with its two kinds of transaction; threads and processes may share it.

    Everything raises StoreUnavailable where waiting may help, and StoreError for the rest.
    """

    def __init__(self, path: Path) -> None:
        """Open a file that exists. Raises StoreError where it is not a client's of this version."""
        self.path = path
        self._engine = _engine(path)
        self._writer = self._engine.execution_options(**{_WRITES: True})
        try:
            # A copy, or a program with other habits, may have let others read it.
            path.chmod(_PRIVATE)
            self._check()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run a transaction that sees one state of the database, whatever others write."""
        with self._errors(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Run a transaction that excludes every other writer; an exception undoes all of it."""
        with self._errors(), self._writer.begin() as connection:
            yield connection

    def forget_deleted(self) -> None:
        """Let the log give up what was deleted, as far as nobody reads it; it stays sealed."""
        with self._errors(), closing(self._engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()

    def _check(self) -> None:
        with self.reading() as connection:
            application = connection.exec_driver_sql("PRAGMA application_id").scalar()
            version = connection.exec_driver_sql("PRAGMA user_version").scalar()
        subject = f"database {self.path}"
        if application != _APPLICATION:
            raise StoreError(subject, "a client's database", "another")
        if version != schema.VERSION:
            got = f"version {version}, which a newer chainkit made"
            raise StoreError(subject, f"version {schema.VERSION}", got)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            # The lowest byte is the kind of error, the others say which of its causes.
            may_pass = getattr(cause, "sqlite_errorcode", 0) & 0xFF in _PASSING
            kind = StoreUnavailable if may_pass else StoreError
            expected = "a database that can be read and written"
            raise kind(f"database {self.path}", expected, cause) from error


def make(path: Path, first_rows: Callable[[Connection], None]) -> None:
    """Make a database where there is none; if another process made one meanwhile, that one stays.

    It appears under its name with all its tables and ``first_rows``. Raises StoreError where the
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
    engine = _engine(path)
    try:
        with closing(engine.raw_connection()) as raw:
            # It lasts as long as the file.
            raw.cursor().execute("PRAGMA journal_mode = WAL")
        with engine.begin() as connection:
            schema.metadata.create_all(connection)
            first_rows(connection)
            connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION}")
            connection.exec_driver_sql(f"PRAGMA user_version = {schema.VERSION}")
    finally:
        # The last connection writes the log into the file, and takes it away.
        engine.dispose()


def _engine(path: Path) -> Engine:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            timeout=BUSY_SECONDS,
            # Python's driver would begin transactions at its own discretion.
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        for setting in _SETTINGS:
            connection.execute(setting)
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        # A transaction that turns to writing fails if another process wrote meanwhile.
        cursor = connection.connection.cursor()
        cursor.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        cursor.close()

    return engine
