"""SQLite as the operator's database: one file, one writer, readers that need no right to write."""

from __future__ import annotations

import fcntl
import os
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, NullPool, Table

from chainkit.errors import StoreInUse, StoreUnavailable
from chainkit.sqlite import connect, driver_of, may_pass, new_engines, use_write_ahead_log

LOCK_SECONDS: Final = 5
"""How long a transaction waits for a program that holds the file's own write lock."""

_ROWS_PER_STATEMENT: Final = 50
"""Before version 3.32, SQLite takes no more than 999 values."""
_INCREMENTAL: Final = 2
_SETTINGS: Final = (
    "PRAGMA foreign_keys = ON",
    # FULL waits for the disk in each commit. NORMAL would risk the newest pages, which the chain
    # still has, but also the retracted payloads and the final block, which the chain does not have.
    # There is one wait per step, short compared with the time to write a page.
    "PRAGMA synchronous = FULL",
    # KiB, for each connection. Pages that do not fit go to the log before the commit.
    "PRAGMA cache_size = -4096",
    # Bytes: a long reader lets the log grow; afterwards it gives the space back.
    "PRAGMA journal_size_limit = 67108864",
)


class Sqlite:
    """The engine on a file; nothing is opened or created before the first transaction."""

    driver_error: Final = sqlite3.Error
    may_pass = staticmethod(may_pass)

    def __init__(self, file: Path, read_only: bool) -> None:
        """Take the file; a reader opens the file without the right to write."""
        # As in SQLite: a program that opens a symbolic link uses the same lock and the same log.
        self._file = Path(os.path.realpath(file))
        self._lock: _Lock | None = None
        if read_only:
            # Each connection checks again whether another program writes to it.
            engines = new_engines(self._connect_to_read, NullPool)
        else:
            engines = new_engines(lambda: connect(self._file, "rwc", _SETTINGS, LOCK_SECONDS))
        self._engine, self._writer = engines

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run a transaction that sees the state which its first query finds."""
        before = _state(self._file)
        with self._engine.begin() as connection:
            # Asked now: a session that was lost meanwhile has no driver to ask.
            is_unguarded = isinstance(driver_of(connection), _Unguarded)
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

        Raises StoreInUse if another indexer has the lock. SQLite's own lock ends with each
        transaction.
        """
        if self._lock is None:
            self._lock = _Lock(self._file)

    def prepare(self) -> None:
        """Let readers see a steady state while a writer commits. Lasts as long as the file.

        The page order that allows returning free pages also lasts.
        """
        use_write_ahead_log(self._engine, gives_back=True)

    def give_back(self, most_bytes: int) -> int | None:
        """Cut free pages off the end of the file: other pages move into the free ones.

        One transaction beside which no program can write.
        """
        with self.writing() as connection:
            driver = driver_of(connection)

            def number(name: str) -> int:
                return int(driver.execute(f"PRAGMA {name}").fetchone()[0])

            if number("auto_vacuum") != _INCREMENTAL:
                return None
            size = number("page_size")
            pages = min(number("freelist_count"), max(most_bytes // size, 1))
            for _ in range(pages):
                # The driver ends the statement after its first page, whatever number the statement
                # has.
                driver.execute("PRAGMA incremental_vacuum(1)")
            return pages * size

    def insert_many(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Any]
    ) -> None:
        """Insert tuples through the driver: SQLAlchemy would take several times as long.

        Many tuples per statement: in each statement the driver releases Python's lock, and may wait
        for it. Bytes as a bytearray: for ``bytes`` the driver looks for an adapter first, a quarter
        of the time.
        """
        self._insert("INSERT", connection, table, columns, rows)

    def insert_new(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Any]
    ) -> None:
        """Insert tuples as ``insert_many`` does, but for those whose key is taken."""
        self._insert("INSERT OR IGNORE", connection, table, columns, rows)

    @staticmethod
    def _insert(
        verb: str,
        connection: Connection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[Any],
    ) -> None:
        driver = driver_of(connection)
        for start in range(0, len(rows), _ROWS_PER_STATEMENT):
            part = rows[start : start + _ROWS_PER_STATEMENT]
            row = f"({', '.join('?' * len(columns))})"
            places = ", ".join([row] * len(part))
            statement = f"{verb} INTO {table.name} ({', '.join(columns)}) VALUES {places}"
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

    def _connect_to_read(self) -> sqlite3.Connection:
        if self._is_at_rest():
            return connect(self._file, "ro&immutable=1", seconds=LOCK_SECONDS, kind=_Unguarded)
        return connect(self._file, "ro", seconds=LOCK_SECONDS)

    def _is_at_rest(self) -> bool:
        """Return whether the database exists, was closed, and has not been opened since."""
        log = self._file.with_name(self._file.name + "-wal")
        return self._file.exists() and not log.exists()


class _Unguarded(sqlite3.Connection):
    """Reads a file at rest, and assumes that no program writes to it.

    To notice writers, SQLite would have to make files in the same folder. The process may have no
    right to, or the files would belong to the account that only reads. So ``reading`` checks
    afterwards whether a writer opened the file.
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
        """Return False if the file was removed meanwhile: then the lock excludes nobody."""
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


def _state(file: Path) -> tuple[int, ...]:
    """Return a value that differs after any write to a file; a missing file has none."""
    with suppress(FileNotFoundError):
        found = file.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return ()
