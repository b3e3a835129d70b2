"""How many bytes of envelopes are stored, by kind, payer and day of expiry: an estimate (ADR 76).

A database has a billion envelopes in a year, so not all are counted. The ids of each originator are
cut into pieces of the same size, and of each piece a window at a random place is read: it stands
for its piece. Where all ids fit into the windows, every envelope is counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import BigInteger, Connection, LargeBinary, and_, bindparam, func, select

from chainkit_indexer.storage.envelopes import read_highest
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.storage import schema

WINDOW_IDS: Final = 32
MOST_WINDOWS: Final = 512
"""All originators together have no more, but for one of each."""
DAY_SECONDS: Final = 24 * 60 * 60
NEVER: Final = -1
"""The day of an envelope that does not expire."""

_MOST_PIECE: Final = 1 << 32
"""Ids may lie far apart on the chain (ADR 50): then a window shows nothing."""
_held: Final = envelopes.c
_owed: Final = schema.charges.c
_ORIGINATOR: Final = bindparam("originator", type_=BigInteger())
_FIRST: Final = bindparam("first", type_=BigInteger())
_LAST: Final = bindparam("last", type_=BigInteger())
_WINDOW: Final = (
    select(
        func.substr(_held.topic, 1, 1, type_=LargeBinary()),
        _held.expires_at,
        func.length(_held.envelope),
        _owed.payer,
    )
    .select_from(
        envelopes.outerjoin(
            schema.charges,
            and_(
                _owed.originator_id == _held.originator_id, _owed.sequence_id == _held.sequence_id
            ),
        )
    )
    .where(_held.originator_id == _ORIGINATOR, _held.sequence_id.between(_FIRST, _LAST))
)
_LOWEST: Final = select(func.min(_held.sequence_id)).where(_held.originator_id == _ORIGINATOR)


@dataclass(slots=True)
class StoredBytes:
    """Bytes of envelopes, three times over."""

    kinds: Counter[int] = field(default_factory=Counter)
    """By the first byte of the topic; -1 for an empty topic."""
    payers: Counter[bytes] = field(default_factory=Counter)
    """By address; empty for what nobody pays for, as the chain's."""
    days: Counter[int] = field(default_factory=Counter)
    """By the day of expiry, counted from 1970, or NEVER."""


def estimate_bytes(connection: Connection, chance: random.Random) -> StoredBytes:
    """Estimate the bytes of all originators' envelopes."""
    found = StoredBytes()
    highest = read_highest(connection)
    most = max(MOST_WINDOWS // max(len(highest), 1), 1)
    for originator_id, last in sorted(highest.items()):
        first = connection.scalar(_LOWEST, {"originator": originator_id})
        for ids, piece in _windows(first or 1, last, most, chance):
            window = {"originator": originator_id, "first": ids[0], "last": ids[-1]}
            _count(connection, found, window, piece)
    return found


def _windows(
    first: int, last: int, most: int, chance: random.Random
) -> Iterator[tuple[range, int]]:
    """Yield windows of ids, and how many ids each stands for."""
    piece = max(-(-(last - first + 1) // most), WINDOW_IDS)
    if piece > _MOST_PIECE:
        return
    for start in range(first, last + 1, piece):
        begin = start + chance.randrange(piece - WINDOW_IDS + 1)
        yield range(begin, begin + WINDOW_IDS), piece


def _count(
    connection: Connection, found: StoredBytes, window: Mapping[str, int], piece: int
) -> None:
    for kind, expires_at, length, payer in connection.execute(_WINDOW, window):
        size = length * piece // WINDOW_IDS
        found.kinds[kind[0] if kind else NEVER] += size
        found.payers[bytes(payer or b"")] += size
        found.days[NEVER if expires_at is None else expires_at // DAY_SECONDS] += size
