"""Publications that the gateway has begun, so that nothing is published, or paid, twice.

A row is written before anything is sent, and completed when the answer is there. A gateway that was
killed in between finds out what became of it: a transaction by its hash, an envelope at its node
behind the sequence id that stands here. SQLite: one gateway, one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    LargeBinary,
    MetaData,
    Table,
    create_engine,
    event,
    func,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError

from chainkit.errors import ConfigurationError

_metadata: Final = MetaData()

_publications: Final = Table(
    "publications",
    _metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("received_ns", BigInteger, nullable=False),
    Column("node_id", BigInteger),
    Column("behind_sequence_id", BigInteger),
    Column("nonce", BigInteger, unique=True),
    Column("transaction_hash", LargeBinary),
    Column("raw", LargeBinary),
    Column("envelope", LargeBinary),
)


@dataclass(frozen=True, slots=True)
class Begun:
    """A publication, as far as it is known to have come."""

    digest: bytes
    """32 bytes."""
    node_id: int | None
    """Which node was asked to originate it."""
    behind_sequence_id: int | None
    """That node's newest sequence id known then: the envelope, if there is one, has a higher."""
    transaction_hash: bytes | None
    """32 bytes: the transaction that carries it to the chain."""
    raw: bytes | None
    """That transaction, signed."""
    envelope: bytes | None
    """The answer, an OriginatorEnvelope, once it is there."""


class Journal:
    """The gateway's file; its methods are safe to call from several threads."""

    def __init__(self, engine: Engine) -> None:
        """Use ``open``."""
        self._engine = engine

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or make the file. Raises ConfigurationError where that is not possible."""
        engine = create_engine(f"sqlite:///{path}", hide_parameters=True)

        @event.listens_for(engine, "connect")
        def connect(connection: Any, record: object) -> None:
            connection.execute("PRAGMA journal_mode = WAL")
            # A row must be on the disk before its transaction or envelope leaves.
            connection.execute("PRAGMA synchronous = FULL")

        try:
            _metadata.create_all(engine)
        except DBAPIError as error:
            expected = "a file that can be written"
            raise ConfigurationError(f"journal {path}", expected, error.orig) from error
        return cls(engine)

    def find(self, digest: bytes) -> Begun | None:
        """Return what is known of a publication, or None where it never began."""
        with self._engine.begin() as connection:
            return _find(connection, digest)

    def begin_at_node(self, digest: bytes, now_ns: int, node_id: int, behind: int) -> None:
        """Write that a node is about to be asked, before it is."""
        values = {"node_id": node_id, "behind_sequence_id": behind}
        self._begin(digest, now_ns, values)

    def begin_at_chain(
        self, digest: bytes, now_ns: int, nonce: int, transaction_hash: bytes, raw: bytes
    ) -> None:
        """Write the signed transaction of a publication, before it is sent."""
        values = {"nonce": nonce, "transaction_hash": transaction_hash, "raw": raw}
        self._begin(digest, now_ns, values)

    def forget(self, digest: bytes) -> None:
        """Remove a publication that was refused: nothing of it left the gateway."""
        with self._engine.begin() as connection:
            connection.execute(_publications.delete().where(_publications.c.digest == digest))

    def complete(self, digest: bytes, envelope: bytes) -> None:
        """Write the answer: from now on it is given again, and nothing is sent."""
        done = update(_publications).where(_publications.c.digest == digest)
        with self._engine.begin() as connection:
            connection.execute(done.values(envelope=envelope))

    def next_nonce(self) -> int:
        """Return the lowest nonce above all that were used here; 0 where none was."""
        with self._engine.begin() as connection:
            highest = connection.scalar(select(func.max(_publications.c.nonce)))
        return 0 if highest is None else highest + 1

    def transactions_from(self, nonce: int) -> Sequence[Begun]:
        """Return the publications whose transactions have a nonce or a higher one, in order."""
        wanted = select(_publications).where(_publications.c.nonce >= nonce)
        with self._engine.begin() as connection:
            return [_begun(row) for row in connection.execute(wanted.order_by("nonce")).mappings()]

    def close(self) -> None:
        """Close the file."""
        self._engine.dispose()

    def _begin(self, digest: bytes, now_ns: int, values: dict[str, Any]) -> None:
        row = insert(_publications).values(digest=digest, received_ns=now_ns, **values)
        again = row.on_conflict_do_update(index_elements=["digest"], set_=values)
        with self._engine.begin() as connection:
            connection.execute(again)


def _find(connection: Connection, digest: bytes) -> Begun | None:
    row = connection.execute(select(_publications).where(_publications.c.digest == digest))
    found = row.mappings().one_or_none()
    return None if found is None else _begun(found)


def _begun(row: Any) -> Begun:
    names = ("digest", "node_id", "behind_sequence_id", "transaction_hash", "raw", "envelope")
    return Begun(*(row[name] for name in names))
