"""Several originators, finality, the registry's history, and what is kept to replay."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    Text,
    text,
)

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Move what is there into the new tables; SQLite copies the tables that change."""
    _name_contracts()
    _count_by_originator()
    _change_payloads()
    _add_raw_transactions()
    _add_registry()
    op.execute(
        "CREATE VIEW served_envelopes AS SELECT"
        " envelopes.originator_id, sequence_id, envelopes.block_number, envelopes.block_hash,"
        " transaction_hash, transaction_index, log_index, originator_ns, topic, envelope,"
        " cursor.block_number - envelopes.block_number + 1 AS confirmations,"
        " CASE WHEN envelopes.block_number <= cursor.final_block_number"
        " THEN 'final' ELSE 'soft' END AS finality"
        " FROM envelopes CROSS JOIN cursor"
    )


def _name_contracts() -> None:
    op.create_table(
        "contracts",
        Column("address", LargeBinary, primary_key=True, autoincrement=False),
        _column("name", Text),
        _column("kind", Integer),
        _column("originator_id", BigInteger),
        _column("identifier_length", Integer),
        _column("is_identifier_indexed", Boolean),
        _column("is_sequence_indexed", Boolean),
        _column("block", BigInteger),
    )
    # Numbers are topic kinds of XIP-49 §3.3.2. None of them has a log below the first block.
    for column, name, kind in (
        ("group_messages", "GroupMessages", 0),
        ("identity_updates", "IdentityUpdates", 2),
    ):
        op.execute(
            "INSERT INTO contracts (address, name, kind, originator_id, identifier_length,"
            " is_identifier_indexed, is_sequence_indexed, block)"
            f" SELECT {column}, '{name}', {kind}, 0, 32, false, false, first_block FROM identity"
        )
    with op.batch_alter_table("identity", table_args=(CheckConstraint("id = 1"),)) as batch:
        for column in ("schema_version", "group_messages", "identity_updates"):
            batch.drop_column(column)


def _count_by_originator() -> None:
    connection = op.get_bind()
    columns = "id, block_number, block_hash, last_sequence_id"
    row = connection.execute(text(f"SELECT {columns} FROM cursor")).mappings().first()
    # It refers to the blocks, which SQLite copies.
    op.drop_table("cursor")
    op.add_column("blocks", Column("sequence_ids", Text))
    op.execute("""UPDATE blocks SET sequence_ids = '{"0": ' || last_sequence_id || '}'""")
    with op.batch_alter_table("blocks") as batch:
        batch.alter_column("sequence_ids", existing_type=Text(), nullable=False)
        batch.drop_column("last_sequence_id")
    cursor = op.create_table(
        "cursor",
        _only_row(),
        _column("block_number", BigInteger, ForeignKey("blocks.number")),
        _column("block_hash", LargeBinary),
        _column("sequence_ids", Text),
        _column("final_block_number", BigInteger),
    )
    if row is not None:
        counted = f'{{"0": {row["last_sequence_id"]}}}'
        values = {name: row[name] for name in ("id", "block_number", "block_hash")}
        added = {"sequence_ids": counted, "final_block_number": -1}
        connection.execute(cursor.insert().values(values | added))


def _change_payloads() -> None:
    for table in ("envelopes", "quarantine"):
        with op.batch_alter_table(table) as batch:
            batch.drop_index(f"{table}_by_block")
            batch.drop_column("payload_digest")
            batch.alter_column("originator_id", existing_type=Integer(), type_=BigInteger())
    with op.batch_alter_table("journal") as batch:
        batch.alter_column("originator_id", existing_type=Integer(), type_=BigInteger())
    op.create_index("journal_by_sequence", "journal", ["originator_id", "sequence_id"])


def _add_raw_transactions() -> None:
    op.create_table(
        "raw_transactions",
        Column("transaction_hash", LargeBinary, primary_key=True, autoincrement=False),
        _column("block_number", BigInteger),
        _column("transaction_index", Integer),
        _column("raw", LargeBinary),
    )


def _add_registry() -> None:
    op.create_table(
        "registry_cursor",
        _only_row(),
        _column("chain_id", BigInteger),
        _column("genesis_hash", LargeBinary),
        _column("address", LargeBinary),
        _column("first_block", BigInteger),
        Column("block_number", BigInteger),
        Column("block_hash", LargeBinary),
    )
    op.create_table(
        "registry_blocks",
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        _column("hash", LargeBinary),
        _column("parent_hash", LargeBinary),
        _column("timestamp", BigInteger),
    )
    op.create_table(
        "registry_updates",
        Column("block_number", BigInteger, primary_key=True, autoincrement=False),
        Column("log_index", Integer, primary_key=True, autoincrement=False),
        _column("block_hash", LargeBinary),
        _column("transaction_hash", LargeBinary),
        _column("timestamp", BigInteger),
        _column("node_id", BigInteger),
        _column("signing_key", LargeBinary),
        _column("http_address", LargeBinary),
        _column("is_enabled", Boolean),
    )


def _only_row() -> Column[Any]:
    return Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False)


def _column(name: str, kind: Any, *constraints: Any) -> Column[Any]:
    return Column(name, kind, *constraints, nullable=False)
