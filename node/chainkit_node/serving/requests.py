"""Requests as they came, taken apart within the limits. Raises InvalidRequest for all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from google.protobuf.message import Message

from chainkit.protocol.proto import envelopes_pb2, message_api_pb2
from chainkit.service.parsing import LARGE_BYTES, parse_request
from chainkit.service.refusals import InvalidRequest
from chainkit_node.asked_by import ASKED_BY, AskedBy
from chainkit_node.settings import ServingLimits
from chainkit_node.types import Selection

_Message = TypeVar("_Message", bound=Message)
_Read = TypeVar("_Read")

LARGEST_ID = 2**63 - 1
"""The largest sequence id that a database column holds."""

MOST_ENTRIES: Final = 12_000
"""Entries of one request, with all within: the topics, the cursor, and fields of later versions."""
MOST_ENTRIES_OF_CURSORS: Final = 200_000
"""Entries of a subscription to topics, each of which has a cursor of its own."""


def parsed(kind: type[_Message], data: bytes, most_entries: int = MOST_ENTRIES) -> _Message:
    """Return a request's message, whose entries are counted before they are parsed."""
    return parse_request(kind, data, most_entries)


async def off_loop(
    data: bytes,
    read: Callable[[bytes], _Read],
    in_thread: Callable[[Callable[[], _Read]], Awaitable[_Read]],
) -> _Read:
    """Read a request, in a thread where it is large; its caller is charged for its parts."""
    asked_by = ASKED_BY.get()
    if len(data) <= LARGE_BYTES or asked_by is None:
        return read(data)
    parts: list[int] = []

    def counted() -> _Read:
        # A thread must not change what the event loop's thread counts.
        token = ASKED_BY.set(AskedBy(asked_by.name, parts.append))
        try:
            return read(data)
        finally:
            ASKED_BY.reset(token)

    try:
        return await in_thread(counted)
    finally:
        asked_by.charge(sum(parts))


def selection(query: message_api_pb2.EnvelopesQuery, limits: ServingLimits) -> Selection:
    """Return what a query selects: by topics or by originators, not both (XIP-49 §3.3.3)."""
    topics, originators = frozenset(query.topics), frozenset(query.originator_node_ids)
    if topics and originators:
        raise InvalidRequest("query", "topics or originator_node_ids", "both")
    if not topics and not originators:
        raise InvalidRequest("query", "topics or originator_node_ids", "neither")
    check_count("query", len(query.topics) + len(query.originator_node_ids), limits.topics)
    check_topics(topics, limits)
    return Selection(topics, originators, cursor(query.last_seen, limits))


def topic_selections(
    request: message_api_pb2.SubscribeTopicsRequest, limits: ServingLimits
) -> list[Selection]:
    """Return what a subscription selects: the topics of one cursor together."""
    check_count("filters", len(request.filters), limits.topics)
    if not request.filters:
        raise InvalidRequest("filters", "at least one topic", "none")
    check_topics((each.topic for each in request.filters), limits)
    topics: defaultdict[tuple[tuple[int, int], ...], set[bytes]] = defaultdict(set)
    for each in request.filters:
        topics[tuple(sorted(cursor(each.last_seen, limits).items()))].add(each.topic)
    return [Selection(frozenset(each), frozenset(), dict(key)) for key, each in topics.items()]


def cursor(message: envelopes_pb2.Cursor, limits: ServingLimits) -> dict[int, int]:
    """Return the sequence ids that a reader has seen, by originator id."""
    seen = message.node_id_to_sequence_id
    check_count("last_seen", len(seen), limits.cursor)
    return {each: min(seen[each], LARGEST_ID) for each in seen}


def check_topics(topics: Iterable[bytes], limits: ServingLimits) -> None:
    """Refuse topics that no envelope can have."""
    for topic in topics:
        if not 0 < len(topic) <= limits.topic_bytes:
            expected = f"1 to {limits.topic_bytes} bytes"
            raise InvalidRequest("topic", expected, f"{len(topic)} bytes")


def check_count(subject: str, count: int, most: int) -> None:
    """Refuse more parts of one request than are answered at a time, and charge its caller."""
    if count > most:
        raise InvalidRequest(subject, f"at most {most}", count)
    if (asked_by := ASKED_BY.get()) is not None:
        asked_by.charge(count)


def topics_of(
    request: message_api_pb2.GetNewestEnvelopeRequest, limits: ServingLimits
) -> Sequence[bytes]:
    """Return the topics whose newest envelopes are asked for, in the request's order."""
    check_count("topics", len(request.topics), limits.topics)
    check_topics(request.topics, limits)
    return tuple(request.topics)
