"""The bytes that every honest node serves for a payload, except its signature: many at once.

XIP-49 §3.2.1 by whole columns. ``protocol.envelope`` builds the same bytes one by one; a test
compares the two. The signature is last in an OriginatorEnvelope, so that the bytes before it can be
compared by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chainkit.protocol import wire
from chainkit.protocol.chain_time import chain_time

Bytes2D = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ExpectedBytes:
    """The expected bytes of each payload of a batch, in its order."""

    envelope: pa.BinaryArray
    """The OriginatorEnvelope up to its signature."""
    unsigned_start: Integers
    """Where the UnsignedOriginatorEnvelope begins within those bytes."""
    unsigned_length: Integers
    """Bytes of the UnsignedOriginatorEnvelope."""


def expected_bytes(
    sequence_ids: npt.NDArray[np.uint64],
    block_timestamps: Integers,
    payloads: pa.BinaryArray,
    transaction_hashes: Bytes2D,
) -> ExpectedBytes:
    """Return what every honest node serves for some payloads of originator 0.

    All have one row per payload: sequence ids above 0, times in seconds above 0 and no later than
    chain_time.MAXIMUM_BLOCK_TIMESTAMP, payloads that are not empty, hashes of shape (n, 32).
    """
    sizes = _lengths(payloads)
    nanoseconds = chain_time(block_timestamps.astype(np.uint64), sequence_ids)
    client_length = _varints(sizes.astype(np.uint64))
    payer_sizes = sizes + client_length.sizes + 1
    inner = _joined(
        [
            *_field(wire.SEQUENCE_TAG, _varints(sequence_ids)),
            *_field(wire.TIME_TAG, _varints(nanoseconds)),
            *_field(wire.PAYER_TAG, _varints(payer_sizes.astype(np.uint64))),
            *_field(wire.CLIENT_TAG, client_length),
        ]
    )
    unsigned_length = inner.sizes + sizes
    outer = _joined([*_field(wire.UNSIGNED_TAG, _varints(unsigned_length.astype(np.uint64)))])
    head = _joined([outer, inner])
    envelope = pc.binary_join_element_wise(
        _array(head), payloads, _proof_heads(transaction_hashes), b""
    )
    return ExpectedBytes(envelope, outer.sizes, unsigned_length)


def slices(values: pa.BinaryArray, starts: Integers, lengths: Integers) -> pa.BinaryArray:
    """Return a part of each value: ``starts`` and ``lengths`` lie within it."""
    data = np.frombuffer(values.buffers()[2] or b"", dtype=np.uint8)
    # A view holds its length, its first four bytes, the buffer's number and the place in it. The
    # four bytes serve comparisons, and none is made here.
    places = offsets(values)[:-1] + starts
    views: npt.NDArray[np.int32] = np.zeros((len(values), 4), dtype=np.int32)
    views[:, 0] = lengths
    views[:, 3] = places
    # A short value is within its view.
    for row in np.flatnonzero(lengths <= 12):
        whole = data[places[row] : places[row] + lengths[row]].tobytes()
        views[row, 1:] = np.frombuffer(whole.ljust(12, b"\0"), dtype=np.int32)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary_view(), len(values), buffers).cast(pa.binary())


def pieces(values: pa.BinaryArray) -> Iterator[bytes]:
    """Give the values one by one: many times faster than Arrow's own conversion to Python."""
    data = values.buffers()[2]
    ends = offsets(values)
    size = int(ends[-1] - ends[0])
    # The buffer may be that of many more values.
    whole = data.slice(int(ends[0]), size).to_pybytes() if size else b""
    return (whole[start:end] for start, end in pairwise((ends - ends[0]).tolist()))


def offsets(values: pa.BinaryArray) -> Integers:
    """Return where each value begins in its buffer, and where the last one ends."""
    buffer: Any = values.buffers()[1]
    if buffer is None:
        return np.zeros(1, dtype=np.int64)
    whole: npt.NDArray[np.int32] = np.frombuffer(buffer, dtype=np.int32)
    found: Integers = whole[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return found


def fixed(values: pa.BinaryArray, width: int) -> Bytes2D:
    """Return the first ``width`` bytes of each value; zeros for one that has fewer."""
    is_long = pc.greater_equal(pc.binary_length(values), width)
    cut = pc.binary_slice(values, 0, width)
    if not pc.all(is_long, min_count=0).as_py():
        cut = pc.if_else(is_long, cut, pa.scalar(bytes(width), pa.binary()))
    return matrix(cut, width)


def matrix(values: pa.BinaryArray, width: int) -> Bytes2D:
    """Return values of one length as rows of bytes, without copying them."""
    data = np.frombuffer(values.buffers()[2] or b"", dtype=np.uint8)
    start = int(offsets(values)[0]) if len(values) else 0
    rows: Bytes2D = data[start : start + len(values) * width].reshape(len(values), width)
    return rows


@dataclass(frozen=True, slots=True)
class _Ragged:
    """Rows of up to as many bytes as there are columns; the flags mark the bytes that count."""

    data: Bytes2D
    is_used: Flags

    @property
    def sizes(self) -> Integers:
        sizes: Integers = self.is_used.sum(axis=1, dtype=np.int64)
        return sizes


def _varints(values: npt.NDArray[np.uint64]) -> _Ragged:
    # As many columns as the largest takes.
    bits = int(values.max(initial=1)).bit_length()
    shifts = np.arange(0, bits, 7, dtype=np.uint64)
    groups = values[:, None] >> shifts
    is_used = groups > 0
    is_used[:, 0] = True
    is_last = np.ones_like(is_used)
    is_last[:, :-1] = ~is_used[:, 1:]
    data = (groups & np.uint64(0x7F)).astype(np.uint8) | np.where(is_last, 0, 0x80).astype(np.uint8)
    return _Ragged(data, is_used)


def _field(tag: int, value: _Ragged) -> tuple[_Ragged, _Ragged]:
    shape = (len(value.data), 1)
    return _Ragged(np.full(shape, tag, dtype=np.uint8), np.ones(shape, dtype=np.bool_)), value


def _joined(parts: list[_Ragged]) -> _Ragged:
    return _Ragged(
        np.concatenate([part.data for part in parts], axis=1),
        np.concatenate([part.is_used for part in parts], axis=1),
    )


def _array(values: _Ragged) -> pa.BinaryArray:
    offsets = np.zeros(len(values.data) + 1, dtype=np.int32)
    np.cumsum(values.sizes, out=offsets[1:])
    return _binary(offsets, values.data[values.is_used])


def _proof_heads(transaction_hashes: Bytes2D) -> pa.BinaryArray:
    count = len(transaction_hashes)
    parts = (
        _repeated(wire.PROOF_HEAD, count),
        transaction_hashes,
        _repeated(wire.SIGNATURE_HEAD, count),
    )
    rows = np.concatenate(parts, axis=1)
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(rows.shape[1])
    return _binary(offsets, rows.reshape(-1))


def _repeated(value: bytes, rows: int) -> Bytes2D:
    return np.broadcast_to(np.frombuffer(value, dtype=np.uint8), (rows, len(value)))


def _binary(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _lengths(values: pa.BinaryArray) -> Integers:
    lengths: Integers = np.diff(offsets(values))
    return lengths
