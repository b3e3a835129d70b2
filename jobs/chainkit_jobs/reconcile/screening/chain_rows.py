"""The chain's side of a batch: its payload logs as columns, decoded together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chainkit.protocol.chain_time import MAXIMUM_BLOCK_TIMESTAMP
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit.types import HASH_LENGTH, TopicKind
from chainkit_jobs.reconcile.expected import PayloadContracts, decode_row
from chainkit_jobs.reconcile.screening.expected_bytes import (
    Bytes2D,
    ExpectedBytes,
    Flags,
    Integers,
    expected_bytes,
    fixed,
    slices,
)
from chainkit_jobs.reconcile.screening.servable import are_servable

LOG_COLUMNS: Final = (
    "block_number",
    "block_hash",
    "transaction_hash",
    "transaction_index",
    "log_index",
    "address",
    "topics",
    "data",
)
"""The columns of chainkit.exports.tables.LOGS that are read."""

_HEAD: Final = 128
"""Bytes before the payload: identifier, offset, sequence id and length, a word each."""
_WORD: Final = 32
_LONGEST: Final = 2**30
"""Bytes of a payload; Arrow counts in 32 bits."""


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """Blocks by number, and their times in seconds."""

    numbers: Integers
    """Ascending."""
    hashes: pa.BinaryArray
    timestamps: Integers

    def of(self, numbers: Integers, hashes: pa.BinaryArray) -> tuple[Integers, Flags]:
        """Return the times of some blocks, and whether exactly these hashes are there."""
        if not len(self.numbers):
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
        rows = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        is_same_hash = pc.equal(self.hashes.take(pa.array(rows)), hashes).to_numpy(False)
        return self.timestamps[rows], (self.numbers[rows] == numbers) & is_same_hash


@dataclass(frozen=True, slots=True)
class ChainRows:
    """The payloads of a batch in the chain's order. Unusual logs were decoded one by one."""

    sequence_ids: npt.NDArray[np.uint64]
    block_numbers: Integers
    log_indexes: Integers
    payload_sizes: Integers
    is_message: Flags
    """Whether GroupMessages emitted the payload; else IdentityUpdates did."""
    is_valid: Flags
    """Whether the payload must be served, and not kept in quarantine."""
    is_odd: Flags
    """Decoded one by one: for these ``expected`` means nothing, and the comparison decides."""
    expected: ExpectedBytes
    transaction_hashes: Bytes2D
    """Shape (n, 32)."""
    malformed: tuple[dict[str, Any], ...]
    """Rows of expected.EXPECTED for logs that no contract can have emitted."""
    logs: pa.RecordBatch
    """The logs themselves, with ``contract`` and ``block_timestamp``."""

    def __len__(self) -> int:
        """Return the number of payloads."""
        return len(self.sequence_ids)

    @property
    def is_consecutive(self) -> bool:
        """Whether each sequence is the one before plus one."""
        sequences = self.sequence_ids
        return bool((sequences[1:] == sequences[:-1] + np.uint64(1)).all())

    @property
    def is_in_order(self) -> bool:
        """Whether each payload is behind the one before."""
        blocks, logs = self.block_numbers, self.log_indexes
        is_same_block = blocks[1:] == blocks[:-1]
        is_later = (blocks[1:] > blocks[:-1]) | (is_same_block & (logs[1:] > logs[:-1]))
        return bool(is_later.all())

    def decoded(self, mask: Flags) -> list[dict[str, Any]]:
        """Return rows of expected.EXPECTED."""
        return _decoded(self.logs, mask)


def chain_rows(logs: pa.RecordBatch, times: BlockTimes, contracts: PayloadContracts) -> ChainRows:
    """Decode the payload logs among ``logs`` (columns of LOG_COLUMNS)."""
    is_message, is_update = _kinds(logs, contracts)
    is_payload = is_message | is_update
    if not is_payload.all():
        logs, is_message = logs.filter(pa.array(is_payload)), is_message[is_payload]
    numbers = _integers(logs.column("block_number"))
    timestamps, has_block = times.of(numbers, logs.column("block_hash"))
    logs = _with_context(logs, is_message, timestamps, has_block)
    layout = _layout(logs.column("data"))
    is_one_topic = pc.equal(pc.list_value_length(logs.column("topics")), 1).to_numpy(False)
    has_hash = pc.equal(pc.binary_length(logs.column("transaction_hash")), HASH_LENGTH)
    is_timed = has_block & (timestamps > 0) & (timestamps <= MAXIMUM_BLOCK_TIMESTAMP)
    is_plain = layout.is_plain & is_one_topic & has_hash.to_numpy(False) & is_timed
    payloads = slices(
        logs.column("data"), np.where(is_plain, _HEAD, 0), np.where(is_plain, layout.sizes, 0)
    )
    hashes = fixed(logs.column("transaction_hash"), HASH_LENGTH)
    odd = dict(zip(np.flatnonzero(~is_plain).tolist(), _decoded(logs, ~is_plain), strict=True))
    sequence_ids, sizes = layout.sequence_ids.copy(), layout.sizes.copy()
    is_valid = _is_valid(payloads, layout, is_message)
    for row, decoded in odd.items():
        sequence_ids[row] = int(decoded.get("sequence_id") or 0)
        sizes[row] = decoded.get("payload_size") or 0
        is_valid[row] = decoded.get("quarantine_reason") is None
    return ChainRows(
        sequence_ids=sequence_ids,
        block_numbers=numbers,
        log_indexes=_integers(logs.column("log_index")),
        payload_sizes=sizes,
        is_message=is_message,
        is_valid=is_valid,
        is_odd=~is_plain,
        expected=expected_bytes(sequence_ids, np.where(is_plain, timestamps, 1), payloads, hashes),
        transaction_hashes=hashes,
        malformed=tuple(row for row in odd.values() if row.get("malformed") is not None),
        logs=logs,
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The data of payload events before the payload; see chainkit.protocol.events."""

    identifiers: Bytes2D
    """Shape (n, 32)."""
    sequence_ids: npt.NDArray[np.uint64]
    sizes: Integers
    """Bytes of the payloads."""
    is_plain: Flags
    """Whether the data have the encoding that a contract emits, with nothing unusual."""


def _layout(data: pa.BinaryArray) -> _Layout:
    head = fixed(data, _HEAD)
    # Four words of 32 bytes in pieces of eight.
    pieces = head.view(">u8").astype(np.uint64)
    sequence_ids, sizes = pieces[:, 11], pieces[:, 15]
    is_plain = (sequence_ids > 0) & (sizes > 0) & (sizes < _LONGEST)
    whole = np.where(is_plain, sizes, 0).astype(np.int64)
    padding = -whole % _WORD
    is_plain &= pc.binary_length(data).to_numpy(False) == _HEAD + whole + padding
    # The upper bytes of three integers, and the place of the payload: always the fourth word.
    for upper in (4, 5, 6, 8, 9, 10, 12, 13, 14):
        is_plain &= pieces[:, upper] == 0
    is_plain &= pieces[:, 7] == 3 * _WORD
    tail = fixed(pc.binary_slice(data, -_WORD, None), _WORD)
    is_padding = np.arange(_WORD) >= _WORD - padding[:, None]
    is_plain &= ~(is_padding & (tail != 0)).any(axis=1)
    return _Layout(head[:, :_WORD], sequence_ids, whole, is_plain)


def _is_valid(payloads: pa.BinaryArray, layout: _Layout, is_message: Flags) -> Flags:
    kinds = np.where(is_message, TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE)
    topics = np.concatenate([kinds.astype(np.uint8)[:, None], layout.identifiers], axis=1)
    return are_servable(payloads, topics)


def _kinds(logs: pa.RecordBatch, contracts: PayloadContracts) -> tuple[Flags, Flags]:
    """Return which logs are events of GroupMessages, and which of IdentityUpdates."""
    topics = logs.column("topics")
    has_topic = pc.greater(pc.list_value_length(topics), 0)
    starts = pc.if_else(has_topic, topics.offsets[:-1], None)
    first = topics.values.take(starts)
    found = []
    for address, topic in (
        (contracts.group_messages, MESSAGE_SENT_TOPIC),
        (contracts.identity_updates, IDENTITY_UPDATE_CREATED_TOPIC),
    ):
        is_ours = pc.and_(pc.equal(logs.column("address"), address), pc.equal(first, topic))
        found.append(pc.fill_null(is_ours, False).to_numpy(zero_copy_only=False))
    return found[0], found[1]


def _with_context(
    logs: pa.RecordBatch, is_message: Flags, timestamps: Integers, has_block: Flags
) -> pa.RecordBatch:
    """Add what expected.decode_row needs beside the log."""
    names = pc.if_else(pa.array(is_message), "GroupMessages", "IdentityUpdates")
    times = pa.array(timestamps, mask=~has_block)
    columns = [*logs.columns, names, times]
    return pa.RecordBatch.from_arrays(columns, [*logs.schema.names, "contract", "block_timestamp"])


def _decoded(logs: pa.RecordBatch, mask: Flags) -> list[dict[str, Any]]:
    return [decode_row(row) for row in logs.filter(pa.array(mask)).to_pylist()]


def _integers(values: pa.Array) -> Integers:
    integers: Integers = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return integers


def first_sequence(logs: pa.RecordBatch, contracts: PayloadContracts) -> int | None:
    """Return the sequence of the first payload log, if it has the usual form; else None."""
    is_message, is_update = _kinds(logs, contracts)
    [*rows] = np.flatnonzero(is_message | is_update)[:1]
    if not rows:
        return None
    layout = _layout(logs.column("data").slice(int(rows[0]), 1))
    return int(layout.sequence_ids[0]) if layout.is_plain[0] else None
