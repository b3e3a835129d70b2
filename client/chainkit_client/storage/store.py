"""The client's database, opened with its password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, insert, select

from chainkit.errors import StoreError
from chainkit_client.storage import schema
from chainkit_client.storage.database import Database, make
from chainkit_client.storage.sealing import (
    SCRYPT_COST,
    Keyring,
    Seal,
    new_keyring,
    open_keyring,
)


class Store:
    """An opened database; threads and processes may use one file at the same time.

    Each transaction is ``reading`` or ``writing``: functions of other packages take its connection,
    so that state, rows and cursors move together or not at all.
    """

    def __init__(self, database: Database, seal: Seal) -> None:
        """Use ``open``."""
        self._database = database
        self.seal = seal
        """Seals and opens the secret columns."""

    @classmethod
    def open(cls, path: Path, password: str, cost: int = SCRYPT_COST) -> Self:
        """Open a client's database, or make one where there is none.

        ``cost`` is scrypt's N for a new database. Raises WrongPassword, and StoreError where the
        file is no client's database, is of a newer version, or cannot be opened.
        """
        subject = f"database {path}"
        if not path.parent.is_dir():
            raise StoreError(subject, "a folder that exists", f"no folder {path.parent}")
        if path.is_dir():
            raise StoreError(subject, "a file", "a folder")
        if not path.exists():
            keyring, _ = new_keyring(password, cost)
            make(path, lambda connection: _insert_keyring(connection, keyring))
        database = Database(path)
        try:
            with database.reading() as connection:
                seal = open_keyring(_read_keyring(connection), password)
        except BaseException:
            database.close()
            raise
        return cls(database, seal)

    @property
    def name(self) -> str:
        """Path, for messages."""
        return str(self._database.path)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run a transaction that sees one state of the database, whatever other processes write.

        Raises StoreUnavailable where waiting may help, StoreError for the rest.
        """
        with self._database.reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Run a transaction that excludes every other writer; an exception undoes all of it.

        Raises StoreUnavailable where waiting may help, StoreError for the rest.
        """
        with self._database.writing() as connection:
            yield connection

    def forget_deleted(self) -> None:
        """Let SQLite's log drop deleted rows that nobody reads."""
        self._database.forget_deleted()

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _insert_keyring(connection: Connection, keyring: Keyring) -> None:
    row = {"salt": keyring.salt, "cost": keyring.cost, "sealed_key": keyring.sealed_key}
    connection.execute(insert(schema.keyring).values(id=1, **row))


def _read_keyring(connection: Connection) -> Keyring:
    columns = schema.keyring.c
    row = connection.execute(select(columns.salt, columns.cost, columns.sealed_key)).one()
    return Keyring(*row)
