"""All tables of the operator's database, with those that only a node fills.

``migrate.create`` makes them without Alembic. The tables never change here: a change is a revision
of its own.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

revision = "0001"
down_revision = None

_metadata: Final = MetaData()

_SERVED_ENVELOPES: Final = """
CREATE VIEW served_envelopes AS SELECT
    envelope_logs.originator_id, envelope_logs.sequence_id,
    envelope_logs.block_number, envelope_logs.block_hash,
    transaction_hash, transaction_index, log_index, originator_ns, topic, envelope,
    cursor.block_number - envelope_logs.block_number + 1 AS confirmations,
    CASE WHEN envelope_logs.block_number <= cursor.final_block_number
        THEN 'final' ELSE 'soft' END AS finality,
    (SELECT established FROM provenance WHERE first_block <= envelope_logs.block_number
        ORDER BY first_block DESC LIMIT 1) AS established
FROM envelope_logs
    JOIN envelopes ON envelopes.originator_id = envelope_logs.originator_id
        AND envelopes.sequence_id = envelope_logs.sequence_id
    CROSS JOIN cursor
"""


def make(connection: Connection) -> None:
    """Make all tables and the view in an empty database."""
    _metadata.create_all(connection)
    connection.execute(text(_SERVED_ENVELOPES))


def upgrade() -> None:
    """Do the same for Alembic."""
    # Loaded only here: ``migrate`` says why.
    from alembic import op

    make(op.get_bind())


def _table(name: str, *parts: Any) -> None:
    Table(name, _metadata, *parts)


def _column(name: str, kind: Any, *constraints: Any) -> Column[Any]:
    return Column(name, kind, *constraints, nullable=False)


def _only_row() -> Column[Any]:
    return Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False)


def _key(name: str, kind: Any, *constraints: Any) -> Column[Any]:
    return Column(name, kind, *constraints, primary_key=True, autoincrement=False)


def _payload_place() -> list[Column[Any]]:
    return [
        _key("originator_id", BigInteger),
        _key("sequence_id", BigInteger),
        _column("block_number", BigInteger),
        _column("block_hash", LargeBinary),
        _column("transaction_hash", LargeBinary),
        _column("transaction_index", Integer),
        _column("log_index", Integer),
    ]


_table(
    "identity",
    _only_row(),
    _column("chain_id", BigInteger),
    _column("genesis_hash", LargeBinary),
    _column("node_public_key", LargeBinary),
    _column("first_block", BigInteger),
)
_table(
    "contracts",
    _key("address", LargeBinary),
    _column("name", Text),
    _column("kind", Integer),
    _column("originator_id", BigInteger),
    _column("identifier_length", Integer),
    _column("is_identifier_indexed", Boolean),
    _column("is_sequence_indexed", Boolean),
    _column("is_sparse", Boolean),
    _column("block", BigInteger),
)
_table(
    "blocks",
    _key("number", BigInteger),
    _column("hash", LargeBinary),
    _column("parent_hash", LargeBinary),
    _column("timestamp", BigInteger),
    _column("sequence_ids", Text),
)
_table(
    "cursor",
    _only_row(),
    _column("block_number", BigInteger, ForeignKey("blocks.number")),
    _column("block_hash", LargeBinary),
    _column("sequence_ids", Text),
    _column("final_block_number", BigInteger),
)
_table(
    "envelopes",
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("originator_ns", BigInteger),
    _column("topic", LargeBinary),
    Column("expires_at", BigInteger),
    _column("envelope", LargeBinary),
    Index("envelopes_by_topic", "topic", "originator_id", "sequence_id"),
)
_table("envelope_logs", *_payload_place())
_table(
    "provenance",
    _key("first_block", BigInteger),
    _column("last_block", BigInteger),
    _column("established", Text),
)
_table(
    "quarantine",
    *_payload_place(),
    _column("contract", LargeBinary),
    _column("identifier", LargeBinary),
    _column("payload", LargeBinary),
    _column("reason", Text),
)
_table(
    "reorgs",
    _key("id", Integer),
    _column("ancestor_number", BigInteger),
    _column("ancestor_hash", LargeBinary),
    _column("old_head_number", BigInteger),
    _column("old_head_hash", LargeBinary),
    _column("depth", Integer),
    Column("rewound_to", BigInteger),
)
_table(
    "journal",
    _key("reorg_id", Integer, ForeignKey("reorgs.id")),
    *_payload_place(),
    Column("envelope", LargeBinary),
    _column("payload_digest", LargeBinary),
    _column("outcome", Text),
    Column("new_sequence_id", BigInteger),
    Index("journal_by_transaction", "transaction_hash"),
    Index("journal_by_sequence", "originator_id", "sequence_id"),
)
_table(
    "raw_transactions",
    _key("transaction_hash", LargeBinary),
    _column("block_number", BigInteger),
    _column("transaction_index", Integer),
    _column("raw", LargeBinary),
)
_table(
    "registry_cursor",
    _only_row(),
    _column("chain_id", BigInteger),
    _column("genesis_hash", LargeBinary),
    _column("address", LargeBinary),
    _column("first_block", BigInteger),
    Column("block_number", BigInteger),
    Column("block_hash", LargeBinary),
)
_table(
    "registry_blocks",
    _key("number", BigInteger),
    _column("hash", LargeBinary),
    _column("parent_hash", LargeBinary),
    _column("timestamp", BigInteger),
)
_table(
    "registry_updates",
    _key("block_number", BigInteger),
    _key("log_index", Integer),
    _column("block_hash", LargeBinary),
    _column("transaction_hash", LargeBinary),
    _column("timestamp", BigInteger),
    _column("node_id", BigInteger),
    _column("signing_key", LargeBinary),
    _column("http_address", LargeBinary),
    _column("is_enabled", Boolean),
)
_table(
    "inbox_members",
    _key("originator_id", BigInteger),
    _key("associated_sequence_id", BigInteger),
    _key("kind", Text),
    _key("identifier", LargeBinary),
    _key("inbox_id", LargeBinary),
    Column("revoked_sequence_id", BigInteger),
    Index("inbox_members_by_identifier", "identifier", "kind"),
)
_table(
    "inbox_cursors",
    _key("originator_id", BigInteger),
    _column("sequence_id", BigInteger),
)
_table(
    "refused_updates",
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("inbox_id", LargeBinary),
    _column("reason", Text),
    Index("refused_updates_by_inbox", "inbox_id"),
)
_table(
    "misbehavior_reports",
    _key("server_time_ns", BigInteger),
    _column("node_id", BigInteger),
    _column("type", Integer),
    _column("origin", Text),
    _column("weight", Text),
    _column("digest", LargeBinary),
    _column("report", LargeBinary),
    _column("signature", LargeBinary),
    UniqueConstraint("digest", name="misbehavior_reports_digest"),
    Index("misbehavior_reports_by_node", "node_id", "type", "origin", "weight", "server_time_ns"),
)
_table(
    "disputed_envelopes",
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("envelope", LargeBinary),
)
_table(
    "gaps",
    _key("originator_id", BigInteger),
    _key("first_id", BigInteger),
    _column("last_id", BigInteger),
    _column("state", Text),
    _column("changed_ns", BigInteger),
    Index("gaps_by_change", "changed_ns"),
)
_table(
    "range_digests",
    _key("originator_id", BigInteger),
    _key("level", Integer),
    _key("number", BigInteger),
    _column("digests", LargeBinary),
)
_table(
    "charges",
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("payer", LargeBinary),
    _column("kind", Integer),
    _column("bytes", Integer),
    _column("days", Integer),
)
_table(
    "payer_reports",
    _key("originator_id", BigInteger),
    _key("first_id", BigInteger),
    _column("last_id", BigInteger),
    _column("report", LargeBinary),
    _column("signature", LargeBinary),
    _column("payers", LargeBinary),
    _column("stored_ns", BigInteger),
    Column("attested_ns", BigInteger),
)
_table(
    "payer_report_attestations",
    _key("originator_id", BigInteger),
    _key("first_id", BigInteger),
    _key("node_id", BigInteger),
    _column("signature", LargeBinary),
)
_table(
    "refused_payer_reports",
    _key("originator_id", BigInteger),
    _key("digest", LargeBinary),
    _column("first_id", BigInteger),
    _column("last_id", BigInteger),
    _column("reason", Text),
    _column("report", LargeBinary),
    _column("refused_ns", BigInteger),
)
_table(
    "pruned_blocks",
    _key("originator_id", BigInteger),
    _key("number", BigInteger),
    _column("count", Integer),
    _column("due_at", BigInteger),
    _column("ids", LargeBinary),
)
_table(
    "expired_blocks",
    _key("originator_id", BigInteger),
    _key("number", BigInteger),
    _column("count", Integer),
    _column("changed_ns", BigInteger),
    _column("ids", LargeBinary),
    Index("expired_blocks_by_change", "changed_ns"),
)
_table(
    "pruned_entries",
    _key("topic", LargeBinary),
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("expires_at", BigInteger),
    _column("digest", LargeBinary),
)
_table(
    "database_sizes",
    _key("hour", BigInteger),
    _column("used_bytes", BigInteger),
    Column("room_bytes", BigInteger),
)
_table(
    "stored_shares",
    _key("part", Text),
    _key("name", Text),
    _column("bytes", BigInteger),
)
