"""The tables of version 0.1.0, which were made without Alembic."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    Text,
)

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    _make_positions()
    op.create_table(
        "envelopes",
        *_payload_place(),
        Column("originator_ns", BigInteger, nullable=False),
        Column("topic", LargeBinary, nullable=False),
        Column("envelope", LargeBinary, nullable=False),
        Column("payload_digest", LargeBinary, nullable=False),
    )
    op.create_index("envelopes_by_block", "envelopes", ["block_number"])
    op.create_table(
        "quarantine",
        *_payload_place(),
        Column("contract", LargeBinary, nullable=False),
        Column("identifier", LargeBinary, nullable=False),
        Column("payload", LargeBinary, nullable=False),
        Column("reason", Text, nullable=False),
        Column("payload_digest", LargeBinary, nullable=False),
    )
    op.create_index("quarantine_by_block", "quarantine", ["block_number"])
    _make_journal()


def _make_positions() -> None:
    op.create_table(
        "identity",
        _only_row(),
        Column("schema_version", Integer, nullable=False),
        Column("chain_id", BigInteger, nullable=False),
        Column("genesis_hash", LargeBinary, nullable=False),
        Column("node_public_key", LargeBinary, nullable=False),
        Column("group_messages", LargeBinary, nullable=False),
        Column("identity_updates", LargeBinary, nullable=False),
        Column("first_block", BigInteger, nullable=False),
    )
    op.create_table(
        "blocks",
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        Column("hash", LargeBinary, nullable=False),
        Column("parent_hash", LargeBinary, nullable=False),
        Column("timestamp", BigInteger, nullable=False),
        Column("last_sequence_id", BigInteger, nullable=False),
    )
    op.create_table(
        "cursor",
        _only_row(),
        Column("block_number", BigInteger, ForeignKey("blocks.number"), nullable=False),
        Column("block_hash", LargeBinary, nullable=False),
        Column("last_sequence_id", BigInteger, nullable=False),
    )


def _make_journal() -> None:
    op.create_table(
        "reorgs",
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("ancestor_number", BigInteger, nullable=False),
        Column("ancestor_hash", LargeBinary, nullable=False),
        Column("old_head_number", BigInteger, nullable=False),
        Column("old_head_hash", LargeBinary, nullable=False),
        Column("depth", Integer, nullable=False),
    )
    reorg = ForeignKey("reorgs.id")
    op.create_table(
        "journal",
        Column("reorg_id", Integer, reorg, primary_key=True, autoincrement=False),
        *_payload_place(),
        Column("envelope", LargeBinary),
        Column("payload_digest", LargeBinary, nullable=False),
        Column("outcome", Text, nullable=False),
        Column("new_sequence_id", BigInteger),
    )
    op.create_index("journal_by_transaction", "journal", ["transaction_hash"])


def _only_row() -> Column[Any]:
    return Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False)


def _payload_place() -> list[Column[Any]]:
    return [
        Column("originator_id", Integer, primary_key=True, autoincrement=False),
        Column("sequence_id", BigInteger, primary_key=True, autoincrement=False),
        Column("block_number", BigInteger, nullable=False),
        Column("block_hash", LargeBinary, nullable=False),
        Column("transaction_hash", LargeBinary, nullable=False),
        Column("transaction_index", Integer, nullable=False),
        Column("log_index", Integer, nullable=False),
    ]
