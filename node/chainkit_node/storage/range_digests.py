"""Digests of ranges of an originator's envelopes, to compare two nodes' logs in few bytes.

Theory of operation. A range is complete once its last id is not above the originator's highest.
``store_ranges`` gives complete ranges their rows, leaves first, in pieces. A range without any
envelope needs no row: its digests are zeros, and one query shows that it is empty. So an id far
beyond the last costs nothing. A row is never there without the rows of its parts that have
envelopes, so the ranges without rows are found from the top in few queries.

Below the highest id, envelopes change only by a repair or by a dispute. Each such change calls
``forget_ranges`` in its own transaction, which computes the rows of the ids' leaves again, and
deletes those of the ranges above. Envelopes that are appended are in no complete range.

Pruning changes no digest: those of pruned envelopes stay in the rows of their leaves, which are the
only place that has them. So a leaf's row is never deleted, and is there before its first envelope
is pruned. Nodes agree on ranges that one of them has pruned and another has not.

Readers compute the few ranges that have no row: those at the end of the log, and those that have
just been forgotten. Readers write nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)

from chainkit.errors import StoreUnavailable
from chainkit.protocol.log_ranges import (
    ABSENT,
    FAN_OUT,
    LEAF_IDS,
    MOST_LEVEL,
    LogRange,
    RangeContent,
    disputed_digest,
    envelope_digest,
    range_digest,
    root_of,
    split,
)
from chainkit_indexer.storage.envelopes import read_last
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.storage import schema
from chainkit_node.storage.expired_ids import read_expired, read_last_expired
from chainkit_node.storage.pruned_ids import PRUNED

_MOST_COMPUTED: Final = 128
"""Ranges without rows that one reading computes; each leaf reads 64 envelopes."""
_AT_ONCE: Final = 500
"""Numbers of one statement: SQLite before version 3.32 takes 999 parameters."""

_rows: Final = schema.range_digests.c
_held: Final = envelopes.c
_disputed: Final = schema.disputed_envelopes.c

_ORIGINATOR: Final = bindparam("originator", type_=BigInteger())
_FIRST: Final = bindparam("first", type_=BigInteger())
_LAST: Final = bindparam("last", type_=BigInteger())
_LEAVES: Final = select(_rows.number).where(
    _rows.originator_id == _ORIGINATOR, _rows.level == 0, _rows.number.between(_FIRST, _LAST)
)
# Built once: building the query for each leaf takes as long as reading and hashing a leaf.
_HELD: Final = select(_held.sequence_id, _held.envelope).where(
    _held.originator_id == _ORIGINATOR, _held.sequence_id.between(_FIRST, _LAST)
)
_DISPUTED: Final = select(_disputed.sequence_id).where(
    _disputed.originator_id == _ORIGINATOR, _disputed.sequence_id.between(_FIRST, _LAST)
)
_NEXT: Final = tuple(
    select(func.min(table.sequence_id)).where(
        table.originator_id == _ORIGINATOR, table.sequence_id >= _FIRST
    )
    for table in (_held, _disputed)
)


def read_highest_id(connection: Connection, originator_id: int) -> int:
    """Return an originator's highest sequence id, also a pruned one; 0 before the first."""
    last = read_last(connection, originator_id)
    return max(0 if last is None else last[0], read_last_expired(connection, originator_id))


def read_contents(
    connection: Connection,
    originator_id: int,
    through: int,
    ranges: Sequence[LogRange],
    now: int,
) -> list[RangeContent]:
    """Return the contents of some ranges, in their order, of ids up to ``through``.

    ``through`` is not above the originator's highest id; ``now`` is in seconds since 1970.

    Raises StoreUnavailable where too many ranges have no rows yet: ``store_ranges`` is storing
    them.
    """
    reading = _Reading(connection, originator_id, through)
    found: dict[LogRange, RangeContent] = {}
    for level in {each.level for each in ranges}:
        numbers = [each.number for each in ranges if each.level == level]
        for number, digests in reading.digests(level, numbers).items():
            asked = LogRange(level, number)
            expired = read_expired(connection, originator_id, asked, digests, through, now)
            found[asked] = RangeContent(digests, expired)
    return [found[each] for each in ranges]


def store_ranges(connection: Connection, originator_id: int, most: int) -> int:
    """Store rows of the first ranges that ``find_missing`` returns, and of ranges above.

    Return how many ``find_missing`` returned: 0 once nothing is missing.
    """
    highest = read_highest_id(connection, originator_id)
    missing = find_missing(connection, originator_id, highest, most)
    reading = _Reading(connection, originator_id, highest)
    level = missing[0].level if missing else 0
    numbers = [each.number for each in missing]
    while numbers:
        rows = reading.leaves(numbers) if level == 0 else reading.of_parts(level, numbers)
        values = {"originator_id": originator_id, "level": level}
        connection.execute(
            insert(schema.range_digests),
            [values | {"number": each, "digests": digests} for each, digests in rows.items()],
        )
        level += 1
        parents = dict.fromkeys(number // FAN_OUT for number in numbers)
        complete = [each for each in parents if LogRange(level, each).last <= highest]
        numbers = [each for each in complete if reading.has_all_parts(level, each)]
    return len(missing)


class RangeKey(NamedTuple):
    """A row of ``range_digests`` of one originator, in the order of the primary key."""

    level: int
    number: int


class ComparedRanges(NamedTuple):
    """A page of an originator's rows, computed again."""

    compared: int
    differing: list[LogRange]
    last: RangeKey | None
    """Where the next page begins; None where the last row is behind."""


def differing_ranges(
    connection: Connection, originator_id: int, after: RangeKey | None
) -> ComparedRanges:
    """Compare a page of rows with what the envelopes, or the rows of the parts, make."""
    is_behind = _rows.originator_id == originator_id
    if after is not None:
        is_behind = and_(is_behind, tuple_(_rows.level, _rows.number) > tuple_(*after))
    query = select(_rows.level, _rows.number, _rows.digests).where(is_behind)
    page = connection.execute(query.order_by(_rows.level, _rows.number).limit(_MOST_COMPUTED)).all()
    reading = _Reading(connection, originator_id, read_highest_id(connection, originator_id))
    differing = []
    for level in sorted({row.level for row in page}):
        stored = {row.number: row.digests for row in page if row.level == level}
        made = reading.leaves(stored) if level == 0 else reading.of_parts(level, list(stored))
        differing += [LogRange(level, each) for each in stored if made[each] != stored[each]]
    last = RangeKey(*page[-1][:2]) if len(page) == _MOST_COMPUTED else None
    return ComparedRanges(len(page), differing, last)


def find_missing(
    connection: Connection, originator_id: int, highest: int, most: int
) -> list[LogRange]:
    """Return complete ranges that have envelopes, no row, and rows of all parts with envelopes.

    All are of one level, the lowest that has such ranges; the first ``most`` of them.
    """
    reading = _Reading(connection, originator_id, highest)
    found: list[LogRange] = []
    ranges = [root_of(highest)]
    while ranges:
        # One more than wanted: the last may be incomplete, and have no missing part at all.
        missing = list(islice(reading.without_rows(ranges), most + 1))
        found = [each for each in missing if each.last <= highest][:most] or found
        ranges = [
            each.child(place)
            for each in missing
            if each.level
            for place in range(each.part_count(highest))
        ]
    return found


def forget_ranges(connection: Connection, originator_id: int, sequence_ids: Iterable[int]) -> None:
    """Renew the rows of all leaves that contain one of the ids, and delete those of ranges above.

    To be called where an envelope is inserted below the originator's highest id, or becomes
    disputed, in the same transaction.
    """
    numbers = {(each - 1) // LEAF_IDS for each in sequence_ids}
    _renew_leaves(connection, originator_id, sorted(numbers))
    numbers = {number // FAN_OUT for number in numbers}
    for level in range(1, MOST_LEVEL + 1):
        for is_one_of in _conditions(originator_id, level, sorted(numbers)):
            connection.execute(delete(schema.range_digests).where(is_one_of))
        numbers = {number // FAN_OUT for number in numbers}


def _renew_leaves(connection: Connection, originator_id: int, numbers: Sequence[int]) -> None:
    stored = sorted(_stored_numbers(connection, originator_id, 0, numbers))
    if not stored:
        return
    through = LogRange(0, stored[-1]).last
    for number, digests in _Reading(connection, originator_id, through).leaves(stored).items():
        key = {"originator_id": originator_id, "level": 0, "number": number}
        connection.execute(update(schema.range_digests).filter_by(**key).values(digests=digests))


def stored_leaves(connection: Connection, originator_id: int, first: int, last: int) -> set[int]:
    """Return the numbers of the leaves with ids of a range that have a row.

    Such a leaf keeps the digests of pruned envelopes. Both ends of the range are included.
    """
    numbers = {"first": leaf_of(first), "last": leaf_of(last)}
    return set(connection.scalars(_LEAVES, numbers | {"originator": originator_id}).all())


def leaf_of(sequence_id: int) -> int:
    """Return the number of the leaf that has an id."""
    return (sequence_id - 1) // LEAF_IDS


def leaf_ids(number: int) -> range:
    """Return the ids of a leaf."""
    leaf = LogRange(0, number)
    return range(leaf.first, leaf.last + 1)


class _Reading:
    """Reads or computes ranges in one transaction, and computes no more than a few."""

    def __init__(self, connection: Connection, originator_id: int, through: int) -> None:
        self._connection = connection
        self._originator_id = originator_id
        self._through = through
        self._computed = 0

    def digests(self, level: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the parts' digests of some ranges, by their numbers."""
        ranges = [LogRange(level, number) for number in dict.fromkeys(numbers)]
        complete = [each.number for each in ranges if each.last <= self._through]
        found = self._stored(level, complete)
        rest = [each for each in ranges if each.number not in found]
        missing = [each.number for each in self._with_envelopes(rest)]
        found |= {each.number: ABSENT * each.part_count(self._through) for each in rest}
        self._computed += len(missing)
        if self._computed > _MOST_COMPUTED:
            subject, got = f"ranges of originator {self._originator_id}", "too many without"
            raise StoreUnavailable(subject, "stored digests", got, "they are being computed")
        return found | (self.leaves(missing) if level == 0 else self.of_parts(level, missing))

    def of_parts(self, level: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return the digests of some ranges above the leaves, made of their parts."""
        parts = {number: self._part_numbers(level, number) for number in numbers}
        found = self.digests(level - 1, [each for some in parts.values() for each in some])
        return {
            number: b"".join(range_digest(level - 1, found[each]) for each in some)
            for number, some in parts.items()
        }

    def leaves(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """Return the digests of the envelopes of some leaves."""
        return {number: self._leaf(LogRange(0, number)) for number in numbers}

    def has_all_parts(self, level: int, number: int) -> bool:
        """Return whether all parts of a complete range that have envelopes have rows."""
        parts = [LogRange(level - 1, each) for each in self._part_numbers(level, number)]
        return next(self.without_rows(parts), None) is None

    def without_rows(self, ranges: Sequence[LogRange]) -> Iterator[LogRange]:
        """Yield the ranges of one level that have envelopes, and are incomplete or have no row.

        ``ranges`` are in rising order, and at least one.
        """
        complete = [each.number for each in ranges if each.last <= self._through]
        level = ranges[0].level
        stored = _stored_numbers(self._connection, self._originator_id, level, complete)
        yield from self._with_envelopes(each for each in ranges if each.number not in stored)

    def _with_envelopes(self, ranges: Iterable[LogRange]) -> Iterator[LogRange]:
        """Yield the ranges that have envelopes up to ``through``, in rising order."""
        held = 0
        for each in sorted(ranges):
            if held < each.first <= self._through:
                # Ranges before the next id need no query.
                held = self._next_id(each.first)
            if each.first <= held <= min(each.last, self._through):
                yield each

    def _next_id(self, first: int) -> int:
        """Return the next id that has a digest, or one behind ``through``."""
        ids = {"originator": self._originator_id, "first": first}
        found = [self._connection.scalar(query, ids) for query in _NEXT]
        found.append(PRUNED.next_id(self._connection, self._originator_id, first))
        return min((each for each in found if each), default=self._through + 1)

    def _part_numbers(self, level: int, number: int) -> list[int]:
        whole = LogRange(level, number)
        return [whole.child(place).number for place in range(whole.part_count(self._through))]

    def _stored(self, level: int, numbers: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for is_one_of in _conditions(self._originator_id, level, numbers):
            query = select(_rows.number, _rows.digests).where(is_one_of)
            found |= {number: digests for number, digests in self._connection.execute(query)}
        return found

    def _leaf(self, leaf: LogRange) -> bytes:
        digests = [ABSENT] * leaf.part_count(self._through)
        last = leaf.first + len(digests) - 1
        if pruned := PRUNED.read(self._connection, self._originator_id, leaf.first, last):
            stored = split(self._stored(0, [leaf.number]).get(leaf.number, b""))
            kept = [digest if pruned >> n & 1 else ABSENT for n, digest in enumerate(stored)]
            digests[: len(kept)] = kept[: len(digests)]
        ids = {"originator": self._originator_id, "first": leaf.first, "last": last}
        for sequence_id, envelope in self._connection.execute(_HELD, ids):
            digests[sequence_id - leaf.first] = envelope_digest(envelope)
        for sequence_id in self._connection.scalars(_DISPUTED, ids):
            digests[sequence_id - leaf.first] = disputed_digest(self._originator_id, sequence_id)
        return b"".join(digests)


def _stored_numbers(
    connection: Connection, originator_id: int, level: int, numbers: Sequence[int]
) -> set[int]:
    found: set[int] = set()
    for is_one_of in _conditions(originator_id, level, numbers):
        found.update(connection.scalars(select(_rows.number).where(is_one_of)))
    return found


def _conditions(
    originator_id: int, level: int, numbers: Sequence[int]
) -> Iterator[ColumnElement[bool]]:
    """Yield a condition for each portion of some ranges' rows."""
    for start in range(0, len(numbers), _AT_ONCE):
        yield and_(
            _rows.originator_id == originator_id,
            _rows.level == level,
            _rows.number.in_(numbers[start : start + _AT_ONCE]),
        )
