"""The operator's database. Portable SQL: nothing here names SQLite or PostgreSQL.

Except for the envelopes of other originators than the chain's, the reorgs' journal, ``provenance``
and what is kept to replay, every table is a function of the chain and the node's key: no local
clock, no order of arrival. Hashes, keys and payloads are binary; sequence ids fit 63 bits.
``migrations/`` makes them, and the view ``served_envelopes``, and the tables that only a node reads
(``chainkit_node/storage/schema.py``); a test compares them.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    and_,
    select,
)

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
        _key("originator_id", BigInteger),
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
    _column("chain_id", BigInteger),
    _column("genesis_hash", LargeBinary),
    _column("node_public_key", LargeBinary),
    _column("first_block", BigInteger),
)
"""The database's identity: one row, written when the tables are made and never changed."""

contracts = Table(
    "contracts",
    metadata,
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
"""The contracts whose events the database holds, the events' form, and whether sequence ids are
sparse (ADR 50); never changed either."""

blocks = Table(
    "blocks",
    metadata,
    _key("number", BigInteger),
    _column("hash", LargeBinary),
    _column("parent_hash", LargeBinary),
    _column("timestamp", BigInteger),
    _column("sequence_ids", Text),
)
"""The newest blocks up to the cursor, to find where a reorg forked off. ``sequence_ids`` is the
cursor of XIP-49 §3.2.2 after the block: JSON, originator id to last sequence id, keys sorted."""

cursor = Table(
    "cursor",
    metadata,
    _only_row(),
    _column("block_number", BigInteger, ForeignKey("blocks.number")),
    _column("block_hash", LargeBinary),
    _column("sequence_ids", Text),
    _column("final_block_number", BigInteger),
)
"""How far the chain was followed: no row before the first page, then one. Up to
``final_block_number`` (-1: nothing yet) nothing is ever changed; the number never falls, except by
``index rewind --below-final``, or where no stored block was final."""

envelopes = Table(
    "envelopes",
    metadata,
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("originator_ns", BigInteger),
    _column("topic", LargeBinary),
    # Before the envelope: SQLite reads through a long value to find the values behind it.
    Column("expires_at", BigInteger),
    _column("envelope", LargeBinary),
    Index("envelopes_by_topic", "topic", "originator_id", "sequence_id"),
)
"""The envelopes that the node serves, of every originator; ``envelope`` is the OriginatorEnvelope
(XIP-49 §3.2.1). ``expires_at`` is in seconds since 1970, null for one that never expires, as those
of the chain."""

envelope_logs = Table("envelope_logs", metadata, *_payload_place())
"""The log that each envelope of the chain's originators was made of; other originators' have none.
Sequence ids rise with the blocks, so a range of blocks is a range of the primary key; sparse ones
do not, and have an index instead: see ``block_ranges``. No foreign key: it would cost a look-up for
each row, and ``index verify`` compares both tables."""

chain_envelopes = (
    select(
        *envelope_logs.c, *(envelopes.c[name] for name in ("originator_ns", "topic", "envelope"))
    )
    .join(
        envelopes,
        and_(
            envelopes.c.originator_id == envelope_logs.c.originator_id,
            envelopes.c.sequence_id == envelope_logs.c.sequence_id,
        ),
    )
    .subquery("chain_envelopes")
)
"""The envelopes of the chain's originators with their logs; its columns are an export's."""

provenance = Table(
    "provenance",
    metadata,
    _key("first_block", BigInteger),
    _column("last_block", BigInteger),
    _column("established", Text),
)
"""How blocks were established, as runs of consecutive blocks: ``receipts``, ``second endpoint`` or
``one endpoint`` (``types.Provenance``). All blocks that were followed are in one of the runs."""

quarantine = Table(
    "quarantine",
    metadata,
    *_payload_place(),
    _column("contract", LargeBinary),
    _column("identifier", LargeBinary),
    _column("payload", LargeBinary),
    _column("reason", Text),
)
"""Payloads that are never served. Their sequence ids are missing in ``envelopes``."""

reorgs = Table(
    "reorgs",
    metadata,
    _key("id", Integer),
    _column("ancestor_number", BigInteger),
    _column("ancestor_hash", LargeBinary),
    _column("old_head_number", BigInteger),
    _column("old_head_hash", LargeBinary),
    _column("depth", Integer),
    Column("rewound_to", BigInteger),
)
"""Each reorg that reached below the cursor, in the order in which this node saw them. A rewind is a
row, too: ``rewound_to`` is the height that the operator asked for, null for a reorg."""

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
    Index("journal_by_sequence", "originator_id", "sequence_id"),
)
"""Payloads that reorgs retracted: a served one is evidence. ``envelope`` is null for a payload in
quarantine; ``outcome`` is dropped until the same payload of the same transaction is seen again,
then kept or, with ``new_sequence_id``, moved."""

raw_transactions = Table(
    "raw_transactions",
    metadata,
    _key("transaction_hash", LargeBinary),
    _column("block_number", BigInteger),
    _column("transaction_index", Integer),
    _column("raw", LargeBinary),
)
"""Signed transactions of payloads that are not final yet, or were dropped: ``index replay`` sends
the dropped ones again (XIP-49 §2.1.2). Forgotten once their block is final."""

registry_cursor = Table(
    "registry_cursor",
    metadata,
    _only_row(),
    _column("chain_id", BigInteger),
    _column("genesis_hash", LargeBinary),
    _column("address", LargeBinary),
    _column("first_block", BigInteger),
    Column("block_number", BigInteger),
    Column("block_hash", LargeBinary),
)
"""Which node registry is followed, and how far (null before the first block)."""

registry_blocks = Table(
    "registry_blocks",
    metadata,
    _key("number", BigInteger),
    _column("hash", LargeBinary),
    _column("parent_hash", LargeBinary),
    _column("timestamp", BigInteger),
)
"""The newest blocks of the registry's chain that were followed, to find where it forked off."""

registry_updates = Table(
    "registry_updates",
    metadata,
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
"""Each NodeUpdated of the registry (XIP-49 §2.2.1): the whole entry from that log on.
``http_address`` in the bytes of the chain, which may not be UTF-8."""

inbox_members = Table(
    "inbox_members",
    metadata,
    _key("originator_id", BigInteger),
    _key("associated_sequence_id", BigInteger),
    _key("kind", Text),
    _key("identifier", LargeBinary),
    _key("inbox_id", LargeBinary),
    Column("revoked_sequence_id", BigInteger),
    Index("inbox_members_by_identifier", "identifier", "kind"),
)
"""Each time that a key belonged to an inbox (XIP-46): which identity update added it, and which
revoked it, null while it belongs there. ``kind`` is a ``MemberKind``. Only a node adds
rows. A reorg takes rows back by their sequence ids, in the transaction that takes back the updates,
also where no node runs."""

inbox_cursors = Table(
    "inbox_cursors",
    metadata,
    _key("originator_id", BigInteger),
    _column("sequence_id", BigInteger),
)
"""Up to which envelope ``inbox_members`` follows each of the chain's originators."""

refused_updates = Table(
    "refused_updates",
    metadata,
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("inbox_id", LargeBinary),
    _column("reason", Text),
    Index("refused_updates_by_inbox", "inbox_id"),
)
"""Identity updates below that cursor that break a rule of XIP-46, and change nothing."""
