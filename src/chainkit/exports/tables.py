"""Canonical tables that indexer and audit hand to each other as Parquet.

Integers are exact: sequence ids (uint64) and wei have decimal types, never doubles. Hashes,
addresses and payloads are binary. Columns in addition to a raw ``envelope`` are for people and for
pruning; the audit decides by the raw bytes alone.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

UINT64: Final = pa.decimal128(20, 0)
"""Any uint64. Parquet's unsigned integers come back as other types in Spark."""

WEI: Final = pa.decimal128(38, 0)
"""Wei: 10**38 is more than all there is."""

HASHES: Final = pa.list_(pa.field("element", pa.binary(), False))
"""Any number of hashes, 32 bytes each."""


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
    ("sha3_uncles", pa.binary()),
    ("miner", pa.binary()),
    ("state_root", pa.binary()),
    ("transactions_root", pa.binary()),
    ("receipts_root", pa.binary()),
    ("logs_bloom", pa.binary()),
    ("difficulty", WEI),
    ("gas_limit", pa.int64()),
    ("gas_used", pa.int64()),
    ("timestamp", pa.int64()),
    ("extra_data", pa.binary()),
    ("mix_hash", pa.binary()),
    ("nonce", pa.binary()),
    ("base_fee_per_gas", WEI),
    ("withdrawals_root", pa.binary()),
    ("blob_gas_used", pa.int64()),
    ("excess_blob_gas", pa.int64()),
    ("parent_beacon_block_root", pa.binary()),
    ("requests_hash", pa.binary()),
    ("block_access_list_hash", pa.binary()),
    ("slot_number", pa.int64()),
    ("transaction_count", pa.int64()),
    nullable=frozenset(
        {
            *("sha3_uncles", "miner", "state_root", "transactions_root", "receipts_root"),
            *("logs_bloom", "difficulty", "gas_limit", "extra_data", "mix_hash", "nonce"),
            *("base_fee_per_gas", "withdrawals_root", "blob_gas_used", "excess_blob_gas"),
            *("parent_beacon_block_root", "requests_hash", "block_access_list_hash"),
            *("slot_number", "transaction_count"),
        }
    ),
)
"""One row per block of a chain export: the header, field by field; ``timestamp`` in seconds.

A field is null where the block has none (its hardfork is older) or where the source leaves the
field out: such a header cannot be proved. ``transaction_count`` is no part of the header.
"""

ACCESS_LIST: Final = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("address", pa.binary(), False),
                pa.field("storage_keys", HASHES, False),
            ]
        ),
        False,
    )
)
"""Accounts and slots that a transaction announces it will touch (EIP-2930)."""

AUTHORIZATION_LIST: Final = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("chain_id", pa.binary(), False),
                pa.field("address", pa.binary(), False),
                pa.field("nonce", UINT64, False),
                pa.field("y_parity", pa.int64(), False),
                pa.field("r", pa.binary(), False),
                pa.field("s", pa.binary(), False),
            ]
        ),
        False,
    )
)
"""Signed delegations (EIP-7702). Nobody checks the values before they are mined, so that
``chain_id``, ``r`` and ``s`` may be any uint256: 32 bytes each, big-endian."""

TRANSACTIONS: Final = _schema(
    ("block_number", pa.int64()),
    ("block_hash", pa.binary()),
    ("transaction_hash", pa.binary()),
    ("transaction_index", pa.int64()),
    ("type", pa.int64()),
    ("chain_id", WEI),
    ("nonce", UINT64),
    ("from_address", pa.binary()),
    ("to_address", pa.binary()),
    ("value", WEI),
    ("input", pa.binary()),
    ("gas_limit", pa.int64()),
    ("gas_price", WEI),
    ("max_fee_per_gas", WEI),
    ("max_priority_fee_per_gas", WEI),
    ("max_fee_per_blob_gas", WEI),
    ("access_list", ACCESS_LIST),
    ("blob_versioned_hashes", HASHES),
    ("authorization_list", AUTHORIZATION_LIST),
    ("v", WEI),
    ("r", pa.binary()),
    ("s", pa.binary()),
    ("source_hash", pa.binary()),
    ("mint", WEI),
    ("is_system_transaction", pa.bool_()),
    ("request_id", pa.binary()),
    ("ticket_id", pa.binary()),
    ("refund_to", pa.binary()),
    ("max_refund", WEI),
    ("submission_fee_refund", WEI),
    ("l1_base_fee", WEI),
    ("deposit_value", WEI),
    ("retry_to", pa.binary()),
    ("retry_value", WEI),
    ("retry_data", pa.binary()),
    ("beneficiary", pa.binary()),
    ("max_submission_fee", WEI),
    nullable=frozenset(
        {
            *("chain_id", "to_address", "gas_price", "max_fee_per_gas"),
            *("max_priority_fee_per_gas", "max_fee_per_blob_gas", "access_list"),
            *("blob_versioned_hashes", "authorization_list", "v", "r", "s"),
            *("source_hash", "mint", "is_system_transaction"),
            *("request_id", "ticket_id", "refund_to", "max_refund", "submission_fee_refund"),
            *("l1_base_fee", "deposit_value", "retry_to", "retry_value", "retry_data"),
            *("beneficiary", "max_submission_fee"),
        }
    ),
)
"""One row per transaction of a chain export, field by field as its signer sent it.

``type`` is EIP-2718's, 0 for a legacy transaction; ``to_address`` is null for one that creates a
contract; ``gas_price`` is what the signer offered, null where the type has other fees. ``v`` is the
signature's: y parity, or what EIP-155 makes of it; ``r`` and ``s`` have 32 bytes. ``source_hash``
to ``is_system_transaction`` are of deposits on an OP-stack rollup, the columns after them of what
layer 1 or ArbOS sends on an Arbitrum one. A value that the type does not have, or the source does
not give, is null.
"""

COLUMNS_SINCE_FORMAT_6: Final = frozenset(
    {
        *("block_access_list_hash", "slot_number"),
        *TRANSACTIONS.names[TRANSACTIONS.names.index("request_id") :],
    }
)
"""Columns that files of older exports lack; rows of such files have nulls there."""

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
    ("l1_fee", WEI),
    ("l1_gas_used", WEI),
    ("l1_gas_price", WEI),
    ("l1_fee_scalar", pa.string()),
    ("l1_base_fee_scalar", pa.int64()),
    ("l1_blob_base_fee", WEI),
    ("l1_blob_base_fee_scalar", pa.int64()),
    ("gas_used_for_l1", pa.int64()),
    ("deposit_nonce", UINT64),
    ("deposit_receipt_version", pa.int64()),
    nullable=frozenset(
        {
            *("to_address", "contract_address", "l1_fee", "l1_gas_used", "l1_gas_price"),
            *("l1_fee_scalar", "l1_base_fee_scalar", "l1_blob_base_fee"),
            *("l1_blob_base_fee_scalar", "gas_used_for_l1"),
            *("deposit_nonce", "deposit_receipt_version"),
        }
    ),
)
"""One row per transaction of a chain export; prices in wei per gas.

``l1_*`` is what an OP-stack rollup says of its fee to layer 1 (``l1_fee`` in wei, on top of the
gas; ``l1_fee_scalar`` a decimal fraction as the endpoint wrote it), ``gas_used_for_l1`` what an
Arbitrum one does (a part of ``gas_used``); no root of a block commits to them. ``deposit_*`` are
part of an OP-stack deposit's receipt. A value that a chain does not have is null.
"""

LOGS: Final = _schema(
    *_LOG_PLACE,
    ("address", pa.binary()),
    ("topics", HASHES),
    ("data", pa.binary()),
)
"""One row per log of a chain export, of all contracts."""

CHAIN_TABLES: Final = {
    "blocks": BLOCKS,
    "transactions": TRANSACTIONS,
    "receipts": RECEIPTS,
    "logs": LOGS,
}
"""The tables of a chain export, by name."""

ENVELOPES: Final = _schema(
    ("originator_id", pa.int64()),
    ("sequence_id", UINT64),
    *_LOG_PLACE,
    ("originator_ns", pa.int64()),
    ("topic", pa.binary()),
    ("envelope", pa.binary()),
)
"""One row per envelope a node serves; ``envelope`` is the OriginatorEnvelope as served."""

ANSWERED_ENVELOPES: Final = _schema(
    ("originator_id", pa.int64()),
    ("sequence_id", UINT64),
    ("envelope", pa.binary()),
)
"""One row per envelope that a node answered to a stranger, in the order of its answers.

``originator_id`` is the requested one. ``sequence_id`` is the envelope's own; for bytes that are no
envelope, the id behind the envelope before them.
"""

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
"""One row per payload that a reorg retracted: the payload was served, so it is evidence.

``outcome`` is kept, moved (see ``new_sequence_id``) or dropped; ``envelope`` is null for a payload
that was in quarantine.
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
manifest names the registry, and the last of its chain's blocks.
"""
