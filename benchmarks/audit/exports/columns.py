"""Whole columns of bytes at once: rows of one width as matrices, and matrices as Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
"""Rows of bytes, all of one width."""

_DECIMAL_BYTES: Final = 16


def varint_width(value: int) -> int:
    """Return the bytes of a number as protobuf writes it."""
    return max(1, -(-value.bit_length() // 7))


def varints(values: NDArray[np.uint64], width: int) -> Bytes:
    """Write numbers as protobuf does, each of them in ``width`` bytes."""
    shifts = (7 * np.arange(width)).astype(np.uint64)
    digits = ((values[:, None] >> shifts) & np.uint64(0x7F)).astype(np.uint8)
    digits[:, :-1] |= 0x80
    return digits


def varint(value: int) -> bytes:
    """Write one number as protobuf does."""
    return varints(np.array([value], np.uint64), varint_width(value)).tobytes()


def words(values: NDArray[np.uint64]) -> Bytes:
    """Write numbers as a contract does: 32 bytes, the highest first."""
    found = np.zeros((len(values), 32), np.uint8)
    found[:, 24:] = values.astype(">u8")[:, None].view(np.uint8)
    return found


def beside(rows: int, parts: Sequence[bytes | Bytes]) -> Bytes:
    """Put columns side by side; bytes stand in each of the rows."""
    columns = [
        np.broadcast_to(np.frombuffer(part, np.uint8), (rows, len(part)))
        if isinstance(part, bytes)
        else part
        for part in parts
    ]
    return np.concatenate(columns, axis=1)


def binary(rows: Bytes) -> pa.Array:
    """Return rows as an array of binary."""
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def repeated(value: bytes, rows: int) -> pa.Array:
    """Return the same bytes in each row."""
    return binary(beside(rows, [value]))


def decimals(values: NDArray[np.uint64], type_: pa.DataType) -> pa.Array:
    """Return numbers as an array of decimals without a fraction."""
    found = np.zeros((len(values), _DECIMAL_BYTES // 8), np.uint64)
    found[:, 0] = values
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(found)])


def table(schema: pa.Schema, rows: int, columns: dict[str, Any]) -> pa.Table:
    """Return a table of a schema; what ``columns`` does not name is null."""
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
