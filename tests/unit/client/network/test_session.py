"""Whole topics that a session reads."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from chainkit_client.network.chain import Chain
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.topic_reader import TopicReader
from chainkit_client.storage.store import Store
from support.client.nodes import FakeNode
from support.client.served import KEYS, NODE, NOW_NS, PEER, TOPIC
from support.client.sync_stage import message


def test_read_topic__a_head_names_what_is_not_served_yet__waits_for_it(store: Store) -> None:
    """An older key package is not used where an honest head names a newer one."""
    chain = Chain(cast(Any, None), cast(Any, None), frozenset({0}))
    session = NetworkSession(chain, cast(Any, None), store)
    one, other = FakeNode(NODE), FakeNode(PEER)
    one.hold(message(NODE, 1), message(NODE, 2))
    one.hidden = {(100, 2)}

    def serve_later() -> None:
        if one.questions == 4:
            one.hidden = set()

    one.meanwhile = serve_later
    cast(Any, session).reader = lambda topic: TopicReader(
        topic, lambda: [one, other], lambda: KEYS, lambda: NOW_NS
    )

    found = asyncio.run(session.read_topic(TOPIC))

    assert [each.sequence_id for each in found] == [1, 2]
