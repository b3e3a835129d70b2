"""The size of the database over 90 days, and what filled it at the last look (ADR 76).

A size for each hour, and one estimate: both are bounded. The node writes them; ``node status``
reads them, also without the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from chainkit_node.storage import schema
from chainkit_node.storage.stored_bytes import DAY_SECONDS, StoredBytes

HOUR_SECONDS: Final = 60 * 60
MOST_PAYERS: Final = 10
"""Payers that are named; all others are one."""
OTHERS: Final = "others"
NOBODY: Final = "nobody"
GROWTH_DAYS: Final = 7
"""Growth is computed from the sizes of so many days."""

_KEPT_DAYS: Final = 90
_LEAST_SECONDS: Final = 6 * HOUR_SECONDS
"""No growth is computed from less."""
_SIZES: Final = schema.database_sizes
_SHARES: Final = schema.stored_shares


class DatabaseSize(NamedTuple):
    """A row of ``database_sizes``; fields are its columns."""

    hour: int
    """Hours since 1970."""
    used_bytes: int
    room_bytes: int | None
    """Bytes until publishes are refused; None where nobody knows."""


class Growth(NamedTuple):
    """How the database grew lately."""

    bytes_per_day: int
    """Below 0 where it shrank."""
    seconds_left: float | None
    """Until publishes are refused if it goes on; None where it does not grow, or nobody knows."""


def write_look(connection: Connection, size: DatabaseSize, stored: StoredBytes) -> None:
    """Store a look in the place of an earlier one of the same hour, and forget old sizes."""
    oldest = size.hour - _KEPT_DAYS * 24
    hour = _SIZES.c.hour
    connection.execute(delete(_SIZES).where((hour == size.hour) | (hour < oldest)))
    connection.execute(insert(_SIZES).values(size._asdict()))
    connection.execute(delete(_SHARES))
    rows = [
        *(("kind", str(kind), count) for kind, count in stored.kinds.items()),
        *(("payer", name, count) for name, count in _named(stored)),
        *(("day", str(day), count) for day, count in stored.days.items()),
    ]
    if rows:
        names = _SHARES.c.keys()
        connection.execute(insert(_SHARES), [dict(zip(names, row, strict=True)) for row in rows])


def read_newest(connection: Connection) -> DatabaseSize | None:
    """Return the size of the newest look, or None before the first."""
    row = connection.execute(select(_SIZES).order_by(_SIZES.c.hour.desc()).limit(1)).first()
    return None if row is None else DatabaseSize._make(row)


def read_shares(connection: Connection, kind: str) -> dict[str, int]:
    """Return the bytes of the newest look by ``kind``, ``payer`` or ``day``, by their names."""
    query = select(_SHARES.c.name, _SHARES.c.bytes).where(_SHARES.c.part == kind)
    return {name: int(size) for name, size in connection.execute(query)}


def read_days(connection: Connection) -> list[tuple[int, int]]:
    """Return the largest size of each day, counted from 1970, in rising order; 91 at most."""
    day = _SIZES.c.hour / 24 if connection.dialect.name == "postgresql" else _SIZES.c.hour // 24
    query = select(day, func.max(_SIZES.c.used_bytes)).group_by(day).order_by(day)
    return [(int(each), int(size)) for each, size in connection.execute(query)]


def read_growth(connection: Connection, newest: DatabaseSize) -> Growth | None:
    """Return how the database grew within GROWTH_DAYS; None before six hours have passed."""
    since = newest.hour - GROWTH_DAYS * 24
    query = select(_SIZES).where(_SIZES.c.hour >= since).order_by(_SIZES.c.hour).limit(1)
    oldest = DatabaseSize._make(connection.execute(query).one())
    seconds = (newest.hour - oldest.hour) * HOUR_SECONDS
    if seconds < _LEAST_SECONDS:
        return None
    grown = newest.used_bytes - oldest.used_bytes
    left = None
    if grown > 0 and newest.room_bytes is not None:
        left = max(newest.room_bytes, 0) / grown * seconds
    return Growth(grown * DAY_SECONDS // seconds, left)


def _named(stored: StoredBytes) -> Iterable[tuple[str, int]]:
    """Return the largest payers by name, and the sum of all others."""
    paid: Sequence[tuple[bytes, int]] = [each for each in stored.payers.most_common() if each[0]]
    yield from ((f"0x{payer.hex()}", size) for payer, size in paid[:MOST_PAYERS])
    if more := sum(size for _, size in paid[MOST_PAYERS:]):
        yield OTHERS, more
    if unpaid := stored.payers[b""]:
        yield NOBODY, unpaid
