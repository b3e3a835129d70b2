"""Envelopes of a node as it would have stored them, with both signatures."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
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


def fill(databases: Mapping[Path, Collection[int]], rows: Iterable[StoredEnvelope]) -> None:
    """Store rows of one originator in databases of nodes that do not run, but for some ids each.

    The digests of their ranges are stored, too, as the nodes would have done meanwhile.
    """
    rows = iter(rows)
    originator_id = 0
    with ExitStack() as stack:
        stores = {Store.open_to_repair(str(path)): lost for path, lost in databases.items()}
        for store in stores:
            stack.callback(store.close)
        while some := list(islice(rows, _AT_ONCE)):
            originator_id = some[0].originator_id
            for store, lost in stores.items():
                kept = [row for row in some if row.sequence_id not in lost]
                with store.writing() as connection:
                    store.insert_envelopes(connection, kept)
        for store in stores:
            _store_ranges(store, originator_id)


def _store_ranges(store: Store, originator_id: int) -> None:
    leaves = PIECE_LEAVES
    while leaves == PIECE_LEAVES:
        with store.writing() as connection:
            leaves = store_ranges(connection, originator_id, PIECE_LEAVES)
