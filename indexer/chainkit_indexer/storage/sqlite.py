"""SQLite as the operator's database: one file, one writer, readers that need no right to write."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, NullPool, QueuePool, Table, create_engine, event

from chainkit.errors import StoreInUse, StoreUnavailable

LOCK_SECONDS: Final = 5
"""How long a transaction waits for a program that holds the file's own write lock."""

_ROWS_PER_STATEMENT: Final = 50
"""Before version 3.32, SQLite takes no more than 999 values."""
_WRITES: Final = "chainkit_writes"
_SETTINGS: Final = (
    "PRAGMA foreign_keys = ON",
    # FULL waits for the disk in each commit. NORMAL would only risk the newest pages, which the
    # chain still has; but not what reorgs retracted, nor which block was already called final.
    # There is one wait per step, and it is short compared with the time to write a page.
    "PRAGMA synchronous = FULL",
    # KiB, for each connection. Pages that do not fit go to the log before the commit.
    "PRAGMA cache_size = -4096",
    # Bytes: a long reader lets the log grow; afterwards it gives the space back.
    "PRAGMA journal_size_limit = 67108864",
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


class Sqlite:
    """The engine on a file; nothing is opened or created before the first transaction."""

    driver_error: Final = sqlite3.Error

    def __init__(self, file: Path, read_only: bool) -> None:
        """Take the file; a reader opens it without the right to write."""
        # As SQLite does it: a program that opens a symbolic link uses the same lock and the same
        # log.
        self._file = Path(os.path.realpath(file))
        self._lock: _Lock | None = None
        if read_only:
            # Each connection checks again whether another program writes to it.
            self._engine = _engine(self._connect_to_read, NullPool)
        else:
            self._engine = _engine(self._connect, QueuePool)
        self._writer = self._engine.execution_options(**{_WRITES: True})

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run a transaction that sees the state which its first query finds."""
        before = _state(self._file)
        with self._engine.begin() as connection:
            # Asked now: a session that was lost meanwhile has no driver to ask.
            is_unguarded = isinstance(_driver(connection), _Unguarded)
            try:
                yield connection
            finally:
                if is_unguarded and _state(self._file) != before:
                    subject = f"database {self._file}"
                    raise StoreUnavailable(subject, "no writer while it is read", "one")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Run a transaction beside which no program can write."""
        with self._writer.begin() as connection:
            yield connection

    def lock(self) -> None:
        """Keep other indexers out until ``close``, or until this process ends in any way.

        Raises StoreInUse if another has it. SQLite's own lock ends with each transaction.
        """
        if self._lock is None:
            self._lock = _Lock(self._file)

    def prepare(self) -> None:
        """Let readers see a steady state while a writer commits. Lasts as long as the file."""
        connection = self._engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()

    def insert_many(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Any]
    ) -> None:
        """Insert tuples through the driver: SQLAlchemy would take several times as long.

        Many to a statement: in each one the driver gives Python's lock away, and may wait for it.
        Bytes as a bytearray: for ``bytes`` it looks for an adapter first: a quarter of the time.
        """
        driver = _driver(connection)
        for start in range(0, len(rows), _ROWS_PER_STATEMENT):
            part = rows[start : start + _ROWS_PER_STATEMENT]
            row = f"({', '.join('?' * len(columns))})"
            places = ", ".join([row] * len(part))
            statement = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {places}"
            values = chain.from_iterable(part)
            driver.execute(
                statement,
                [bytearray(value) if type(value) is bytes else value for value in values],
            )

    def close(self) -> None:
        """Close the file and let others lock it."""
        self._engine.dispose()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @staticmethod
    def may_pass(cause: BaseException | None) -> bool:
        """Tell whether waiting may help: it is locked, or the disk is full or out of order."""
        if isinstance(cause, OSError):
            return cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
        # The lowest byte is the kind of error, the others say which of its causes.
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in _PASSING

    def _connect(self) -> sqlite3.Connection:
        connection = _open(str(self._file), sqlite3.Connection)
        for setting in _SETTINGS:
            connection.execute(setting)
        return connection

    def _connect_to_read(self) -> sqlite3.Connection:
        address = f"file:{quote(str(self._file))}?mode=ro"
        if self._is_at_rest():
            return _open(f"{address}&immutable=1", _Unguarded)
        return _open(address, sqlite3.Connection)

    def _is_at_rest(self) -> bool:
        """Tell whether the database exists, was closed, and has not been opened since."""
        log = self._file.with_name(self._file.name + "-wal")
        return self._file.exists() and not log.exists()


class _Unguarded(sqlite3.Connection):
    """Reads a file at rest, and assumes that no program writes to it.

    To notice writers, SQLite would have to make files in the same folder. It may have no right to,
    or the files would belong to the account that only reads. So ``reading`` checks afterwards
    whether a writer opened it.
    """


class _Lock:
    """``<file>.lock``: locked while this process lives; its content names the process."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".lock")
        while not self._try():
            pass

    def release(self) -> None:
        # Before the lock is released: another process that opened the file finds that it was
        # removed.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _try(self) -> bool:
        """Return False if it was removed while we took it: then it excludes no other process."""
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 300).decode(errors="replace")
            os.close(self._descriptor)
            subject = f"database {self._database}"
            raise StoreInUse(subject, "no other indexer", holder or "one") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._descriptor), self._path.stat()):
                self._sign()
                return True
        os.close(self._descriptor)
        return False

    def _sign(self) -> None:
        # A courtesy: on a full disk the lock is as good without.
        with suppress(OSError):
            os.truncate(self._descriptor, 0)
            name = f"process {os.getpid()} on {socket.gethostname()}"
            os.write(self._descriptor, name.encode())


def _open(address: str, kind: type[sqlite3.Connection]) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address,
        timeout=LOCK_SECONDS,
        # Python's driver would begin transactions at its own discretion: late, and not for DDL.
        isolation_level=None,
        check_same_thread=False,
        factory=kind,
        uri=address.startswith("file:"),
    )
    return connection


def _engine(connect: Any, pool: type[NullPool] | type[QueuePool]) -> Engine:
    engine = create_engine("sqlite://", creator=connect, poolclass=pool, hide_parameters=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        # A deferred transaction that turns to writing fails if another one wrote meanwhile.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _state(file: Path) -> tuple[int, ...]:
    """Return what differs after anybody wrote to it; a file that is missing has no state."""
    with suppress(FileNotFoundError):
        found = file.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return ()
