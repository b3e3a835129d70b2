"""Publications that the gateway has begun, so that nothing is published or paid twice.

A row is written before anything is sent, and completed with the answer. A gateway that was killed
in between looks for the publication: for a transaction by its hashes, for an envelope at its node
behind the sequence id of the row. A nonce has a row for each of its transactions: any of these
transactions may be mined. Payloads are dropped once nothing needs them: the file stays small.
SQLite: one gateway, one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from sqlalchemy import Connection, Engine, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.sqlite import insert

from chainkit.errors import ConfigurationError, StoreUnavailable
from chainkit.protocol.envelope import stated_place
from chainkit.sqlite import Stamp, connect, errors_as, is_new, new_engines, use_write_ahead_log
from chainkit.types import BlockReference
from chainkit_gateway.daily_sums import Spending, add_up, changing, read_sums
from chainkit_gateway.journal_tables import (
    HOLDS_ENVELOPE,
    HOLDS_RAW,
    IN_ORDER,
    PAYLOADS,
    metadata,
    publications,
    sent_of,
    settled,
    transactions,
    written,
)
from chainkit_gateway.types import Publication, Sent, Settlement

_STAMP: Final = Stamp(int.from_bytes(b"ckgw"), 3, "a gateway's journal", "another database")
_WITHOUT_SUMS: Final = replace(_STAMP, user_version=2)
# A row must be on the disk before its transaction or envelope leaves.
_SETTINGS: Final = ("PRAGMA synchronous = FULL",)


@dataclass(frozen=True, slots=True)
class Begun:
    """A publication that the gateway has begun, with the last known step."""

    digest: bytes
    """32 bytes."""
    client: str
    """The client that sent the publication first, and is charged."""
    node_id: int | None
    """The node that was asked to originate the envelope."""
    behind_sequence_id: int | None
    """The node's newest sequence id known then: the envelope, if stored, has a higher one."""
    envelope: bytes | None
    """A node's answer, an OriginatorEnvelope; None before it, and for a payload of the chain, whose
    place the chain knows."""


class AtNode(NamedTuple):
    """A publication, and the node that will be asked to publish it."""

    publication: Publication
    now_ns: int
    node_id: int
    behind: int
    """The last sequence id that is known of the node: its envelope lies behind it."""


_COLUMNS: Final = publications.c
_FIND_ALL: Final = select(
    *(_COLUMNS[name] for name in ("digest", "client", "node_id", "behind_sequence_id", "envelope"))
).where(_COLUMNS.digest.in_(bindparam("digests", expanding=True)))
_INSERT: Final = insert(publications)
_BEGIN: Final = _INSERT.on_conflict_do_update(
    index_elements=["digest"],
    set_={
        "node_id": _INSERT.excluded.node_id,
        "behind_sequence_id": _INSERT.excluded.behind_sequence_id,
    },
)
_COMPLETE: Final = (
    update(publications)
    .where(_COLUMNS.digest == bindparam("of"))
    .values(envelope=bindparam("answer"))
)


class Journal:
    """The gateway's file; its methods are safe to call from several threads.

    Each method raises StoreUnavailable where the file cannot be read or written now.
    """

    def __init__(self, engine: Engine, writer: Engine) -> None:
        """Use ``open``."""
        self._engine = engine
        self._writer = writer

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the file, or make the file where there is none; bring an older one to this version.

        Raises ConfigurationError where that is not possible, and, before any write, where the
        file is no gateway's journal of this version.
        """
        with _opened(path, "rwc", "a file that can be written") as (engine, writer):
            with writer.begin() as connection:
                if is_new(connection):
                    metadata.create_all(connection)
                    _STAMP.write(connection)
                elif _WITHOUT_SUMS.marks(connection):
                    metadata.create_all(connection)
                    for index in PAYLOADS:
                        index.create(connection, checkfirst=True)
                    add_up(connection)
                    _STAMP.write(connection)
                _STAMP.check(connection, f"journal {path}", ConfigurationError)
            use_write_ahead_log(engine)
        return cls(engine, writer)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open a journal to read, also while a gateway writes.

        Raises ConfigurationError where the file is no gateway's journal of this version.
        """
        with _opened(path, "ro", _STAMP.owned) as (engine, writer), engine.begin() as connection:
            _STAMP.check(connection, f"journal {path}", ConfigurationError)
        return cls(engine, writer)

    def find(self, digest: bytes) -> Begun | None:
        """Return a publication, None where the gateway never began it."""
        return self.find_all([digest])[0]

    def find_all(self, digests: Sequence[bytes]) -> list[Begun | None]:
        """Return publications in the order of their digests, as ``find``."""
        with self._begun() as connection:
            rows = connection.execute(_FIND_ALL, {"digests": digests}).all()
        found = {row.digest: Begun(*row) for row in rows}
        return [found.get(digest) for digest in digests]

    def begin_at_nodes(self, begins: Sequence[AtNode]) -> None:
        """Write which nodes will be asked, before they are asked."""
        rows = [
            _beginning(each.publication, each.now_ns)
            | {"node_id": each.node_id, "behind_sequence_id": each.behind}
            for each in begins
        ]
        with self._writing() as connection:
            connection.execute(_BEGIN, rows)

    def forget(self, digest: bytes) -> None:
        """Remove a refused publication, of which nothing left the gateway."""
        with self._writing() as connection:
            connection.execute(delete(publications).where(publications.c.digest == digest))

    def complete_all(self, answers: Sequence[tuple[bytes, bytes]]) -> None:
        """Write envelopes by digests: later requests get the same answers, and nothing is sent."""
        rows = [{"of": digest, "answer": envelope} for digest, envelope in answers]
        with self._writing() as connection:
            connection.execute(_COMPLETE, rows)

    def add_transaction(self, publication: Publication, sent: Sent) -> None:
        """Write a signed transaction that carries a publication, before it is sent."""
        first = insert(publications).values(**_beginning(publication, sent.sent_ns))
        with self._changing(sent.nonce) as connection:
            connection.execute(first.on_conflict_do_nothing())
            connection.execute(insert(transactions).values(**written(sent)))

    def add_replacement(self, sent: Sent) -> None:
        """Write a replacement, a signed transaction with the same nonce, before it is sent.

        The replaced transaction stays: either transaction may be mined.
        """
        with self._changing(sent.nonce) as connection:
            connection.execute(insert(transactions).values(**written(sent)))

    def remove_transaction(self, sent: Sent) -> None:
        """Remove a refused transaction, and its publication where no other transaction is left."""
        others = exists().where(transactions.c.digest == sent.digest)
        mine = publications.c.digest == sent.digest
        with self._changing(sent.nonce) as connection:
            connection.execute(delete(transactions).where(transactions.c.hash == sent.hash))
            connection.execute(delete(publications).where(mine, ~others))

    def settle(self, sent: Sent, settlement: Settlement) -> None:
        """Write what a mined transaction cost; no other transaction of its nonce can be mined."""
        done = update(transactions).where(transactions.c.nonce == sent.nonce)
        is_it = transactions.c.hash == sent.hash
        with self._changing(sent.nonce) as connection:
            connection.execute(done.where(~is_it).values(**settled(None)))
            connection.execute(done.where(is_it).values(**settled(settlement)))
            if (sequence_id := settlement.sequence_id) is not None:
                highest = transactions.c.highest_sequence_id
                is_higher = highest.is_(None) | (highest < sequence_id)
                risen = done.where(is_it, is_higher).values(highest_sequence_id=sequence_id)
                connection.execute(risen)

    def next_nonce(self) -> int:
        """Return the lowest nonce above all used nonces; 0 where none was used."""
        with self._begun() as connection:
            highest = connection.scalar(select(func.max(transactions.c.nonce)))
        return 0 if highest is None else highest + 1

    def transactions_of(self, digest: bytes) -> list[Sent]:
        """Return all transactions of a publication, by nonce and then in the order of sending."""
        return self._transactions(transactions.c.digest == digest)

    def transactions_from(self, nonce: int) -> list[Sent]:
        """Return the transactions with a nonce or a higher nonce, in the same order."""
        return self._transactions(transactions.c.nonce >= nonce)

    def unsettled_below(self, nonce: int, most: int) -> list[Sent]:
        """Return at most ``most`` transactions below a nonce, whose nonces have no receipt yet."""
        others = transactions.alias()
        is_settled = exists().where(
            others.c.nonce == transactions.c.nonce, others.c.block_number.is_not(None)
        )
        return self._transactions(transactions.c.nonce < nonce, ~is_settled, most=most)

    def blocks_from(self, number: int) -> list[BlockReference]:
        """Return the blocks from a height on in which transactions were mined."""
        columns = (transactions.c.block_number, transactions.c.block_hash)
        wanted = select(*columns).where(columns[0] >= number).distinct().order_by(*columns)
        with self._begun() as connection:
            return [BlockReference(*row) for row in connection.execute(wanted)]

    def unsettle(self, block: BlockReference) -> None:
        """Forget the receipts of a block that a reorg replaced."""
        place = transactions.c.block_number == block.number, transactions.c.block_hash == block.hash
        with self._writing() as connection:
            nonces = set(connection.scalars(select(transactions.c.nonce).where(*place)))
            with changing(connection, nonces):
                connection.execute(update(transactions).where(*place).values(**settled(None)))

    def fallen_from(self, number: int) -> dict[bytes, int]:
        """Return the payloads that a reorg left below the highest id that they ever had, by digest.

        A payload has the highest of its transactions' ids. One that still waits for a block, and
        one below a block's height, is left out.
        """
        columns, others, same = transactions.c, transactions.alias(), transactions.alias()
        now, once = func.max(columns.sequence_id), func.max(columns.highest_sequence_id)
        is_mined = exists().where(same.c.nonce == others.c.nonce, same.c.block_number.is_not(None))
        is_waiting = exists().where(others.c.digest == columns.digest, ~is_mined)
        wanted = select(columns.digest, once).where(columns.block_number >= number, ~is_waiting)
        wanted = wanted.group_by(columns.digest)
        with self._begun() as connection:
            found = connection.execute(wanted.having(now < once))
            return {digest: sequence_id for digest, sequence_id in found}

    def spending(self, day: date | None = None, client: str | None = None) -> list[Spending]:
        """Return what clients spent, by day and client; of one day or client where given."""
        with self._begun() as connection:
            return read_sums(connection, day, client)

    def drop_payloads(self, before_ns: int, below_block: int, most: int) -> int:
        """Forget bytes of old payloads, at most so many, and return how many were forgotten.

        A signed transaction goes once a transaction of its nonce is mined below a height, a node's
        answer once it is old: its place stays, and the answer is looked for there again.
        """
        same = transactions.alias()
        is_deep = exists().where(
            same.c.nonce == transactions.c.nonce, same.c.block_number < below_block
        )
        signed = select(transactions.c.hash).where(
            HOLDS_RAW, transactions.c.sent_ns < before_ns, is_deep
        )
        answered = select(publications.c.digest, publications.c.envelope).where(
            HOLDS_ENVELOPE, publications.c.received_ns < before_ns
        )
        with self._writing() as connection:
            hashes = connection.scalars(signed.limit(most)).all()
            done = update(transactions).where(transactions.c.hash.in_(hashes))
            connection.execute(done.values(raw=b""))
            answers = connection.execute(answered.limit(most)).all()
            for digest, envelope in answers:
                behind = stated_place(envelope)[1] - 1
                gone = update(publications).where(publications.c.digest == digest)
                connection.execute(gone.values(envelope=None, behind_sequence_id=behind))
        return len(hashes) + len(answers)

    def close(self) -> None:
        """Close the file."""
        self._engine.dispose()

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        refusal = partial(StoreUnavailable, "journal", "an answer")
        with errors_as(refusal), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        # The disk is full, or a lock lasts: nothing was written, so nothing may be sent.
        refusal = partial(StoreUnavailable, "journal", "an answer")
        with errors_as(refusal), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _changing(self, nonce: int) -> Iterator[Connection]:
        with self._writing() as connection, changing(connection, [nonce]):
            yield connection

    def _transactions(self, *conditions: Any, most: int | None = None) -> list[Sent]:
        wanted = select(transactions).where(*conditions).order_by(*IN_ORDER).limit(most)
        with self._begun() as connection:
            return [sent_of(row) for row in connection.execute(wanted).mappings()]


@contextmanager
def _opened(path: Path, mode: str, expected: str) -> Iterator[tuple[Engine, Engine]]:
    if path.is_dir():
        # SQLite would report a folder as "disk I/O error".
        raise ConfigurationError(f"journal {path}", _STAMP.owned, "a folder")
    engine, writer = new_engines(lambda: connect(path, mode, _SETTINGS))
    try:
        with errors_as(partial(ConfigurationError, f"journal {path}", expected)):
            yield engine, writer
    except BaseException:
        engine.dispose()
        raise


def _beginning(publication: Publication, now_ns: int) -> dict[str, Any]:
    digest, client = publication.digest, publication.client
    return {"digest": digest, "client": client, "received_ns": now_ns}
