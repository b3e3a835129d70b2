"""The tables that only a node reads, in the database of the indexer, which makes and upgrades them.

No foreign key leads to the indexer's tables, or from them: see ADR 42. Hashes, keys and payloads
are binary; sequence ids fit 63 bits.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()


def _column(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _key(name: str, kind: Any) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


misbehavior_reports = Table(
    "misbehavior_reports",
    metadata,
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
"""Reports that this node hosts and signed (XIP-49 §3.2.8). ``report`` is the serialized
UnsignedMisbehaviorReport, about ``node_id``; ``origin`` is ``node`` where this node saw it itself,
``client`` where somebody submitted it. ``weight`` is ``proved`` or ``claimed``, as this node judged
it when it came. ``digest`` is the same for what says the same. ``server_time_ns`` never goes back,
and no two reports have the same."""

disputed_envelopes = Table(
    "disputed_envelopes",
    metadata,
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("envelope", LargeBinary),
)
"""Envelopes that an originator signed under a sequence id under which ``envelopes`` has another:
one of them is enough as evidence (XIP-49 §3.2.7)."""

gaps = Table(
    "gaps",
    metadata,
    _key("originator_id", BigInteger),
    _key("first_id", BigInteger),
    _column("last_id", BigInteger),
    _column("state", Text),
    _column("changed_ns", BigInteger),
    Index("gaps_by_change", "changed_ns"),
)
"""Ranges of sequence ids, both ends included, that were missing between the envelopes that were
received. ``state`` is a ``GapState``; ``changed_ns`` is the moment by this node's clock at which it
became so, and never falls. Those that were filled stay for a while: readers learn of them."""

range_digests = Table(
    "range_digests",
    metadata,
    _key("originator_id", BigInteger),
    _key("level", Integer),
    _key("number", BigInteger),
    _column("digests", LargeBinary),
)
"""Digests of the parts of an originator's ranges (``chainkit.protocol.log_ranges``), one after the
other: about 20 bytes for each envelope. A range has a row once no envelope can be appended to it,
and never without the rows of its parts. It loses its row when it changes: see
``range_digests.py``."""

charges = Table(
    "charges",
    metadata,
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("payer", LargeBinary),
    _column("kind", Integer),
    _column("bytes", Integer),
    _column("days", Integer),
)
"""The payer's debt for each envelope of a node (``chainkit.protocol.charges``), stored with the
envelope. ``payer`` is an address of 20 bytes, and empty where nobody owes anything. A row may go
once a stored report covers it."""

payer_reports = Table(
    "payer_reports",
    metadata,
    _key("originator_id", BigInteger),
    _key("first_id", BigInteger),
    _column("last_id", BigInteger),
    _column("report", LargeBinary),
    _column("signature", LargeBinary),
    _column("payers", LargeBinary),
    _column("stored_ns", BigInteger),
    Column("attested_ns", BigInteger),
)
"""The payer reports of each originator, kept for ever: consecutive ranges of sequence ids, both
ends included, from 1 on. ``report`` is the serialized PayerReport that the originator signed, and
``payers`` the PayerCharges under its root. ``attested_ns`` is the moment by this node's clock at
which enough nodes had signed it, null before (ADR 56)."""

payer_report_attestations = Table(
    "payer_report_attestations",
    metadata,
    _key("originator_id", BigInteger),
    _key("first_id", BigInteger),
    _key("node_id", BigInteger),
    _column("signature", LargeBinary),
)
"""Which nodes computed the same bytes as a stored report's, and signed them, in any order."""

refused_payer_reports = Table(
    "refused_payer_reports",
    metadata,
    _key("originator_id", BigInteger),
    _key("digest", LargeBinary),
    _column("first_id", BigInteger),
    _column("last_id", BigInteger),
    _column("reason", Text),
    _column("report", LargeBinary),
    _column("refused_ns", BigInteger),
)
"""Reports that an originator signed and this node refused: ``report`` is the SignedPayerReport, as
evidence; ``digest`` has the 32 bytes that the originator signed."""

pruned_blocks = Table(
    "pruned_blocks",
    metadata,
    _key("originator_id", BigInteger),
    _key("number", BigInteger),
    _column("count", Integer),
    _column("due_at", BigInteger),
    _column("ids", LargeBinary),
)
"""Which envelopes of an originator ``node prune`` deleted (``pruned_ids.py``): ``ids`` is a
compressed bitmap of a block of ids, of which ``count`` were pruned. Their digests stay in
``range_digests``. ``due_at`` is when the block is looked through again, in seconds since 1970."""

expired_blocks = Table(
    "expired_blocks",
    metadata,
    _key("originator_id", BigInteger),
    _key("number", BigInteger),
    _column("count", Integer),
    _column("changed_ns", BigInteger),
    _column("ids", LargeBinary),
    Index("expired_blocks_by_change", "changed_ns"),
)
"""Which missing ids had expired where this node asked for them (``learned_ids.py``), as bitmaps
like those of ``pruned_blocks``; longer runs are rows of ``gaps``. ``changed_ns`` is as there."""

pruned_entries = Table(
    "pruned_entries",
    metadata,
    _key("topic", LargeBinary),
    _key("originator_id", BigInteger),
    _key("sequence_id", BigInteger),
    _column("expires_at", BigInteger),
    _column("digest", LargeBinary),
)
"""Entries of this node's own envelopes that were pruned: its topic heads still contain them (ADR
64): ``digest`` has the 32 bytes that this node signed. An entry is stored before its envelope is
deleted (ADR 88)."""

database_sizes = Table(
    "database_sizes",
    metadata,
    _key("hour", BigInteger),
    _column("used_bytes", BigInteger),
    Column("room_bytes", BigInteger),
)
"""The database's size, once an hour for 90 days. ``hour`` counts from 1970; ``room_bytes`` is how
many more it may take before publishes are refused, null where nobody knows."""

stored_shares = Table(
    "stored_shares",
    metadata,
    _key("part", Text),
    _key("name", Text),
    _column("bytes", BigInteger),
)
"""The estimate of what the database holds, as of the last look (``stored_bytes.py``). ``part`` is
``kind``, ``payer`` or ``day``; ``name`` is the kind's number, the payer, or the day of expiry
counted from 1970, -1 for never."""
