"""The tables of a gateway's journal, and their rows."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    text,
)

from chainkit.types import BlockReference
from chainkit_gateway.types import Sent, Settlement

metadata: Final = MetaData()

publications: Final = Table(
    "publications",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("client", String, nullable=False),
    Column("received_ns", BigInteger, nullable=False),
    Column("node_id", BigInteger),
    Column("behind_sequence_id", BigInteger),
    Column("envelope", LargeBinary),
)
transactions: Final = Table(
    "transactions",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("digest", LargeBinary, ForeignKey("publications.digest"), nullable=False, index=True),
    Column("nonce", BigInteger, nullable=False, index=True),
    Column("raw", LargeBinary, nullable=False),
    Column("sent_ns", BigInteger, nullable=False, index=True),
    Column("gas", BigInteger, nullable=False),
    Column("tip", BigInteger, nullable=False),
    Column("maximum_fee", BigInteger, nullable=False),
    Column("succeeded", Boolean),
    Column("gas_used", BigInteger),
    Column("gas_price", BigInteger),
    Column("block_number", BigInteger, index=True),
    Column("block_hash", LargeBinary),
    Column("sequence_id", BigInteger),
    # The highest one of any branch of the chain, which a reorg does not take back.
    Column("highest_sequence_id", BigInteger),
)
IN_ORDER: Final = (transactions.c.nonce, transactions.c.sent_ns, transactions.c.maximum_fee)
HOLDS_RAW: Final = text("transactions.raw <> x''")
HOLDS_ENVELOPE: Final = text("publications.envelope IS NOT NULL")
"""Words of an index, which SQLite takes for the same condition of a query alone."""
PAYLOADS: Final = (
    Index("payloads_sent", transactions.c.sent_ns, sqlite_where=text("raw <> x''")),
    Index(
        "payloads_answered", publications.c.received_ns, sqlite_where=text("envelope IS NOT NULL")
    ),
)
"""The rows that still hold a payload, by time."""


def written(sent: Sent) -> dict[str, Any]:
    """Return a transaction's columns."""
    names = ("hash", "digest", "nonce", "raw", "sent_ns", "gas", "tip", "maximum_fee")
    return {name: getattr(sent, name) for name in names} | settled(sent.settlement)


def settled(settlement: Settlement | None) -> dict[str, Any]:
    """Return the columns of a settlement, all null without one."""
    return {
        "succeeded": settlement and settlement.succeeded,
        "gas_used": settlement and settlement.gas_used,
        "gas_price": settlement and settlement.gas_price,
        "block_number": settlement and settlement.block.number,
        "block_hash": settlement and settlement.block.hash,
        "sequence_id": settlement and settlement.sequence_id,
    }


def sent_of(row: Any) -> Sent:
    """Return a row of transactions."""
    names = ("hash", "digest", "nonce", "raw", "sent_ns", "gas", "tip", "maximum_fee")
    settlement = None
    if row["block_number"] is not None:
        block = BlockReference(row["block_number"], row["block_hash"])
        outcome = (row[name] for name in ("succeeded", "gas_used", "gas_price", "sequence_id"))
        settlement = Settlement(block, *outcome)
    return Sent(**{name: row[name] for name in names}, settlement=settlement)
