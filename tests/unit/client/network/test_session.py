"""Envelopes that a session takes from evidence."""

from __future__ import annotations

from typing import Any, cast

from chainkit.types import TopicKind
from chainkit_client.network.chain import Chain
from chainkit_client.network.session import NetworkSession
from chainkit_client.topics.following import Topic
from support import publishes
from support.client.served import KEYS, NODE, NOW_NS

INSTALLATION = publishes.INSTALLATION_KEY


def test_disputed__two_welcomes_under_one_id__are_both_there_to_be_tried() -> None:
    chain = Chain(cast(Any, None), cast(Any, None), frozenset({0}))
    session = NetworkSession(chain, cast(Any, None), cast(Any, None))
    session._keys = KEYS
    topic = Topic(TopicKind.WELCOME.topic(INSTALLATION))
    both = [
        NODE.signed(1, seconds, publishes.paid(publishes.welcome(data=data)))
        for seconds, data in enumerate((b"false", b"true"))
    ]

    found = topic.hold(both, NODE.node_id, KEYS, NOW_NS)

    disputed = session.disputed(found.breaches, topic.topic)
    assert {each.envelope for each in disputed} == set(both)
    assert session.disputed(found.breaches, b"\1another") == []
