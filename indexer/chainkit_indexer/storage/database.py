"""Opens the operator's database: SQLite and PostgreSQL behind one door."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from shutil import disk_usage
from threading import get_ident
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, text

from chainkit.errors import StoreError, StoreUnavailable
from chainkit.sqlite import errors_as
from chainkit_indexer.storage.location import HiddenWords, parse_location, shown
from chainkit_indexer.storage.sqlite import Sqlite
from chainkit_indexer.storage.turns import Turns

if TYPE_CHECKING:
    from chainkit_indexer.storage.postgresql import Postgresql


class Database:
    """A database with two kinds of transaction: ``reading`` sees one state, ``writing`` excludes.

    Threads may share the object: writers take turns, and readers wait for nobody.

    Every method raises StoreUnavailable where waiting may help (restarting, cut off, disk full,
    locked), StoreInUse where another indexer has the database, and StoreError for all other
    failures. After an interruption the next transaction connects again.
    """

    def __init__(self, location: str, read_only: bool = False, beside: bool = False) -> None:
        """Take a path or URL for SQLite or a URL for PostgreSQL; nothing is opened or made yet.

        With ``read_only`` no right to write is needed, and the lock is neither taken nor waited
        for. With ``beside`` the object writes beside the process that has the lock, and never takes
        the lock: for changes that no step of an indexer can contradict. Raises ConfigurationError
        for an unusable location.
        """
        found = parse_location(location)
        self.is_read_only = read_only
        self.is_beside = beside
        self.name = shown(found)
        """Path or URL without password, for messages."""
        self.file = found if isinstance(found, Path) else None
        """The path of the file, for SQLite."""
        self._hidden = HiddenWords(found)
        self._writers = Turns()
        self._writing_thread: int | None = None
        self._backend: Sqlite | Postgresql
        if isinstance(found, Path):
            self._backend = Sqlite(found, read_only)
        else:
            # Imported here: PostgreSQL's driver costs an operator of SQLite memory and time.
            from chainkit_indexer.storage.postgresql import Postgresql

            self._backend = Postgresql(found, self.name, beside)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run a transaction that sees one state of the database, whatever others write."""
        with self._errors(), self._backend.reading() as connection:
            yield connection

    @contextmanager
    def writing(self, *, answers: bool = False) -> Iterator[Connection]:
        """Run a transaction that excludes every other writer; an exception undoes all of it.

        The call waits for other threads of this process in their order; those with ``answers`` and
        those without alternate (``turns``). It takes the lock if this database does not have it,
        or no longer. Raises RuntimeError within another ``writing`` of the same thread, which would
        wait for itself.
        """
        assert not self.is_read_only, "only a database that was opened to write"
        with self._turns(answers):
            if not self.is_beside:
                self._lock()
            with self._errors(), self._backend.writing() as connection:
                yield connection

    def wait_for_commit(self, seconds: float) -> bool:
        """Return True once another process may have committed, False where none did in so long.

        For one thread.
        """
        assert not isinstance(self._backend, Sqlite), "only PostgreSQL tells of commits"
        with self._errors():
            return self._backend.wait_for_commit(seconds)

    def lock(self) -> None:
        """Keep every other indexer out until ``close``; raises StoreInUse if another is in."""
        with self._turns():
            self._lock()

    def _lock(self) -> None:
        with self._errors():
            try:
                self._backend.lock()
            except OSError as error:
                raise self._store_error(error) from error

    @contextmanager
    def _turns(self, answers: bool = False) -> Iterator[None]:
        # Only this thread can have set the owner to itself.
        if self._writing_thread == get_ident():
            raise RuntimeError(f"database {self.name}: a transaction writes already in this thread")
        with self._writers.turn(answers):
            self._writing_thread = get_ident()
            try:
                yield
            finally:
                self._writing_thread = None

    def prepare(self) -> None:
        """Called before the first tables: let readers see a steady state while a writer commits."""
        with self._errors():
            self._backend.prepare()

    def give_back(self, most_bytes: int) -> int | None:
        """Return free space of the file to the file system, ``most_bytes`` at a time.

        Return how many bytes: 0 once none is left, None where the database cannot: an older file,
        or PostgreSQL, whose server uses the space again (VACUUM).
        """
        with self._errors():
            return self._backend.give_back(most_bytes)

    def insert_many(
        self,
        connection: Connection,
        table: Table,
        columns: Sequence[str],
        rows: Sequence[Any],
        only_new: bool = False,
    ) -> None:
        """Insert rows, tuples in the order of ``columns``, in the fastest way of each database.

        With ``only_new`` rows whose key is taken are left out; else they raise StoreError.
        """
        if rows:
            insert = self._backend.insert_new if only_new else self._backend.insert_many
            insert(connection, table, columns, rows)

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

    def free_bytes(self, most: int) -> int | None:
        """Return how many bytes the database may still take, None where this is not known.

        ``most`` is the size that the database may reach, 0 where only its file system bounds it,
        which is known for SQLite alone.
        """
        free = []
        try:
            if self.file is not None:
                free.append(disk_usage(self.file.parent).free)
            if most:
                free.append(most - self._size())
        except OSError as error:
            raise self._store_error(error) from error
        return min(free, default=None)

    def used_bytes(self) -> int:
        """Return the size of the database."""
        try:
            return self._size()
        except OSError as error:
            raise self._store_error(error) from error

    def _size(self) -> int:
        if self.file is not None:
            files = self.file, self.file.with_name(f"{self.file.name}-wal")
            return sum(each.stat().st_size for each in files if each.exists())
        with self.reading() as connection:
            query = text("SELECT pg_database_size(current_database())")
            return int(connection.execute(query).scalar_one())

    def close(self) -> None:
        """Give all connections, and the lock, back, once no thread writes any more."""
        with self._turns(), self._errors():
            self._backend.close()

    def _errors(self) -> AbstractContextManager[None]:
        return errors_as(self._store_error, self._backend.driver_error)

    def _store_error(self, cause: BaseException | None) -> StoreError:
        kind = StoreUnavailable if self._backend.may_pass(cause) else StoreError
        # The server's words may be of several lines.
        got = " ".join(self._hidden.removed_from(str(cause)).split())
        return kind(f"database {self.name}", "a database that can be read and written", got)
