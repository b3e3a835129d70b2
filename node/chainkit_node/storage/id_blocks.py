"""Sets of sequence ids of each originator: a bitmap of each block of ids, compressed.

A bitmap costs the same for any pattern: two bytes for 16 ids at most, and next to nothing for long
runs. A million holes that lie close together have some 100 kB, and a million that lie a thousand
ids apart have 4 MB.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sqlalchemy import BigInteger, Connection, Table, bindparam, delete, insert, select, update

BLOCK_IDS: Final = 1 << 16
"""Ids of one bitmap, 8 KiB before it is compressed."""

_ORIGINATOR: Final = bindparam("originator", type_=BigInteger())
_NUMBER: Final = bindparam("block", type_=BigInteger())
"""Not the name of a column: that would be what an update sets it to."""


def block_of(sequence_id: int) -> int:
    """Return the number of the block that has an id; blocks count from 0, and ids from 1."""
    return (sequence_id - 1) // BLOCK_IDS


def block_ids(number: int) -> range:
    """Return the ids of a block."""
    return range(number * BLOCK_IDS + 1, (number + 1) * BLOCK_IDS + 1)


class IdBlocks:
    """The bitmaps in a table, whose key is ``originator_id`` and ``number``.

    For ids of 63 bits; each method is within a transaction.
    """

    def __init__(self, table: Table, others: Mapping[str, object]) -> None:
        """Take a table with ``count`` and ``ids``, and the other columns of a new row."""
        self._table = table
        self._others = others
        rows = table.c
        is_of = rows.originator_id == _ORIGINATOR
        self._ids = select(rows.ids).where(is_of, rows.number == _NUMBER)
        is_used = select(rows.number, rows.ids).where(is_of, rows.count > 0)
        self._next = is_used.where(rows.number >= _NUMBER).order_by(rows.number).limit(1)
        self._update = update(table).where(is_of, rows.number == _NUMBER)
        self._last = is_used.order_by(rows.number.desc()).limit(1)

    def read(self, connection: Connection, originator_id: int, first: int, last: int) -> int:
        """Return the set's ids: bit n is set for id ``first`` + n. Both ends lie in one block."""
        number = block_of(first)
        bits = self._bits(connection, originator_id, number) >> first - block_ids(number).start
        mask: int = (1 << last - first + 1) - 1
        return bits & mask

    def next_id(self, connection: Connection, originator_id: int, first: int) -> int | None:
        """Return the lowest id from ``first`` on, or None."""
        number = block_of(first)
        while True:
            ids = {"originator": originator_id, "block": number}
            found = connection.execute(self._next, ids).first()
            if found is None:
                return None
            start = block_ids(found.number).start
            before = max(first - start, 0)
            if bits := _unpacked(found.ids) >> before:
                return int(start + before + (bits & -bits).bit_length() - 1)
            number = int(found.number) + 1

    def last_id(self, connection: Connection, originator_id: int) -> int:
        """Return the highest id; 0 where there is none."""
        found = connection.execute(self._last, {"originator": originator_id}).first()
        if found is None:
            return 0
        return int(block_ids(found.number).start + _unpacked(found.ids).bit_length() - 1)

    def runs(self, connection: Connection, originator_id: int, ids: range) -> Iterator[range]:
        """Yield the ids within a range as runs, in rising order; runs end with their block."""
        end = ids.start
        while end < ids.stop:
            first = self.next_id(connection, originator_id, end)
            if first is None or first >= ids.stop:
                return
            end = min(block_ids(block_of(first)).stop, ids.stop)
            for start, stop in _runs(self.read(connection, originator_id, first, end - 1)):
                yield range(first + start, first + stop)

    def add(
        self,
        connection: Connection,
        originator_id: int,
        sequence_ids: Iterable[int],
        **columns: object,
    ) -> None:
        """Put ids into the set, and change other columns of their blocks."""
        for number, bits in _by_block(sequence_ids).items():
            whole = bits | self._bits(connection, originator_id, number)
            values = {"count": whole.bit_count(), "ids": _packed(whole), **columns}
            self.write(connection, originator_id, number, values)

    def remove(
        self, connection: Connection, originator_id: int, sequence_ids: Iterable[int]
    ) -> list[range]:
        """Take ids out of the set; return those that were in it, as runs."""
        removed = []
        for number, bits in _by_block(sequence_ids).items():
            before = self._bits(connection, originator_id, number)
            if not before & bits:
                continue
            start, rest = block_ids(number).start, before & ~bits
            removed += [range(start + one, start + end) for one, end in _runs(before & bits)]
            if rest:
                values = {"count": rest.bit_count(), "ids": _packed(rest)}
                self.write(connection, originator_id, number, values)
            else:
                key = {"originator_id": originator_id, "number": number}
                connection.execute(delete(self._table).filter_by(**key))
        return removed

    def write(
        self, connection: Connection, originator_id: int, number: int, values: Mapping[str, object]
    ) -> None:
        """Change columns of a block, which is empty where it is new."""
        place = {"originator": originator_id, "block": number}
        if not connection.execute(self._update, {**place, **values}).rowcount:
            key = {"originator_id": originator_id, "number": number}
            empty = {"count": 0, "ids": _packed(0), **self._others}
            connection.execute(insert(self._table).values({**key, **empty, **values}))

    def _bits(self, connection: Connection, originator_id: int, number: int) -> int:
        ids = {"originator": originator_id, "block": number}
        packed = connection.scalar(self._ids, ids)
        return 0 if packed is None else _unpacked(packed)


def _by_block(sequence_ids: Iterable[int]) -> dict[int, int]:
    """Return the bitmap of ids in each block."""
    added: dict[int, bytearray] = {}
    for each in sequence_ids:
        # As block_of: a call for each id would take most of the time.
        number, place = divmod(each - 1, BLOCK_IDS)
        if number not in added:
            added[number] = bytearray(BLOCK_IDS // 8)
        added[number][place >> 3] |= 1 << (place & 7)
    return {number: int.from_bytes(bits, "little") for number, bits in added.items()}


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
