"""The causes of a full database, for a snapshot: read from the node's last look (ADR 76)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection

from chainkit.types import TopicKind
from chainkit_node.inspection.storage_snapshot import SizeOfDay, StorageStatus, StoredShare
from chainkit_node.storage.storage_looks import (
    HOUR_SECONDS,
    read_days,
    read_growth,
    read_newest,
    read_shares,
)
from chainkit_node.storage.stored_bytes import DAY_SECONDS, NEVER

_TERMS = ((0, "expired"), (1, "1 d"), (7, "7 d"), (30, "30 d"), (90, "90 d"), (365, "365 d"))
"""Days from the look on, and the name of what expires by then and not before."""
_LATER, _NEVER = "later", "never"


def read_storage(connection: Connection) -> StorageStatus | None:
    """Return what the last look has found; None before the first."""
    newest = read_newest(connection)
    if newest is None:
        return None
    growth = read_growth(connection, newest)
    today = newest.hour * HOUR_SECONDS // DAY_SECONDS
    return StorageStatus(
        looked_at=float(newest.hour * HOUR_SECONDS),
        used_bytes=newest.used_bytes,
        room_bytes=newest.room_bytes,
        growth_bytes=None if growth is None else growth.bytes_per_day,
        seconds_left=None if growth is None else growth.seconds_left,
        kinds=_largest(_kinds(read_shares(connection, "kind"))),
        payers=_largest(read_shares(connection, "payer").items()),
        expiries=_expiries(read_shares(connection, "day"), today),
        sizes=tuple(SizeOfDay(day * DAY_SECONDS, size) for day, size in read_days(connection)),
    )


def _largest(shares: Iterable[tuple[str, int]]) -> tuple[StoredShare, ...]:
    ordered = sorted(shares, key=lambda each: (-each[1], each[0]))
    return tuple(StoredShare(name, size) for name, size in ordered)


def _kinds(shares: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    names = {str(int(kind)): kind.name.lower() for kind in TopicKind}
    for kind, size in shares.items():
        yield names.get(kind, f"kind {kind}"), size


def _expiries(shares: Mapping[str, int], today: int) -> tuple[StoredShare, ...]:
    found = dict.fromkeys([*(name for _, name in _TERMS), _LATER, _NEVER], 0)
    for day, size in shares.items():
        found[_term(int(day), today)] += size
    return tuple(StoredShare(name, size) for name, size in found.items())


def _term(day: int, today: int) -> str:
    if day == NEVER:
        return _NEVER
    return next((name for days, name in _TERMS if day - today < days), _LATER)
