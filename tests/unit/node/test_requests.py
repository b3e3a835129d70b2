from __future__ import annotations

import pytest

from chainkit.protocol.proto.message_api_pb2 import EnvelopesQuery, SubscribeTopicsRequest
from chainkit.service.refusals import InvalidRequest
from chainkit_node.serving.requests import parsed, selection, topic_selections
from chainkit_node.settings import ServingLimits
from chainkit_node.types import Selection

LIMITS = ServingLimits(topics=3)


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
