"""A batch as rows of a chain export: what `chainkit audit reconcile` reads of one."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.audit.exports.administration import CONTRACTS, SENDER, administration_logs
from benchmarks.audit.exports.batch import Batch, log_data
from benchmarks.audit.exports.columns import beside, binary, repeated, table
from benchmarks.audit.exports.shape import Blocks, Shape, hash_of, time_of
from chainkit.exports import tables
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "blocks": tables.BLOCKS,
    "receipts": tables.RECEIPTS,
    "logs": tables.LOGS,
}

_GAS: Final = 90_000
_GAS_LIMIT: Final = 60_000_000
_BASE_FEE: Final = 10**9
_TYPE: Final = 2


def chain_tables(shape: Shape, batch: Batch) -> dict[str, pa.Table]:
    """Return the tables of the batch's blocks, by name."""
    return {
        "blocks": _blocks(shape, batch.blocks),
        "receipts": _receipts(batch),
        "logs": _logs(batch),
    }


def administration_tables(shape: Shape, blocks: Blocks) -> dict[str, pa.Table]:
    """Return the tables of the blocks before the first payload."""
    rows = [
        row
        for row in administration_logs(shape)
        if blocks.first <= row["block_number"] <= blocks.last
    ]
    return {
        "blocks": _blocks(shape, blocks),
        "receipts": tables.RECEIPTS.empty_table(),
        "logs": pa.Table.from_pylist(rows, schema=tables.LOGS),
    }


def _blocks(shape: Shape, blocks: Blocks) -> pa.Table:
    numbers = range(blocks.first, blocks.last + 1)
    held = [len(shape.sequences_of(Blocks(number, number))) for number in numbers]
    columns: dict[str, Any] = {
        "number": numbers,
        "hash": map(hash_of, numbers),
        "parent_hash": [hash_of(number - 1) for number in numbers],
        "gas_limit": [_GAS_LIMIT] * len(numbers),
        "gas_used": [_GAS * count for count in held],
        "timestamp": map(time_of, numbers),
        "base_fee_per_gas": [Decimal(_BASE_FEE)] * len(numbers),
        "transaction_count": held,
    }
    return table(tables.BLOCKS, len(numbers), columns)


def place_columns(batch: Batch) -> dict[str, Any]:
    """Return where each payload's log stands, as the tables of both kinds of export name it."""
    return {
        "block_number": batch.block_numbers,
        "block_hash": binary(batch.block_hashes),
        "transaction_hash": binary(batch.transaction_hashes),
        "transaction_index": batch.positions,
        "log_index": batch.positions,
    }


def _receipts(batch: Batch) -> pa.Table:
    count = len(batch)
    place = place_columns(batch)
    del place["log_index"]
    columns: dict[str, Any] = {
        **place,
        "type": np.full(count, _TYPE),
        "status": np.ones(count, np.int64),
        "from_address": repeated(SENDER, count),
        "to_address": _addresses(batch),
        "gas_used": np.full(count, _GAS),
        "cumulative_gas_used": _GAS * (1 + batch.positions),
        "effective_gas_price": pa.repeat(pa.scalar(Decimal(_BASE_FEE), tables.WEI), count),
    }
    return table(tables.RECEIPTS, count, columns)


def _logs(batch: Batch) -> pa.Table:
    topics = _chosen(batch, IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC)
    offsets = pa.array(np.arange(len(batch) + 1, dtype=np.int32))
    columns = {
        **place_columns(batch),
        "address": _addresses(batch),
        "topics": pa.ListArray.from_arrays(offsets, topics, type=tables.HASHES),
        "data": binary(log_data(batch)),
    }
    return table(tables.LOGS, len(batch), columns)


def _addresses(batch: Batch) -> pa.Array:
    return _chosen(batch, CONTRACTS["IdentityUpdates"], CONTRACTS["GroupMessages"])


def _chosen(batch: Batch, of_updates: bytes, of_messages: bytes) -> pa.Array:
    both = beside(1, [of_messages, of_updates]).reshape(2, -1)
    return binary(both[batch.content.are_updates.astype(np.int64)])
