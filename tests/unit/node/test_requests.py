from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest
from google.protobuf.message import Message

from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.protocol.proto.message_api_pb2 import (
    EnvelopesQuery,
    QueryEnvelopesRequest,
    SubscribeTopicsRequest,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.parsing import LARGE_BYTES
from chainkit.service.refusals import InvalidRequest
from chainkit_node.asked_by import ASKED_BY, AskedBy
from chainkit_node.serving.api import REQUEST_BYTES
from chainkit_node.serving.requests import off_loop, parsed, selection, topic_selections
from chainkit_node.settings import ServingLimits
from chainkit_node.types import Selection

LIMITS = ServingLimits(topics=3)
SHIPPED = ServingLimits()
_Read = TypeVar("_Read")


@pytest.mark.conforms("N21")
@pytest.mark.parametrize(
    ("topics", "originators", "words"),
    [
        ([b"\1a"], [1], "expected topics or originator_node_ids, got both"),
        ([], [], "expected topics or originator_node_ids, got neither"),
        ([b"\1a"] * 4, [], "expected at most 3, got 4"),
        ([], [1, 2, 3, 4], "expected at most 3, got 4"),
        ([b""], [], "topic: expected 1 to 64 bytes, got 0 bytes"),
    ],
)
def test_selection__not_one_that_can_be_answered__is_refused(
    topics: list[bytes], originators: list[int], words: str
) -> None:
    query = EnvelopesQuery(topics=topics, originator_node_ids=originators)

    with pytest.raises(InvalidRequest, match=words):
        selection(query, LIMITS)


def test_selection__cursor_beyond_what_a_database_counts__is_its_highest() -> None:
    query = EnvelopesQuery(
        topics=[b"\1a"], last_seen={"node_id_to_sequence_id": {0: 2**64 - 1, 100: 7}}
    )

    assert selection(query, LIMITS) == Selection(
        topics=frozenset([b"\1a"]), cursor={0: 2**63 - 1, 100: 7}
    )


def test_selection__cursor_with_more_entries_than_a_registry_has_nodes__is_refused() -> None:
    query = EnvelopesQuery(
        topics=[b"\1a"], last_seen={"node_id_to_sequence_id": dict.fromkeys(range(1001), 0)}
    )
    request = SubscribeTopicsRequest()
    request.filters.add(topic=b"\1a", last_seen=query.last_seen)

    for refused in (lambda: selection(query, LIMITS), lambda: topic_selections(request, LIMITS)):
        with pytest.raises(InvalidRequest, match="last_seen: expected at most 1000, got 1001"):
            refused()


def test_topic_selections__topics_of_one_cursor__go_together() -> None:
    request = SubscribeTopicsRequest()
    for topic, last in ((b"\1a", 5), (b"\1b", 7), (b"\1c", 5)):
        request.filters.add(topic=topic).last_seen.node_id_to_sequence_id[100] = last

    found = topic_selections(request, LIMITS)

    assert found == [
        Selection(topics=frozenset([b"\1a", b"\1c"]), cursor={100: 5}),
        Selection(topics=frozenset([b"\1b"]), cursor={100: 7}),
    ]


def test_topic_selections__none_or_too_many__is_refused() -> None:
    request = SubscribeTopicsRequest()
    with pytest.raises(InvalidRequest, match="expected at least one topic"):
        topic_selections(request, LIMITS)

    for _ in range(4):
        request.filters.add(topic=b"\1a")
    with pytest.raises(InvalidRequest, match="expected at most 3, got 4"):
        topic_selections(request, LIMITS)


def test_parsed__other_bytes__names_the_message() -> None:
    with pytest.raises(InvalidRequest, match="request: expected bytes of EnvelopesQuery"):
        parsed(EnvelopesQuery, b"\xff")


def largest_query() -> EnvelopesQuery:
    topics = [each.to_bytes(SHIPPED.topic_bytes, "big") for each in range(SHIPPED.topics)]
    ids = dict.fromkeys(range(2**32 - SHIPPED.cursor, 2**32), 2**64 - 1)
    return EnvelopesQuery(topics=topics, last_seen={"node_id_to_sequence_id": ids})


def test_parsed__as_many_topics_and_entries_as_are_answered__is_read() -> None:
    data = QueryEnvelopesRequest(query=largest_query()).SerializeToString()
    filters = [{"topic": each} for each in largest_query().topics]
    topics = SubscribeTopicsRequest(filters=filters).SerializeToString()  # type: ignore[arg-type]

    assert LARGE_BYTES < len(data) < REQUEST_BYTES["QueryEnvelopes"]
    found = selection(parsed(QueryEnvelopesRequest, data).query, SHIPPED)
    assert (len(found.topics), len(found.cursor)) == (SHIPPED.topics, SHIPPED.cursor)
    assert len(topic_selections(parsed(SubscribeTopicsRequest, topics), SHIPPED)) == 1


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (EnvelopesQuery, b"\x0a\0" * 500_000),
        (EnvelopesQuery, b"\x1a\x80\x80\x3c" + b"\x0a\x04\x08\x01\x10\x01" * 163_840),
        (EnvelopesQuery, b"\xfa\x3f\0" * 300_000),
        (Envelopes, b"\x0a\0" * (MOST_MESSAGE_BYTES // 2)),
    ],
    ids=["topics", "cursor", "unknown fields", "payloads"],
)
def test_parsed__more_entries_than_anybody_needs__is_refused_before_it_is_parsed(
    kind: type[Message], data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "FromString", None)

    with pytest.raises(InvalidRequest, match="entries of the request: expected at most 12000"):
        parsed(kind, data)


def test_parsed__large_and_read_differently_by_two_readers__is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"EnvelopesQuery\.topics: .*another wire type"):
        parsed(EnvelopesQuery, b"\x08\x01" * LARGE_BYTES)


@pytest.mark.parametrize("count", [10, 9000])
def test_off_loop__large_request__is_read_in_a_thread_and_charged_on_the_loop(count: int) -> None:
    topics = [each.to_bytes(33, "big") for each in range(count)]
    data = EnvelopesQuery(topics=topics).SerializeToString()
    threads: list[int] = []
    charged: list[tuple[int, int]] = []

    def read(given: bytes) -> int:
        threads.append(threading.get_ident())
        return len(selection(parsed(EnvelopesQuery, given), SHIPPED).topics)

    async def in_thread(work: Callable[[], _Read]) -> _Read:
        return await asyncio.to_thread(work)

    async def story() -> int:
        ASKED_BY.set(AskedBy("ann", lambda parts: charged.append((parts, threading.get_ident()))))
        return await off_loop(data, read, in_thread)

    assert asyncio.run(story()) == count
    own = threading.get_ident()
    assert (threads == [own]) == (len(data) <= LARGE_BYTES)
    assert sum(parts for parts, _ in charged) == count
    assert {thread for _, thread in charged} == {own}
