"""The operator's database. Portable SQL: nothing here names SQLite or PostgreSQL.

Except for the journal, every table is a function of the chain and the node's key: no local
clock, no order of arrival. Hashes, keys and payloads are binary; sequence ids fit 63 bits.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

SCHEMA_VERSION: Final = 1

KEPT: Final = "kept"
MOVED: Final = "moved"
DROPPED: Final = "dropped"

metadata = MetaData()


def _column(name: str, kind: Any, *constraints: Any) -> Column[Any]:
    return Column(name, kind, *constraints, nullable=False)


def _only_row() -> Column[Any]:
    return Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False)


def _key(name: str, kind: Any, *constraints: Any) -> Column[Any]:
    return Column(name, kind, *constraints, primary_key=True, autoincrement=False)


def _payload_place() -> list[Column[Any]]:
    return [
        _key("originator_id", Integer),
        _key("sequence_id", BigInteger),
        _column("block_number", BigInteger),
        _column("block_hash", LargeBinary),
        _column("transaction_hash", LargeBinary),
        _column("transaction_index", Integer),
        _column("log_index", Integer),
    ]


identity = Table(
    "identity",
    metadata,
    _only_row(),
    _column("schema_version", Integer),
    _column("chain_id", BigInteger),
    _column("genesis_hash", LargeBinary),
    _column("node_public_key", LargeBinary),
    _column("group_messages", LargeBinary),
    _column("identity_updates", LargeBinary),
    _column("first_block", BigInteger),
)
"""Whose database this is: one row, written when the tables are made and never changed."""

blocks = Table(
    "blocks",
    metadata,
    _key("number", BigInteger),
    _column("hash", LargeBinary),
    _column("parent_hash", LargeBinary),
    _column("timestamp", BigInteger),
    _column("last_sequence_id", BigInteger),
)
"""The newest blocks up to the cursor, to find where a reorg forked off."""

cursor = Table(
    "cursor",
    metadata,
    _only_row(),
    _column("block_number", BigInteger, ForeignKey("blocks.number")),
    _column("block_hash", LargeBinary),
    _column("last_sequence_id", BigInteger),
)
"""How far the chain was followed: no row before the first page, then one."""

envelopes = Table(
    "envelopes",
    metadata,
    *_payload_place(),
    _column("originator_ns", BigInteger),
    _column("topic", LargeBinary),
    _column("envelope", LargeBinary),
    _column("payload_digest", LargeBinary),
    Index("envelopes_by_block", "block_number"),
)
"""What the node serves; ``envelope`` is the serialized OriginatorEnvelope (XIP-49 §3.2.1)."""

quarantine = Table(
    "quarantine",
    metadata,
    *_payload_place(),
    _column("contract", LargeBinary),
    _column("identifier", LargeBinary),
    _column("payload", LargeBinary),
    _column("reason", Text),
    _column("payload_digest", LargeBinary),
    Index("quarantine_by_block", "block_number"),
)
"""What was posted but is never served. Its sequence ids are missing in ``envelopes``."""

reorgs = Table(
    "reorgs",
    metadata,
    _key("id", Integer),
    _column("ancestor_number", BigInteger),
    _column("ancestor_hash", LargeBinary),
    _column("old_head_number", BigInteger),
    _column("old_head_hash", LargeBinary),
    _column("depth", Integer),
)
"""Each reorg that reached below the cursor, in the order in which this node saw them."""

journal = Table(
    "journal",
    metadata,
    _key("reorg_id", Integer, ForeignKey("reorgs.id")),
    *_payload_place(),
    Column("envelope", LargeBinary),
    _column("payload_digest", LargeBinary),
    _column("outcome", Text),
    Column("new_sequence_id", BigInteger),
    Index("journal_by_transaction", "transaction_hash"),
)
"""What reorgs retracted: it was served, so it is evidence. ``envelope`` is null for what stood
in quarantine; ``outcome`` is dropped until the same payload of the same transaction is seen
again, then kept or, with ``new_sequence_id``, moved."""
