"""Publishes into a database at a steady rate, and the share of accounting in a publish."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.node.load import Rate
from benchmarks.node.payloads import payer_envelopes, topics
from benchmarks.retention.logs import IDENTITY, PUBLISHING_ID
from chainkit.protocol.charges import charge_of
from chainkit.protocol.publish_rules.judgement import PublishRequest
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.store import Store
from chainkit_node.originating.publisher import read_for_originator
from chainkit_node.originating.sequencer import Answer, Sequencer
from chainkit_node.storage.charges import insert_charges
from chainkit_node.types import NewEnvelope

PER_SECOND: Final = 500
_KEY: Final = SigningKey(b"\2" * 32)
_BATCH: Final = 100
_MOST_WAITING: Final = 500
"""The sequencer refuses more than a thousand."""
_SECONDS: Final = 30 * 24 * 60 * 60
_CHARGED_ID: Final = 300


def publish_while(path: Path, goes_on: Callable[[], bool]) -> Rate:
    """Publish PER_SECOND payloads, one by one, while something goes on; time each of them."""
    some = topics(1_000)
    payloads = [_new(read_for_originator(each)) for each in payer_envelopes(some, PUBLISHING_ID)]
    rate, started = Rate(), time.perf_counter()
    with closing(Store.open(str(path), IDENTITY)) as store, closing(_sequencer(store)) as sequencer:
        answers: deque[Answer] = deque()
        while goes_on():
            due = started + rate.count / PER_SECOND
            time.sleep(max(due - time.perf_counter(), 0))
            begun = time.perf_counter()
            answer = sequencer.submit([payloads[rate.count % len(payloads)]])
            answer.add_done_callback(partial(_note, rate, begun))
            answers.append(answer)
            rate.count += 1
            if len(answers) > _MOST_WAITING:
                answers.popleft().result()
        wait(answers)
    rate.seconds = time.perf_counter() - started
    return rate


def _note(rate: Rate, begun: float, answer: Answer) -> None:
    rate.taken.append(time.perf_counter() - begun)


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
