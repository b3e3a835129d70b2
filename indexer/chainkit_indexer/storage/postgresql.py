"""PostgreSQL as the operator's database: one session writes, and holds the lock while it lives."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.types.string import BytesBinaryDumper
from sqlalchemy import (
    URL,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    NullPool,
    QueuePool,
    Table,
    Text,
    create_engine,
    event,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError

from chainkit.errors import ConfigurationError, StoreInUse, StoreUnavailable

_CONNECTION_DEFAULTS: Final[dict[str, str | tuple[str, ...]]] = {
    "application_name": "chainkit",
    # Seconds, then milliseconds, until a server that is silent counts as gone: libpq alone waits
    # for ever.
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
_WRITER_SETTINGS: Final = (
    # Also until a silent writer counts as gone, with its lock: another writer may then begin.
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
    "SET tcp_user_timeout = 60000",
)
_SETTING: Final = "SET enable_bitmapscan = off"
"""For each session: a query in the order of an index with a limit is read by that index. A bitmap
has no order, and takes all rows that may come before the first result."""

# Two indexers may use two schemas of one database; advisory locks are the database's own.
_KEY: Final = "1667983732, hashtext(coalesce(current_schema(), ''))"
_TRY_LOCK: Final = text(f"SELECT pg_try_advisory_lock({_KEY})")
_AWAIT_LOCK: Final = text(f"SELECT pg_advisory_lock({_KEY})")
_CHANNEL: Final = "chainkit_commits"
_TELL: Final = text(f"SELECT pg_notify('{_CHANNEL}', current_schema())")
"""The server notifies all listeners when, and only if, the transaction is committed."""
_PATIENCE: Final = "SET LOCAL lock_timeout = '3s'"
"""The server ends a session, and releases its lock, some time after its client has ended: an
indexer that is restarted at once finds the lock of its predecessor."""
_NOT_IN_TIME: Final = "55P03"
_HOLDER: Final = text(
    "SELECT pid, application_name, host(client_addr)"
    " FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND datname = current_database()"
    " AND classid = 1667983732"
    " AND objid::bigint = hashtext(coalesce(current_schema(), ''))::bigint & 4294967295"
)
_TERMINATE: Final = text("SELECT pg_terminate_backend(:pid, 5000)")

_COPY_TYPES: Final = {
    BigInteger: "int8",
    Integer: "int4",
    LargeBinary: "bytea",
    Text: "text",
    Boolean: "bool",
}
"""Column types for binary COPY: the driver would guess them from each value."""

_READ_ONLY: Final = "25006"
"""SQLSTATE of a server that has become a standby: a new session reaches its successor."""

_PASSING: Final = ("08", "40", "53", "55P03", "57", "58030")
"""SQLSTATEs, or their classes: connection lost, undone for another transaction, disk or memory or
connections used up, lock not available, shut down or cancelled by an operator, I/O error."""

_REFUSALS: Final = (
    "authentication failed",
    "certificate",
    "definition of service",
    "does not exist",
    "does not support SSL",
    "for connection option",
    "no password supplied",
    "not permitted",
    "permission denied",
    "pg_hba.conf",
    ' value: "',
)
"""Words of a server that refuses access, or of libpq about an option that it cannot use. Waiting
does not help, and such errors come without a code."""


class Postgresql:
    """The engines on a database; nothing is connected before the first transaction."""

    driver_error: Final = psycopg.Error

    def __init__(self, url: URL, name: str, is_beside: bool) -> None:
        """Take the URL, whose query may set any option of libpq, and its name in messages.

        ``is_beside`` never takes the lock. Raises ConfigurationError, which shows no part of the
        query, for an unusable URL.
        """
        self._name = name
        self._is_beside = is_beside
        host = socket.gethostname()[:24]
        # A unique name: by it we recognize a session of ours that the server takes for alive.
        self._session = f"chainkit process {os.getpid()} on {host} {secrets.token_hex(4)}"
        self._readers = _engine(url, QueuePool, pool_pre_ping=True)
        self._readers.update_execution_options(postgresql_readonly=True)
        # A closed session must be gone, and not wait in a pool with its lock.
        self._writers = _engine(url, NullPool)
        self._writer: Connection | None = None
        self._listener: _Listener | None = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run a transaction that sees the state which its first query finds."""
        with self._readers.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Run a transaction in the session that holds the lock: both live and end together.

        Raises StoreUnavailable where the server has become read-only; the next one connects anew.
        """
        self.lock()
        writer = self._writer
        assert writer is not None
        is_standby = False
        try:
            with writer.begin():
                yield writer
                if not self._is_beside:
                    writer.execute(_TELL)
        except (DBAPIError, psycopg.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            is_standby = getattr(cause, "sqlstate", None) == _READ_ONLY
            if not is_standby:
                raise
            got = "one that is read-only"
            raise StoreUnavailable(f"database {self._name}", "the primary server", got) from error
        finally:
            if is_standby or writer.invalidated or _driver(writer).closed:
                self._writer = None
                writer.invalidate()
                writer.close()
                self._readers.dispose()

    def lock(self) -> None:
        """Keep other indexers out until ``close``, or until this process ends in any way.

        Raises StoreInUse if another indexer has the lock. Once the session was lost, the lock is
        taken again before anything is written.
        """
        if self._writer is not None:
            return
        connection = self._writers.connect()
        try:
            with connection.begin():
                self._begin_session(connection)
        except BaseException:
            connection.close()
            raise
        self._writer = connection

    def wait_for_commit(self, seconds: float) -> bool:
        """Return True once another process has committed, False where none did in so long.

        A new session begins with True: nobody knows what was committed before.
        """
        if self._listener is None:
            self._listener = _Listener(self._writers)
            return True
        try:
            return self._listener.wait(seconds)
        except psycopg.Error:
            self._listener.discard()
            self._listener = None
            raise

    def prepare(self) -> None:
        """Do nothing: PostgreSQL's readers always see a steady state."""

    def give_back(self, most_bytes: int) -> int | None:
        """Let the server use the space of deleted rows again, beside all who read and write."""
        with self._writers.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM (SKIP_LOCKED) envelopes")
        return None

    def insert_many(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Any]
    ) -> None:
        """Insert tuples by binary COPY, in the same transaction."""
        statement = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        types = [_COPY_TYPES[type(table.c[name].type)] for name in columns]
        with _driver(connection).cursor() as cursor, cursor.copy(statement.encode()) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def insert_new(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Any]
    ) -> None:
        """Insert tuples as ``insert_many`` does, but for those whose key is taken.

        COPY cannot leave rows out: they go through a table of this session.
        """
        copied = Table(f"new_{table.name}", MetaData(), *(Column(c.name, c.type) for c in table.c))
        connection.exec_driver_sql(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {copied.name} (LIKE {table.name})"
            " ON COMMIT DELETE ROWS"
        )
        self.insert_many(connection, copied, columns, rows)
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} SELECT * FROM {copied.name} ON CONFLICT DO NOTHING"
        )

    def close(self) -> None:
        """End all sessions, and the lock with its own."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._readers.dispose()

    @staticmethod
    def may_pass(cause: BaseException | None) -> bool:
        """Return whether waiting may help: a restart, a lost connection, or a lack of resources."""
        if not isinstance(cause, psycopg.Error):
            return False
        if cause.sqlstate is not None:
            return cause.sqlstate.startswith(_PASSING)
        is_refused = any(words in str(cause) for words in _REFUSALS)
        return isinstance(cause, psycopg.OperationalError) and not is_refused

    def _begin_session(self, connection: Connection) -> None:
        for setting in _WRITER_SETTINGS:
            connection.exec_driver_sql(setting)
        # COPY finds this dumper by the column's type: otherwise a slower one, of DB-API's Binary,
        # in Python.
        _driver(connection).adapters.register_dumper(bytes, BytesBinaryDumper)
        connection.execute(
            text("SELECT set_config('application_name', :name, false)"), {"name": self._session}
        )
        if self._is_beside or connection.scalar(_TRY_LOCK):
            return
        holder = connection.execute(_HOLDER).first()
        if holder is not None and holder.application_name == self._session:
            # The network lost the session, which the server may notice only after a minute.
            connection.execute(_TERMINATE, {"pid": holder.pid})
        if _is_free_in_time(connection):
            return
        got = "one" if holder is None else f"{holder.application_name} ({holder.host or 'local'})"
        raise StoreInUse(f"database {self._name}", "no other indexer", got)


class _Listener:
    """A session that receives notifications of the commits in its schema."""

    def __init__(self, engine: Engine) -> None:
        self._session = engine.raw_connection()
        driver = self._session.driver_connection
        assert isinstance(driver, psycopg.Connection)
        self._driver = driver
        driver.autocommit = True
        driver.execute(f"LISTEN {_CHANNEL}")
        found = driver.execute("SELECT current_schema()").fetchone()
        self._schema = None if found is None else found[0]

    def wait(self, seconds: float) -> bool:
        notified = [*self._driver.notifies(timeout=seconds, stop_after=1)]
        if notified:
            # One look is enough for all that came together.
            notified += self._driver.notifies(timeout=0)
        return any(each.payload == self._schema for each in notified)

    def close(self) -> None:
        self._session.close()

    def discard(self) -> None:
        """End a lost session without another request to the server."""
        self._session.invalidate()


def _engine(url: URL, pool: type[NullPool] | type[QueuePool], **options: Any) -> Engine:
    complete = url.update_query_dict(_CONNECTION_DEFAULTS | dict(url.query))
    try:
        engine = create_engine(
            complete.set(drivername="postgresql+psycopg"),
            isolation_level="REPEATABLE READ",
            poolclass=pool,
            hide_parameters=True,
            **options,
        )
    except ArgumentError:
        expected, got = "a URL with a query that PostgreSQL's driver takes", "another query"
        raise ConfigurationError("database", expected, got) from None
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(driver: psycopg.Connection[Any], _: object) -> None:
    driver.execute(_SETTING)
    driver.commit()


def _is_free_in_time(connection: Connection) -> bool:
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(_PATIENCE)
            connection.execute(_AWAIT_LOCK)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _NOT_IN_TIME:
            raise
        return False
    return True


def _driver(connection: Connection) -> psycopg.Connection[Any]:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
