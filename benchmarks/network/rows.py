"""Envelopes of a node as it would have stored them, with both signatures."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

from sqlalchemy import delete

from benchmarks.network.logs import PIECE_LEAVES
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.signatures import SigningKey
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.range_digests import forget_ranges, store_ranges

_AT_ONCE: Final = 10_000
_APART_NS: Final = 1_000


def signed_rows(
    key: SigningKey, node_id: int, count: int, topics: Sequence[bytes], payloads: Sequence[bytes]
) -> Iterator[StoredEnvelope]:
    """Yield so many envelopes from sequence id 1 on, which end now; payloads take turns."""
    first_ns = time.time_ns() - count * _APART_NS
    for place in range(count):
        time_ns, payload = first_ns + place * _APART_NS, payloads[place % len(payloads)]
        unsigned = unsigned_originated(OriginatedEnvelope(node_id, place + 1, time_ns, payload))
        topic = topics[place % len(topics)]
        envelope = sign_originated(unsigned, key)
        yield StoredEnvelope(node_id, place + 1, time_ns, topic, None, envelope)


def fill(database: Path, rows: Iterable[StoredEnvelope]) -> None:
    """Store rows of one originator, with the digests of their ranges, where no node runs."""
    rows = iter(rows)
    originator_id = 0
    with closing(Store.open_to_repair(str(database))) as store:
        while some := list(islice(rows, _AT_ONCE)):
            originator_id = some[0].originator_id
            with store.writing() as connection:
                store.insert_envelopes(connection, some)
        _store_ranges(store, originator_id)


def copy_log(source: Path, target: Path, originator_id: int, lost: Collection[int]) -> None:
    """Give a node's database the log that another's has, but for some ids; neither node runs."""
    with closing(sqlite3.connect(target)) as raw, raw:
        raw.execute("ATTACH ? AS source", (str(source),))
        for name in ("envelopes", "range_digests"):
            query = f"INSERT INTO {name} SELECT * FROM source.{name} WHERE originator_id = ?"
            raw.execute(query, (originator_id,))
    table = schema.envelopes
    with closing(Store.open_to_repair(str(target))) as store:
        with store.writing() as connection:
            is_lost = table.c.sequence_id.in_(lost)
            connection.execute(delete(table).where(table.c.originator_id == originator_id, is_lost))
            forget_ranges(connection, originator_id, lost)
        _store_ranges(store, originator_id)


def _store_ranges(store: Store, originator_id: int) -> None:
    leaves = PIECE_LEAVES
    while leaves == PIECE_LEAVES:
        with store.writing() as connection:
            leaves = store_ranges(connection, originator_id, PIECE_LEAVES)
