"""Which wallets and passkeys belong to which inbox; a node reads them from the identity updates."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary, Text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables, empty: the updates that are there are read when a node runs."""
    op.create_table(
        "inbox_members",
        _key("originator_id", BigInteger),
        _key("associated_sequence_id", BigInteger),
        _key("kind", Text),
        _key("identifier", LargeBinary),
        _key("inbox_id", LargeBinary),
        Column("revoked_sequence_id", BigInteger),
    )
    op.create_index("inbox_members_by_identifier", "inbox_members", ["identifier", "kind"])
    op.create_table(
        "inbox_cursors",
        _key("originator_id", BigInteger),
        _column("sequence_id", BigInteger),
    )
    op.create_table(
        "refused_updates",
        _key("originator_id", BigInteger),
        _key("sequence_id", BigInteger),
        _column("inbox_id", LargeBinary),
        _column("reason", Text),
    )
    op.create_index("refused_updates_by_inbox", "refused_updates", ["inbox_id"])


def _key(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _column(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False)
