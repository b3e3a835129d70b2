"""Envelopes of a node as it would have stored them, with both signatures."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.network.logs import PIECE_LEAVES
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.range_digests import store_ranges
from chainkit_indexer.storage.store import Store

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


def fill(database: Path, rows: Sequence[StoredEnvelope]) -> None:
    """Store rows of one originator, with the digests of their ranges, where no node runs."""
    store = Store.open_to_repair(str(database))
    try:
        for start in range(0, len(rows), _AT_ONCE):
            with store.writing() as connection:
                store.insert_envelopes(connection, rows[start : start + _AT_ONCE])
        pieces = PIECE_LEAVES
        while pieces == PIECE_LEAVES:
            with store.writing() as connection:
                pieces = store_ranges(connection, rows[0].originator_id, PIECE_LEAVES)
    finally:
        store.close()
