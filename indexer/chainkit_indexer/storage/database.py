"""Opens the operator's database: what differs between SQLite and others stands here alone."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from chainkit.errors import ConfigurationError, StoreError

LOCK_SECONDS: Final = 5
"""How long a transaction waits for a process that holds SQLite's write lock."""

_WRITES: Final = "chainkit_writes"
_SCHEME: Final = re.compile(r"[\w+.-]+://")
_URL_WITHOUT_SLASHES: Final = re.compile(r"[\w+.-]{2,}:.*@")


class Database:
    """An engine with two kinds of transaction: ``reading`` sees one state, ``writing`` is alone."""

    def __init__(self, location: str) -> None:
        """Take a SQLAlchemy URL, or a path for SQLite; nothing is opened or created yet.

        Raises ConfigurationError for a URL that no installed driver understands.
        """
        url = _url(location)
        # A URL may hold a password, also in its query, so this is what errors show.
        self.file = Path(url.database or "") if _is_sqlite(url) else None
        self.name = str(self.file or url.set(query={}).render_as_string(hide_password=True))
        try:
            self._engine = _sqlite_engine(url) if _is_sqlite(url) else _engine(url)
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise ConfigurationError("database", "an installed driver", error) from error
        except (ArgumentError, ValueError):
            raise _malformed(location) from None
        self._writer = self._engine.execution_options(**{_WRITES: True})

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

    def prepare(self) -> None:
        """Let readers see a steady state while a writer commits. Lasts as long as the file."""
        if self.file is None:
            return
        with self._errors():
            connection = self._engine.raw_connection()
            try:
                connection.cursor().execute("PRAGMA journal_mode = WAL")
            finally:
                connection.close()

    def check_file(self, create: bool) -> None:
        """Raise StoreError where the path cannot hold, or does not hold, a database file."""
        if self.file is None:
            return
        subject = f"database {self.name}"
        if self.file.is_dir():
            raise StoreError(subject, "a file", "a folder")
        if not self.file.parent.is_dir():
            raise StoreError(subject, "a folder that exists", f"no folder {self.file.parent}")
        if not create and not self.file.exists():
            raise StoreError(subject, "a file that exists", "none")

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._store_error(error.orig) from error
        except sqlite3.Error as error:
            raise self._store_error(error) from error

    def _store_error(self, cause: BaseException | None) -> StoreError:
        subject = f"database {self.name}"
        if "locked" in str(cause):
            return StoreError(subject, f"its lock within {LOCK_SECONDS} seconds", cause)
        return StoreError(subject, "a database that can be read and written", cause)


def _url(location: str) -> URL:
    if "://" not in location and not _URL_WITHOUT_SLASHES.match(location):
        return URL.create("sqlite", database=location)
    try:
        url = make_url(location)
    except (ArgumentError, ValueError):
        raise _malformed(location) from None
    if "@" in (url.host or ""):
        # The rest of a password that holds an @, which a URL writes as %40.
        raise _malformed(location)
    if _is_sqlite(url):
        if url.username or url.host:
            raise _malformed(location)
        if url.database in (None, "", ":memory:"):
            raise ConfigurationError("database", "a path to a file", "none")
    return url


def _malformed(location: str) -> ConfigurationError:
    """Show nothing of a URL but its scheme: any other part may be a password or a piece of one."""
    scheme = _SCHEME.match(location)
    got = f"a malformed {scheme[0]} URL" if scheme else "a malformed URL"
    return ConfigurationError("database", "a path or a URL", got)


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": LOCK_SECONDS})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        # Python's driver would begin transactions at its own discretion: late, and not for DDL.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        # A deferred transaction that turns to writing fails if another one wrote meanwhile.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _engine(url: URL) -> Engine:
    return create_engine(url, isolation_level="REPEATABLE READ")
