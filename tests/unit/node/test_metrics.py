"""The numbers of a scrape, once readers, payers and the sequencer have done something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

import pytest
from prometheus_client.parser import text_string_to_metric_families

from chainkit.errors import StoreUnavailable
from chainkit.protocol.proto.message_api_pb2 import (
    EnvelopesQuery,
    GetNewestEnvelopeRequest,
    QueryEnvelopesRequest,
    SubscribeEnvelopesRequest,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.refusals import InvalidRequest, NotReady, Overloaded
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.originating.last_refusal import LastRefusal
from chainkit_node.originating.publisher import Conflict
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.publishing import PublishHandler
from chainkit_node.serving.reading import Reader
from chainkit_node.serving.subscribing import Subscriber
from chainkit_node.settings import ServingLimits
from chainkit_node.types import Page, Selection

LIMITS = ServingLimits()
_Read = TypeVar("_Read")
TOPIC = b"\1topic"
ROW = StoredEnvelope(100, 1, 5 * 10**9, TOPIC, None, b"")
QUERY = EnvelopesQuery(topics=[TOPIC])


class Log:
    """A database with one envelope."""

    async def read_page(
        self, selection: Selection, limit: int, most_bytes: int, *, holds_back: bool = False
    ) -> Page:
        return Page([ROW][selection.cursor.get(100, 0) :], is_last=True)

    async def in_thread(self, read: Callable[[], _Read]) -> _Read:
        return read()

    async def newest(self, topics: Sequence[bytes], most_bytes: int) -> dict[bytes, StoredEnvelope]:
        return {TOPIC: ROW}


class Publisher:
    """Stores everything, or refuses it."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    def accept(self, envelopes: Sequence[bytes]) -> Future[Sequence[bytes]]:
        if isinstance(self.error, asyncio.CancelledError):
            return Future()
        if self.error is not None:
            raise self.error
        answer: Future[Sequence[bytes]] = Future()
        answer.set_result(envelopes)
        return answer


async def publish(
    publisher: Publisher,
    metrics: NodeMetrics,
    request: bytes,
    seconds: float | None = None,
    late: float = 0.0,
) -> bytes:
    handover = Handover(asyncio.get_running_loop())
    handler = PublishHandler(publisher, handover, LIMITS, metrics, lambda: late, LastRefusal())
    return await asyncio.wait_for(handler.publish_payer_envelopes(request), seconds)


@pytest.fixture
def metrics() -> NodeMetrics:
    return NodeMetrics()


def samples(metrics: NodeMetrics) -> dict[str, float]:
    """The values that are not zero, without the prefix and the buckets."""
    return {
        " ".join([sample.name.removeprefix("chainkit_node_"), *sample.labels.values()]): (
            sample.value
        )
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.value > 0 and not sample.name.endswith("_bucket")
    }


def test_subscriber__stream_that_falls_behind__counts_it_and_what_it_sent(
    metrics: NodeMetrics,
) -> None:
    hub = Hub()
    subscriber = Subscriber(Log(), hub, LIMITS, metrics)
    request = SubscribeEnvelopesRequest(query=QUERY).SerializeToString()

    async def read() -> None:
        frames = subscriber.subscribe_envelopes(request)
        for _ in range(3):
            await anext(frames)
        assert samples(metrics) == {"streams_open": 1, "envelopes_sent_total SubscribeEnvelopes": 1}
        hub.skip([100])
        await anext(frames)
        await frames.aclose()

    asyncio.run(read())

    found = samples(metrics)
    assert found == {"streams_behind_total": 1, "envelopes_sent_total SubscribeEnvelopes": 1}


def test_reader__answers__counts_envelopes_by_method(metrics: NodeMetrics) -> None:
    reader = Reader(Log(), LIMITS, metrics)
    newest = GetNewestEnvelopeRequest(topics=[TOPIC, b"\1other"])

    asyncio.run(reader.query_envelopes(QueryEnvelopesRequest(query=QUERY).SerializeToString()))
    asyncio.run(reader.newest_envelope(newest.SerializeToString()))

    assert samples(metrics) == {
        "envelopes_sent_total QueryEnvelopes": 1,
        "envelopes_sent_total GetNewestEnvelope": 1,
    }


def test_updates_waiting__one_waits_and_goes_on__is_shown_while_it_waits(
    metrics: NodeMetrics,
) -> None:
    metrics.said_updates_waiting(1)
    assert samples(metrics) == {"updates_waiting": 1}

    metrics.said_updates_waiting(0)
    assert samples(metrics) == {}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InvalidRequest("payload", "a", "b"), "invalid_argument"),
        (Conflict("payload", "a", "b"), "aborted"),
        (NotReady("publish", "a", "b"), "unavailable"),
        (StoreUnavailable("database", "a", "b"), "unavailable"),
        (ValueError(), "internal"),
        (asyncio.CancelledError(), "cancelled"),
    ],
)
def test_publish__refused__counts_the_outcome(
    error: BaseException, outcome: str, metrics: NodeMetrics
) -> None:
    # A caller that goes away is the only one that ends while nothing is answered.
    seconds = 0.05 if outcome == "cancelled" else None
    with pytest.raises((type(error), TimeoutError)):
        asyncio.run(publish(Publisher(error), metrics, b"", seconds))

    assert samples(metrics) == {f"publishes_total {outcome}": 1}


def test_publish__stored__counts_it_and_keeps_how_long_it_took(metrics: NodeMetrics) -> None:
    request = Envelopes(envelopes=[b"a"]).SerializeToString()
    assert asyncio.run(publish(Publisher(), metrics, request)) == request

    found = samples(metrics)
    assert found.pop("publish_seconds_sum") > 0
    assert found == {"publishes_total stored": 1, "publish_seconds_count": 1}


@pytest.mark.parametrize(("now_ns", "seconds"), [(7 * 10**9, 2), (4 * 10**9, 0)])
def test_sequencer__batch_committed__observes_its_size_and_its_time(
    now_ns: int, seconds: int, metrics: NodeMetrics
) -> None:
    metrics.committed([ROW, ROW, ROW], now_ns)

    found = samples(metrics)
    assert found.pop("sequencer_batch_seconds_sum", 0) == seconds
    assert found == {
        "sequencer_batch_envelopes_count": 1,
        "sequencer_batch_envelopes_sum": 3,
        "sequencer_batch_seconds_count": 1,
    }


def test_refusals__of_a_method__are_counted_by_code(metrics: NodeMetrics) -> None:
    metrics.refused("QueryEnvelopes", "INVALID_ARGUMENT")
    metrics.said_ready(True)

    assert samples(metrics) == {"refusals_total INVALID_ARGUMENT QueryEnvelopes": 1, "ready": 1}


def test_publish__node_is_late_itself__is_refused_at_once(metrics: NodeMetrics) -> None:
    with pytest.raises(Overloaded, match="at most 2 s late, got one that is 3"):
        asyncio.run(publish(Publisher(), metrics, b"", late=3.0))

    assert samples(metrics)["publishes_total resource_exhausted"] == 1
