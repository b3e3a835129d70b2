"""Some thousand payloads in a row, as matrices: what the chain holds, and what nodes must serve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.audit.exports.columns import (
    Bytes,
    beside,
    varint,
    varint_width,
    varints,
    words,
)
from benchmarks.audit.exports.payloads import Payloads, random_payloads
from benchmarks.audit.exports.shape import (
    PAYLOAD_BYTES,
    Blocks,
    Shape,
    hash_of,
    is_quarantined,
    time_of,
)
from chainkit.types import HASH_LENGTH

SIGNATURE_BYTES: Final = 65

_PAYER: Final = b"\x0a" + varint(PAYLOAD_BYTES)
"""The bytes before the payload in a PayerEnvelope."""

_PROOF_HEAD: Final = bytes((0x1A, 2 + HASH_LENGTH + 4 + SIGNATURE_BYTES, 0x0A, HASH_LENGTH))
_SIGNATURE_HEAD: Final = bytes((0x12, 2 + SIGNATURE_BYTES, 0x0A, SIGNATURE_BYTES))


@dataclass(frozen=True, slots=True)
class Batch:
    """A row per payload; all columns have the same length."""

    blocks: Blocks
    sequence_ids: NDArray[np.uint64]
    block_numbers: NDArray[np.int64]
    positions: NDArray[np.int64]
    """Index of the transaction, and of its only log, in the block."""
    block_hashes: Bytes
    transaction_hashes: Bytes
    content: Payloads
    are_malformed: NDArray[np.bool_]

    def __len__(self) -> int:
        """How many payloads there are."""
        return len(self.sequence_ids)

    @property
    def originator_ns(self) -> NDArray[np.int64]:
        """The time of each payload (ADR 45)."""
        seconds = time_of(0) + self.block_numbers * (time_of(1) - time_of(0)) + 1
        microseconds = (self.sequence_ids % 1_000_000).astype(np.int64)
        return (seconds * 1_000_000 + microseconds) * 1_000


@dataclass(frozen=True, slots=True)
class Heads:
    """The envelopes of some rows in succession, up to where the node's signature stands."""

    rows: slice
    """Which rows of the batch."""
    bytes: Bytes
    unsigned: slice
    """Where in each the UnsignedOriginatorEnvelope lies."""


def make_batch(shape: Shape, blocks: Blocks) -> Batch:
    """Make the payloads of some blocks; the same ones each time."""
    held = shape.sequences_of(blocks)
    count = len(held)
    rng = np.random.default_rng((shape.seed, blocks.first))
    sequence_ids = np.arange(held.start, held.stop, dtype=np.uint64)
    since_first = sequence_ids.astype(np.int64) - 1
    block_numbers = shape.first_payload_block + since_first // shape.rows_per_block
    are_malformed = np.fromiter(map(is_quarantined, held), np.bool_, count)
    return Batch(
        blocks=blocks,
        sequence_ids=sequence_ids,
        block_numbers=block_numbers,
        positions=since_first % shape.rows_per_block,
        block_hashes=_block_hashes(blocks)[block_numbers - blocks.first],
        transaction_hashes=_random(rng, count, HASH_LENGTH),
        content=random_payloads(rng, count, shape.random_bytes, are_malformed),
        are_malformed=are_malformed,
    )


def log_data(batch: Batch) -> Bytes:
    """Return the data of each payload's event: (bytes32, bytes, uint64), as Solidity encodes it."""
    count = len(batch)

    def constant(value: int) -> bytes:
        return value.to_bytes(32, "big")

    padding = bytes(-PAYLOAD_BYTES % 32)
    return beside(
        count,
        [
            batch.content.identifiers,
            constant(3 * 32),
            words(batch.sequence_ids),
            constant(PAYLOAD_BYTES),
            batch.content.payloads,
            padding,
        ],
    )


def heads(batch: Batch) -> Iterator[Heads]:
    """Yield what every honest node serves, in runs of rows whose envelopes have one length."""
    start = 0
    while start < len(batch):
        width = varint_width(int(batch.sequence_ids[start]))
        end = int(np.searchsorted(batch.sequence_ids, np.uint64(1 << 7 * width)))
        yield _heads(batch, slice(start, end), width)
        start = end


def _heads(batch: Batch, rows: slice, width: int) -> Heads:
    payer_bytes = len(_PAYER) + PAYLOAD_BYTES
    times = batch.originator_ns[rows].astype(np.uint64)
    unsigned = beside(
        rows.stop - rows.start,
        [
            b"\x10",
            varints(batch.sequence_ids[rows], width),
            b"\x18",
            varints(times, varint_width(int(times[0]))),
            b"\x22" + varint(payer_bytes) + _PAYER,
            batch.content.payloads[rows],
        ],
    )
    before = b"\x0a" + varint(unsigned.shape[1])
    parts: list[bytes | Bytes] = [
        before,
        unsigned,
        _PROOF_HEAD,
        batch.transaction_hashes[rows],
        _SIGNATURE_HEAD,
    ]
    place = slice(len(before), len(before) + unsigned.shape[1])
    return Heads(rows, beside(len(unsigned), parts), place)


def random_signatures(rng: np.random.Generator, rows: int) -> Bytes:
    """Return bytes in the form of signatures, which nobody made."""
    found = _random(rng, rows, SIGNATURE_BYTES).copy()
    # S in the lower half of the curve's order, V in {0, 1}.
    found[:, HASH_LENGTH] &= 0x3F
    found[:, -1] &= 1
    return found


def _random(rng: np.random.Generator, rows: int, width: int) -> Bytes:
    return np.frombuffer(rng.bytes(rows * width), np.uint8).reshape(rows, width)


def _block_hashes(blocks: Blocks) -> Bytes:
    hashes = b"".join(map(hash_of, range(blocks.first, blocks.last + 1)))
    return np.frombuffer(hashes, np.uint8).reshape(len(blocks), HASH_LENGTH)
