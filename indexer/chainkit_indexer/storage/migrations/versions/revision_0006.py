"""Tables about other nodes: reports, disputes, gaps, and digests to compare logs by."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, Integer, LargeBinary, Text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the tables, empty."""
    op.create_table(
        "misbehavior_reports",
        _key("server_time_ns", BigInteger),
        _column("node_id", BigInteger),
        _column("type", Integer),
        _column("origin", Text),
        _column("weight", Text),
        _column("digest", LargeBinary),
        _column("report", LargeBinary),
        _column("signature", LargeBinary),
        sa.UniqueConstraint("digest", name="misbehavior_reports_digest"),
    )
    op.create_index(
        "misbehavior_reports_by_node",
        "misbehavior_reports",
        ["node_id", "type", "origin", "weight", "server_time_ns"],
    )
    op.create_table(
        "disputed_envelopes",
        _key("originator_id", BigInteger),
        _key("sequence_id", BigInteger),
        _column("envelope", LargeBinary),
    )
    op.create_table(
        "gaps",
        _key("originator_id", BigInteger),
        _key("first_id", BigInteger),
        _column("last_id", BigInteger),
        _column("state", Text),
        _column("changed_ns", BigInteger),
    )
    op.create_index("gaps_by_change", "gaps", ["changed_ns"])
    op.create_table(
        "range_digests",
        _key("originator_id", BigInteger),
        _key("level", Integer),
        _key("number", BigInteger),
        _column("digests", LargeBinary),
    )


def _key(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _column(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False)
