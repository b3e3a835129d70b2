"""A batch as rows of a node's export, and what every honest node's envelopes begin with."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.audit.exports.batch import Batch, Heads
from benchmarks.audit.exports.chain_tables import place_columns
from benchmarks.audit.exports.columns import beside, binary, decimals, table
from benchmarks.audit.exports.shape import Shape
from benchmarks.audit.exports.signing import signatures
from chainkit.exports import tables
from chainkit.types import TopicKind

EXPECTED: Final = pa.schema(
    [
        ("sequence_id", pa.uint64()),
        ("block_number", pa.int64()),
        ("is_quarantined", pa.bool_()),
        ("unsigned", pa.binary()),
        ("transaction_hash", pa.binary()),
    ]
)
"""The chain's demands: the bytes of each UnsignedOriginatorEnvelope, and its transaction."""


def envelope_table(shape: Shape, batch: Batch, parts: list[Heads], node_id: int) -> pa.Table:
    """Return what a node serves of a batch, if all payloads may be served."""
    arrays = [
        binary(beside(len(part.bytes), [part.bytes, signatures(shape, batch, part, node_id)]))
        for part in parts
    ]
    kinds = np.where(
        batch.content.are_updates, TopicKind.IDENTITY_UPDATE, TopicKind.GROUP_MESSAGE
    ).astype(np.uint8)
    columns = {
        **place_columns(batch),
        "originator_id": np.zeros(len(batch), np.int64),
        "sequence_id": decimals(batch.sequence_ids, tables.UINT64),
        "originator_ns": batch.originator_ns,
        "topic": binary(beside(len(batch), [kinds[:, None], batch.content.identifiers])),
        "envelope": pa.concat_arrays(arrays),
    }
    return table(tables.ENVELOPES, len(batch), columns)


def without_malformed(rows: pa.Table, batch: Batch) -> pa.Table:
    """Leave out what an honest node keeps in quarantine."""
    return rows.filter(pa.array(~batch.are_malformed))


def expected_table(batch: Batch, parts: list[Heads]) -> pa.Table:
    """Return what the chain demands of all nodes (columns of EXPECTED)."""
    columns = {
        "sequence_id": batch.sequence_ids,
        "block_number": batch.block_numbers,
        "is_quarantined": batch.are_malformed,
        "unsigned": pa.concat_arrays([binary(part.bytes[:, part.unsigned]) for part in parts]),
        "transaction_hash": binary(batch.transaction_hashes),
    }
    return table(EXPECTED, len(batch), columns)
