"""A topic that is compared and not applied: all is handed on once, and judged as in any topic."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence

import pytest

from chainkit_client.network import topic_reader
from chainkit_client.network.topic_reader import TopicReader
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.topics.following import Followed, Topic
from chainkit_client.topics.passing import PassingTopic
from support.client.nodes import FakeNode
from support.client.served import KEYS, NODE, NOW_NS, PEER, TOPIC, of_chain
from support.network.originator import Originator

LOG = [NODE.signed(each, each) for each in range(1, 8)]
LATER = [PEER.signed(3, 9, seen={100: 5, 0: 4}), PEER.signed(4, 10, seen={200: 3})]
OTHER = NODE.signed(5, 6)
"""A second envelope for one id."""


def read(topic: Topic, *held: Sequence[bytes]) -> Followed:
    """Two nodes, of which each holds what is given, are asked for the topic."""
    nodes = [FakeNode(each) for each in (NODE, PEER)]
    for node, envelopes in zip(nodes, held, strict=True):
        node.hold(*envelopes)
    reader = TopicReader(topic, lambda: nodes, lambda: KEYS, lambda: NOW_NS, len(nodes))
    found = asyncio.run(reader.read())
    assert reader.silent == {}
    return found


def reasons(found: Followed) -> set[tuple[int, str]]:
    return {(each.node_id, each.reason) for each in found.breaches}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param([*LOG, of_chain(4), *LATER], [*LOG, of_chain(4), *LATER], id="honest"),
        pytest.param([*LOG[:3], *LOG[4:], *LATER], [*LOG, *LATER], id="originator leaves one out"),
        pytest.param([*LOG, *LATER], [*LOG[:2], *LATER], id="one is late"),
        pytest.param([*LOG, *LATER[1:]], [*LOG, *LATER[1:]], id="a place is missing"),
        pytest.param(LOG, [*LOG[:4], OTHER, *LOG[5:]], id="two envelopes for one id"),
    ],
)
def test_read__whatever_nodes_serve__hands_all_on_once_and_accuses_as_a_topic_does(
    monkeypatch: pytest.MonkeyPatch, one: Sequence[bytes], other: Sequence[bytes]
) -> None:
    monkeypatch.setattr(topic_reader, "PAGE", 2)
    handed: list[VerifiedEnvelope] = []
    usual, passing = Topic(TOPIC), PassingTopic(TOPIC, io.BytesIO(), handed.append)

    expected, found = read(usual, one, other), read(passing, one, other)

    every = [each.envelope for each in (*expected.accepted, *expected.second)]
    assert sorted(each.envelope for each in handed) == sorted(every)
    assert (found.accepted, found.second, found.applied) == ([], [], [])
    assert reasons(found) == reasons(expected)
    assert passing.cursor == usual.cursor
    assert passing.missing() == usual.missing()
    assert passing.lacks_of_heads == usual.lacks_of_heads


def test_hold__bytes_that_are_held__are_not_verified_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = PassingTopic(TOPIC, io.BytesIO(), lambda each: None)
    topic.hold(LOG, NODE.node_id, KEYS, NOW_NS)
    stranger = Originator(300).signed(1, 1)

    again = topic.hold([*LOG, b"no envelope", stranger], PEER.node_id, KEYS, NOW_NS)

    # One that does not parse, and one that no registered node signed.
    assert again.refused == 2
    monkeypatch.setattr(topic._reads, "read", None)
    assert topic.hold(LOG, PEER.node_id, KEYS, NOW_NS).refused == 0
