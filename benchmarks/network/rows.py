"""Logs of one originator as a node would have stored them, and others that lack some of it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

from sqlalchemy import delete

from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.wire import SIGNATURE_HEAD, UNSIGNED_TAG, bytes_field
from chainkit.signatures import SIGNATURE_LENGTH, SigningKey
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.range_digests import forget_ranges, store_ranges

_AT_ONCE: Final = 10_000
_APART_NS: Final = 1_000
_PIECE_RANGES: Final = 64
_NO_SIGNATURE: Final = SIGNATURE_HEAD + bytes(SIGNATURE_LENGTH)


def signed_rows(
    key: SigningKey | None,
    node_id: int,
    count: int,
    topics: Sequence[bytes],
    payloads: Sequence[bytes],
) -> Iterator[StoredEnvelope]:
    """Yield so many envelopes from sequence id 1 on, which end now; payloads take turns.

    Without a key, signatures are zeros: a million real ones take minutes.
    """
    first_ns = time.time_ns() - count * _APART_NS
    for place in range(count):
        time_ns, payload = first_ns + place * _APART_NS, payloads[place % len(payloads)]
        unsigned = unsigned_originated(OriginatedEnvelope(node_id, place + 1, time_ns, payload))
        topic = topics[place % len(topics)]
        if key:
            envelope = sign_originated(unsigned, key)
        else:
            envelope = bytes_field(UNSIGNED_TAG, unsigned) + _NO_SIGNATURE
        yield StoredEnvelope(node_id, place + 1, time_ns, topic, None, envelope)


def fill(database: Path, originator_id: int, rows: Iterable[StoredEnvelope]) -> None:
    """Store rows of one originator, with the digests of their ranges, where no node runs."""
    with closing(Store.open_to_repair(str(database))) as store:
        store_rows(store, rows)
        store_all_ranges(store, originator_id)


def store_rows(store: Store, rows: Iterable[StoredEnvelope]) -> None:
    """Store rows without the digests of their ranges."""
    rows = iter(rows)
    while some := list(islice(rows, _AT_ONCE)):
        with store.writing() as connection:
            store.insert_envelopes(connection, some)


def copy_log(source: Path, target: Path, originator_id: int, lost: Sequence[int]) -> None:
    """Give a node's database the log that another's has, but for some ids; neither node runs."""
    with closing(sqlite3.connect(target)) as raw, raw:
        raw.execute("ATTACH ? AS source", (str(source),))
        for name in ("envelopes", "range_digests"):
            query = f"INSERT INTO {name} SELECT * FROM source.{name} WHERE originator_id = ?"
            raw.execute(query, (originator_id,))
    with closing(Store.open_to_repair(str(target))) as store:
        lose(store, originator_id, lost)


def lose(store: Store, originator_id: int, ids: Sequence[int]) -> None:
    """Delete envelopes as if they had never come."""
    table = schema.envelopes
    is_lost = table.c.sequence_id.in_(ids)
    with store.writing() as connection:
        connection.execute(delete(table).where(table.c.originator_id == originator_id, is_lost))
        forget_ranges(connection, originator_id, ids)
    store_all_ranges(store, originator_id)


def store_all_ranges(store: Store, originator_id: int) -> int:
    """Store all digests in pieces; return how many pieces it took."""
    pieces, missing = 0, _PIECE_RANGES
    while missing == _PIECE_RANGES:
        with store.writing() as connection:
            missing = store_ranges(connection, originator_id, _PIECE_RANGES)
        pieces += 1
    return pieces
