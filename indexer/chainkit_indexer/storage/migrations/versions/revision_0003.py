"""How the blocks were established, and which reorgs were rewinds.

Blocks of before rest on one endpoint's word, and what was a rewind before is not known.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add one run of all blocks that were followed, and name how in the view."""
    op.create_table(
        "provenance",
        Column("first_block", BigInteger, primary_key=True, autoincrement=False),
        Column("last_block", BigInteger, nullable=False),
        Column("established", Text, nullable=False),
    )
    op.execute(
        "INSERT INTO provenance (first_block, last_block, established)"
        " SELECT identity.first_block, cursor.block_number, 'one endpoint'"
        " FROM identity CROSS JOIN cursor WHERE cursor.block_number >= identity.first_block"
    )
    op.add_column("reorgs", Column("rewound_to", BigInteger))
    op.execute("DROP VIEW served_envelopes")
    op.execute(
        "CREATE VIEW served_envelopes AS SELECT"
        " envelopes.originator_id, sequence_id, envelopes.block_number, envelopes.block_hash,"
        " transaction_hash, transaction_index, log_index, originator_ns, topic, envelope,"
        " cursor.block_number - envelopes.block_number + 1 AS confirmations,"
        " CASE WHEN envelopes.block_number <= cursor.final_block_number"
        " THEN 'final' ELSE 'soft' END AS finality,"
        " (SELECT established FROM provenance WHERE first_block <= envelopes.block_number"
        " ORDER BY first_block DESC LIMIT 1) AS established"
        " FROM envelopes CROSS JOIN cursor"
    )
