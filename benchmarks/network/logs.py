"""Databases of two nodes that hold the same envelopes of a third one, but for a few."""

from __future__ import annotations

import random
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import delete

from chainkit.protocol.originated_envelope import OriginatedEnvelope, unsigned_originated
from chainkit.protocol.wire import SIGNATURE_HEAD, UNSIGNED_TAG, bytes_field
from chainkit.signatures import SIGNATURE_LENGTH
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.range_digests import forget_ranges, store_ranges

ORIGINATOR: Final = 100
PIECE_LEAVES: Final = 64

_IDENTITY: Final = Identity(31337, bytes(32), bytes(65), 0, ())
_AT_ONCE: Final = 20_000
_PAYLOAD_BYTES: Final = 500
# Nobody checks it here, and a million signatures take minutes.
_NO_SIGNATURE: Final = SIGNATURE_HEAD + bytes(SIGNATURE_LENGTH)


def new_log(path: Path, count: int) -> Store:
    """Make a database with so many envelopes of one originator."""
    store = Store.open(str(path), _IDENTITY)
    for first in range(1, count + 1, _AT_ONCE):
        with store.writing() as connection:
            last = min(first + _AT_ONCE - 1, count)
            store.insert_envelopes(connection, list(rows(range(first, last + 1))))
    return store


def copied_log(path: Path, store: Store) -> Store:
    """Copy a database that nobody has open any more."""
    shutil.copyfile(store.name, path)
    return Store.open(str(path), _IDENTITY)


def rows(ids: Collection[int]) -> Iterator[StoredEnvelope]:
    """Yield a row for each id, always the same one for the same id."""
    for each in ids:
        payload = random.Random(each).randbytes(_PAYLOAD_BYTES)
        stated = OriginatedEnvelope(ORIGINATOR, each, each, payload)
        unsigned = bytes_field(UNSIGNED_TAG, unsigned_originated(stated))
        yield StoredEnvelope(ORIGINATOR, each, each, b"\0topic", None, unsigned + _NO_SIGNATURE)


def store_all_ranges(store: Store) -> int:
    """Store all digests in pieces; return how many pieces it took."""
    pieces = 1
    while store_piece(store) == PIECE_LEAVES:
        pieces += 1
    return pieces


def store_piece(store: Store) -> int:
    """Store the digests of one piece; return how many leaves it had."""
    with store.writing() as connection:
        return store_ranges(connection, ORIGINATOR, PIECE_LEAVES)


def lose(store: Store, ids: Sequence[int]) -> None:
    """Delete envelopes as if they had never come."""
    table = schema.envelopes
    is_one = table.c.sequence_id.in_(ids)
    with store.writing() as connection:
        connection.execute(delete(table).where(table.c.originator_id == ORIGINATOR, is_one))
        forget_ranges(connection, ORIGINATOR, ids)


def repair(store: Store, found: Sequence[StoredEnvelope]) -> None:
    """Store envelopes between others."""
    with store.writing() as connection:
        store.insert_envelopes(connection, found)
        forget_ranges(connection, ORIGINATOR, [row.sequence_id for row in found])
