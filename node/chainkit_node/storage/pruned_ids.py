"""Which sequence ids were pruned: a bitmap of each block of ids, compressed.

A bitmap costs the same for any pattern of kept envelopes: two bytes for 16 ids at most, and next to
nothing for long runs. A million holes that lie close together have some 100 kB, and a million that
lie a thousand ids apart have 4 MB. Rows are only written by ``node prune``, and never lost: a peer
that compares logs learns from them that nothing was omitted.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, insert, select, update

from chainkit_node.storage import schema

BLOCK_IDS: Final = 1 << 16
"""Ids of one bitmap, 8 KiB before it is compressed."""

_rows: Final = schema.pruned_blocks.c
_ORIGINATOR: Final = bindparam("originator", type_=BigInteger())
_NUMBER: Final = bindparam("number", type_=BigInteger())
_IDS: Final = select(_rows.ids).where(_rows.originator_id == _ORIGINATOR, _rows.number == _NUMBER)
_NEXT: Final = (
    select(_rows.number, _rows.ids)
    .where(_rows.originator_id == _ORIGINATOR, _rows.number >= _NUMBER, _rows.count > 0)
    .order_by(_rows.number)
    .limit(1)
)


def block_of(sequence_id: int) -> int:
    """Return the number of the block that has an id; blocks count from 0, and ids from 1."""
    return (sequence_id - 1) // BLOCK_IDS


def block_ids(number: int) -> range:
    """Return the ids of a block."""
    return range(number * BLOCK_IDS + 1, (number + 1) * BLOCK_IDS + 1)


def read_pruned(connection: Connection, originator_id: int, first: int, last: int) -> int:
    """Return which ids were pruned: bit n is set for id ``first`` + n. Both ends lie in one block.

    For ids of 63 bits.
    """
    number = block_of(first)
    bits = _bits(connection, originator_id, number) >> first - block_ids(number).start
    mask: int = (1 << last - first + 1) - 1
    return bits & mask


def next_pruned(connection: Connection, originator_id: int, first: int) -> int | None:
    """Return the lowest pruned id from ``first`` on, or None."""
    number = block_of(first)
    while True:
        ids = {"originator": originator_id, "number": number}
        found = connection.execute(_NEXT, ids).first()
        if found is None:
            return None
        start = block_ids(found.number).start
        before = max(first - start, 0)
        if bits := _unpacked(found.ids) >> before:
            return int(start + before + (bits & -bits).bit_length() - 1)
        number = int(found.number) + 1


def read_pruned_runs(connection: Connection, originator_id: int, ids: range) -> Iterator[range]:
    """Yield the pruned ids within a range as runs, in rising order; runs end with their block."""
    end = ids.start
    while end < ids.stop:
        first = next_pruned(connection, originator_id, end)
        if first is None or first >= ids.stop:
            return
        end = min(block_ids(block_of(first)).stop, ids.stop)
        for start, stop in _runs(read_pruned(connection, originator_id, first, end - 1)):
            yield range(first + start, first + stop)


def add_pruned(connection: Connection, originator_id: int, sequence_ids: Iterable[int]) -> None:
    """Record ids as pruned, in the transaction that deletes their envelopes."""
    added: dict[int, bytearray] = {}
    for each in sequence_ids:
        number = block_of(each)
        place = each - block_ids(number).start
        added.setdefault(number, bytearray(BLOCK_IDS // 8))[place // 8] |= 1 << place % 8
    for number, bits in added.items():
        whole = int.from_bytes(bits, "little") | _bits(connection, originator_id, number)
        values = {"count": whole.bit_count(), "ids": _packed(whole)}
        _write(connection, originator_id, number, values)


def read_due(connection: Connection, originator_id: int, number: int) -> int:
    """Return when a block is to be looked through again, in seconds since 1970; 0 for at once."""
    key = {"originator_id": originator_id, "number": number}
    return connection.scalar(select(_rows.due_at).filter_by(**key)) or 0


def set_due(connection: Connection, originator_id: int, number: int, due_at: int) -> None:
    """Record when a block is to be looked through again."""
    _write(connection, originator_id, number, {"due_at": due_at})


def _write(
    connection: Connection, originator_id: int, number: int, values: dict[str, object]
) -> None:
    key = {"originator_id": originator_id, "number": number}
    changed = connection.execute(update(schema.pruned_blocks).filter_by(**key).values(**values))
    if not changed.rowcount:
        empty = {"count": 0, "ids": _packed(0), "due_at": 0}
        connection.execute(insert(schema.pruned_blocks).values(key | empty | values))


def _bits(connection: Connection, originator_id: int, number: int) -> int:
    packed = connection.scalar(_IDS, {"originator": originator_id, "number": number})
    return 0 if packed is None else _unpacked(packed)


def _packed(bits: int) -> bytes:
    return zlib.compress(bits.to_bytes(BLOCK_IDS // 8, "little")) if bits else b""


def _unpacked(packed: bytes) -> int:
    return int.from_bytes(zlib.decompress(packed), "little") if packed else 0


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Yield start and stop of each run of bits that are set."""
    start = 0
    while bits:
        zeros = (bits & -bits).bit_length() - 1
        bits >>= zeros
        ones = (~bits & bits + 1).bit_length() - 1
        yield start + zeros, start + zeros + ones
        start += zeros + ones
        bits >>= ones
