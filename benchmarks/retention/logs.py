"""A database whose own log has expired, is charged to payers, and is covered by a report."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import Final

from benchmarks.network.rows import signed_rows, store_all_ranges, store_rows
from chainkit.errors import StoreError
from chainkit.protocol.charges import Charge
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_node.storage.charges import insert_charges
from chainkit_node.storage.payer_reports import StoredPayerReport, insert_report

IDENTITY: Final = Identity(31337, bytes(32), bytes(65), 0, ())
NODE_ID: Final = 100
"""Its log is deleted."""
PUBLISHING_ID: Final = 200
"""The node that publishes meanwhile, into the same database."""

_TOPICS: Final = 2_000
_PAYERS: Final = 1_000
_PAYLOAD_BYTES: Final = 420
_PAYLOADS: Final = 1_000
_AT_ONCE: Final = 10_000
_TRIES: Final = 100


def write_expired(location: str, envelopes: int) -> None:
    """Write a log of messages that expired in 1970, with all that pruning asks for."""
    with closing(Store.open(location, IDENTITY)) as store:
        hold_expired(store, NODE_ID, envelopes)


def hold_expired(store: Store, node_id: int, envelopes: int) -> None:
    """Store such a log of a node."""
    store_rows(store, _expired(node_id, envelopes))
    write_charges(store, envelopes, node_id)
    _store_all_ranges(store, node_id)
    report = StoredPayerReport(node_id, 1, envelopes, b"", b"", b"", 1, 1)
    with store.writing() as connection:
        insert_report(connection, report)


def _store_all_ranges(store: Store, node_id: int) -> None:
    """Also where the node runs, which stores the same rows: PostgreSQL undoes one of the two."""
    for _ in range(_TRIES):
        with suppress(StoreError):
            store_all_ranges(store, node_id)
            return
    store_all_ranges(store, node_id)


def write_charges(store: Store, envelopes: int, node_id: int = NODE_ID) -> None:
    """Store debts of a thousand payers for a log."""
    debts = enumerate(charges(envelopes), 1)
    while some := list(islice(debts, _AT_ONCE)):
        with store.writing() as connection:
            insert_charges(store, connection, node_id, some)


def charges(count: int) -> Iterator[Charge]:
    """Yield debts; every node finds the same."""
    chance = random.Random(1)
    payers = [chance.randbytes(20) for _ in range(_PAYERS)]
    for _ in range(count):
        yield Charge(chance.choice(payers), 0, chance.randrange(200, 2_000), 30)


def _expired(node_id: int, count: int) -> Iterator[StoredEnvelope]:
    chance = random.Random(1)
    topics: Sequence[bytes] = [
        TopicKind.GROUP_MESSAGE.topic(chance.randbytes(32)) for _ in range(_TOPICS)
    ]
    payloads = [chance.randbytes(_PAYLOAD_BYTES) for _ in range(_PAYLOADS)]
    for each in signed_rows(None, node_id, count, topics, payloads):
        yield each._replace(expires_at=1)
