"""The share of accounting in the time of a publish."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks.node.payloads import payer_envelopes, topics
from benchmarks.retention.logs import IDENTITY, PUBLISHING_ID
from chainkit.protocol.charges import charge_of
from chainkit.protocol.publish_rules.judgement import PublishRequest
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.store import Store
from chainkit_node.originating.publisher import read_for_originator
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.storage.charges import insert_charges
from chainkit_node.types import NewEnvelope

_KEY: Final = SigningKey(b"\2" * 32)
_BATCH: Final = 100
_SECONDS: Final = 30 * 24 * 60 * 60
_CHARGED_ID: Final = 300


def accounting_share(path: Path, batches: int) -> float:
    """Return the share of accounting in the time of publishes, 100 to a request."""
    some = topics(_BATCH * batches)
    envelopes = payer_envelopes(some, PUBLISHING_ID)
    total = accounting = 0.0
    with closing(Store.open(str(path), IDENTITY)) as store, closing(_sequencer(store)) as sequencer:
        for start in range(0, len(envelopes), _BATCH):
            begun = time.perf_counter()
            read = [read_for_originator(each) for each in envelopes[start : start + _BATCH]]
            sequencer.submit([_new(each) for each in read]).result()
            total += time.perf_counter() - begun
            accounting += _accounted(store, start, read)
    return accounting / total


def _accounted(store: Store, start: int, read: Sequence[PublishRequest]) -> float:
    """Return the seconds of the same debts alone, within a transaction that is open."""
    with store.writing() as connection:
        begun = time.perf_counter()
        charges = [(number, charge_of(each)) for number, each in enumerate(read, start + 1)]
        insert_charges(store, connection, _CHARGED_ID, charges)
        return time.perf_counter() - begun


def _sequencer(store: Store) -> Sequencer:
    return Sequencer(store, lambda: PUBLISHING_ID, _KEY, time.time_ns, lambda rows: None)


def _new(publish: PublishRequest) -> NewEnvelope:
    client = publish.client
    return NewEnvelope(client.topic, publish.payer_envelope, _SECONDS, 0, charge_of(publish))
