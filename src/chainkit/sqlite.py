"""Opens SQLite's files for all services. The library does not import it: it needs SQLAlchemy."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, Pool, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from chainkit.errors import ChainkitError

Refusal = Callable[[BaseException | None], Exception]
"""Returns the error to raise for an error of the driver."""

_WRITES: Final = "chainkit_writes"
_PASSING: Final = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM),
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The two numbers in a file's header that mark it as the database of one program.

    Errors name a file with this stamp by ``owned``, as in "a client's database", and other files by
    ``other``.
    """

    application_id: int
    user_version: int
    owned: str
    other: str

    def write(self, connection: Connection) -> None:
        """Mark the file, within the transaction that makes its tables."""
        connection.exec_driver_sql(f"PRAGMA application_id = {self.application_id}")
        connection.exec_driver_sql(f"PRAGMA user_version = {self.user_version}")

    def marks(self, connection: Connection) -> bool:
        """Return whether the file has this mark, of this version."""
        names = ("application_id", "user_version")
        return all(_header(connection, name) == getattr(self, name) for name in names)

    def check(self, connection: Connection, subject: str, error: type[ChainkitError]) -> None:
        """Raise ``error`` where the file has no such mark, or a mark of another version."""
        if _header(connection, "application_id") != self.application_id:
            raise error(subject, self.owned, self.other)
        version = _header(connection, "user_version")
        if version != self.user_version:
            age = "a newer" if version > self.user_version else "an older"
            got = f"version {version}, which {age} chainkit made"
            raise error(subject, f"version {self.user_version}", got)


def connect(
    path: Path,
    mode: str,
    settings: Sequence[str] = (),
    seconds: float = 5,
    kind: type[sqlite3.Connection] = sqlite3.Connection,
) -> sqlite3.Connection:
    """Open a file and execute ``settings``.

    ``mode`` is SQLite's: ``rwc`` makes a file where there is none, ``rw`` and ``ro`` do not.
    ``seconds`` is how long a transaction waits for a program that holds the file's write lock.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        timeout=seconds,
        # Python's driver would begin transactions at its own discretion: late, and not for DDL.
        isolation_level=None,
        check_same_thread=False,
        factory=kind,
        uri=True,
    )
    for setting in settings:
        connection.execute(setting)
    return connection


def new_engines(
    open_file: Callable[[], sqlite3.Connection], pool: type[Pool] = QueuePool
) -> tuple[Engine, Engine]:
    """Return two engines over one pool: one to read, and one whose transactions write alone."""
    engine = create_engine("sqlite://", creator=open_file, poolclass=pool, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        # A deferred transaction that turns to writing fails if another one wrote meanwhile.
        driver_of(connection).execute("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine, engine.execution_options(**{_WRITES: True})


def use_write_ahead_log(engine: Engine, gives_back: bool = False) -> None:
    """Let readers see a steady state while a writer commits. Lasts as long as the file.

    With ``gives_back`` a file that has no table yet will be able to give free pages back.
    """
    with closing(engine.raw_connection()) as connection:
        if gives_back:
            connection.cursor().execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.cursor().execute("PRAGMA journal_mode = WAL")


def driver_of(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection, past SQLAlchemy, which costs time."""
    found = connection.connection.driver_connection
    assert isinstance(found, sqlite3.Connection)
    return found


def is_new(connection: Connection) -> bool:
    """Return whether no program has marked the file, or made a table in it."""
    return not _header(connection, "application_id") and not _header(connection, "schema_version")


@contextmanager
def errors_as(refusal: Refusal, driver_error: type[Exception] = sqlite3.Error) -> Iterator[None]:
    """Raise what ``refusal`` makes of a driver's error, also of one that SQLAlchemy wrapped."""
    try:
        yield
    except (DBAPIError, driver_error) as error:
        raise refusal(getattr(error, "orig", error)) from error


def may_pass(cause: BaseException | None) -> bool:
    """Return whether waiting may help: the file is locked, or the disk is full or out of order."""
    if isinstance(cause, OSError):
        return cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    # The lowest byte is the kind of error, the others identify its cause.
    return getattr(cause, "sqlite_errorcode", 0) & 0xFF in _PASSING


def _header(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
