"""Envelopes of all originators in one table, and the logs of the chain's in one of their own.

Both tables are written anew: a column that is only dropped leaves its bytes in PostgreSQL's rows.
"""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, LargeBinary

revision = "0004"
down_revision = "0003"

_LOG = (
    "originator_id, sequence_id,"
    " block_number, block_hash, transaction_hash, transaction_index, log_index"
)
_ENVELOPE = "originator_id, sequence_id, originator_ns, topic, envelope"


def upgrade() -> None:
    """Part the rows in two; none of them expires."""
    op.execute("DROP VIEW served_envelopes")
    op.rename_table("envelopes", "envelopes_before")
    if op.get_context().dialect.name == "postgresql":
        # The new table's key takes the name.
        op.execute("ALTER INDEX envelopes_pkey RENAME TO envelopes_before_pkey")
    _make_tables()
    op.execute(f"INSERT INTO envelopes ({_ENVELOPE}) SELECT {_ENVELOPE} FROM envelopes_before")
    op.execute(f"INSERT INTO envelope_logs ({_LOG}) SELECT {_LOG} FROM envelopes_before")
    op.drop_table("envelopes_before")
    op.create_index("envelopes_by_topic", "envelopes", ["topic", "originator_id", "sequence_id"])
    op.execute(
        "CREATE VIEW served_envelopes AS SELECT"
        " envelope_logs.originator_id, envelope_logs.sequence_id,"
        " envelope_logs.block_number, envelope_logs.block_hash,"
        " transaction_hash, transaction_index, log_index, originator_ns, topic, envelope,"
        " cursor.block_number - envelope_logs.block_number + 1 AS confirmations,"
        " CASE WHEN envelope_logs.block_number <= cursor.final_block_number"
        " THEN 'final' ELSE 'soft' END AS finality,"
        " (SELECT established FROM provenance WHERE first_block <= envelope_logs.block_number"
        " ORDER BY first_block DESC LIMIT 1) AS established"
        " FROM envelope_logs"
        " JOIN envelopes ON envelopes.originator_id = envelope_logs.originator_id"
        " AND envelopes.sequence_id = envelope_logs.sequence_id"
        " CROSS JOIN cursor"
    )


def _make_tables() -> None:
    op.create_table(
        "envelopes",
        *_key(),
        _column("originator_ns", BigInteger),
        _column("topic", LargeBinary),
        Column("expires_at", BigInteger),
        _column("envelope", LargeBinary),
    )
    op.create_table(
        "envelope_logs",
        *_key(),
        _column("block_number", BigInteger),
        _column("block_hash", LargeBinary),
        _column("transaction_hash", LargeBinary),
        _column("transaction_index", Integer),
        _column("log_index", Integer),
    )


def _key() -> list[Column[Any]]:
    return [
        Column(name, BigInteger, primary_key=True, autoincrement=False)
        for name in ("originator_id", "sequence_id")
    ]


def _column(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False)
