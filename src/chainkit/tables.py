"""Canonical tables that indexer and audit hand to each other as Parquet.

Integers are exact: sequence ids (uint64) and wei have decimal types, never doubles. Hashes,
addresses and payloads are binary. Columns beside a raw ``envelope`` are for people and for
pruning; the audit decides by the raw bytes alone.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

UINT64: Final = pa.decimal128(20, 0)
"""Any uint64. Parquet's unsigned integers come back as other types in Spark."""

WEI: Final = pa.decimal128(38, 0)
"""Wei: 10**38 is more than all there is."""


def _schema(*columns: tuple[str, pa.DataType], nullable: frozenset[str] = frozenset()) -> pa.Schema:
    return pa.schema([pa.field(name, type_, name in nullable) for name, type_ in columns])


_LOG_PLACE: Final = (
    ("block_number", pa.int64()),
    ("block_hash", pa.binary()),
    ("transaction_hash", pa.binary()),
    ("transaction_index", pa.int64()),
    ("log_index", pa.int64()),
)

BLOCKS: Final = _schema(
    ("number", pa.int64()),
    ("hash", pa.binary()),
    ("parent_hash", pa.binary()),
    ("timestamp", pa.int64()),
    ("receipts_root", pa.binary()),
    ("logs_bloom", pa.binary()),
    ("gas_limit", pa.int64()),
    ("gas_used", pa.int64()),
    ("base_fee_per_gas", WEI),
    ("transaction_count", pa.int64()),
    nullable=frozenset({"base_fee_per_gas"}),
)
"""One row per block of a chain export; ``timestamp`` in seconds."""

RECEIPTS: Final = _schema(
    ("block_number", pa.int64()),
    ("block_hash", pa.binary()),
    ("transaction_hash", pa.binary()),
    ("transaction_index", pa.int64()),
    ("type", pa.int64()),
    ("status", pa.int64()),
    ("from_address", pa.binary()),
    ("to_address", pa.binary()),
    ("contract_address", pa.binary()),
    ("gas_used", pa.int64()),
    ("cumulative_gas_used", pa.int64()),
    ("effective_gas_price", WEI),
    nullable=frozenset({"to_address", "contract_address"}),
)
"""One row per transaction of a chain export; ``effective_gas_price`` in wei per gas."""

LOGS: Final = _schema(
    *_LOG_PLACE,
    ("address", pa.binary()),
    ("topics", pa.list_(pa.field("element", pa.binary(), False))),
    ("data", pa.binary()),
)
"""One row per log of a chain export, of all contracts."""

ENVELOPES: Final = _schema(
    ("originator_id", pa.int64()),
    ("sequence_id", UINT64),
    *_LOG_PLACE,
    ("originator_ns", pa.int64()),
    ("topic", pa.binary()),
    ("envelope", pa.binary()),
)
"""One row per envelope a node serves; ``envelope`` is the OriginatorEnvelope as served."""

QUARANTINE: Final = _schema(
    ("originator_id", pa.int64()),
    ("sequence_id", UINT64),
    *_LOG_PLACE,
    ("contract", pa.binary()),
    ("identifier", pa.binary()),
    ("payload", pa.binary()),
    ("reason", pa.string()),
)
"""One row per payload that was posted but is never served, with the reason."""

JOURNAL: Final = _schema(
    ("reorg_id", pa.int64()),
    ("originator_id", pa.int64()),
    ("sequence_id", UINT64),
    *_LOG_PLACE,
    ("envelope", pa.binary()),
    ("outcome", pa.string()),
    ("new_sequence_id", UINT64),
    nullable=frozenset({"envelope", "new_sequence_id"}),
)
"""One row per payload that a reorg retracted: it was served, so it is evidence.

``outcome`` is kept, moved (see ``new_sequence_id``) or dropped; ``envelope`` is null for what
stood in quarantine.
"""

REGISTRY_UPDATES: Final = _schema(
    ("block_number", pa.int64()),
    ("log_index", pa.int64()),
    ("block_hash", pa.binary()),
    ("transaction_hash", pa.binary()),
    ("timestamp", pa.int64()),
    ("node_id", pa.int64()),
    ("signing_key", pa.binary()),
    ("http_address", pa.binary()),
    ("is_enabled", pa.bool_()),
)
"""One row per NodeUpdated of the registry that a node follows: the whole entry from that log on.

``timestamp`` in seconds; ``http_address`` in the bytes of the chain, which may not be UTF-8. The
manifest says which registry it is, and up to which of its chain's blocks.
"""
