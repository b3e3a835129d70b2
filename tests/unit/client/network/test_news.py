"""Topics with news: one question each, and no answer is no reason to leave one unread."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from chainkit.nodes.outcomes import NodeLost
from chainkit_client.network.news import topics_with_news
from chainkit_client.network.session import NetworkSession
from chainkit_client.storage.payloads import move_cursor
from chainkit_client.storage.store import Store
from support.client.nodes import FakeNode
from support.client.served import NODE, NOW_NS, PEER, TOPIC
from support.client.sync_stage import message

LOST = NodeLost("node", "an answer", "none")


class Session:
    """Nodes that are asked in this order."""

    def __init__(self, *nodes: FakeNode) -> None:
        self.nodes = nodes

    def nodes_for(self, topic: bytes) -> tuple[FakeNode, ...]:
        return self.nodes


@pytest.mark.parametrize(
    ("read", "second_has", "lost", "has_news"),
    [
        pytest.param(1, 1, 0, False, id="all was read"),
        pytest.param(0, 0, 0, True, id="one has more"),
        pytest.param(1, 2, 0, True, id="the second has more"),
        pytest.param(1, 1, 1, False, id="one is silent"),
        pytest.param(1, 1, 2, True, id="both are silent"),
    ],
)
def test_topics_with_news__what_nodes_have__counts_beyond_what_was_read(
    store: Store, read: int, second_has: int, lost: int, has_news: bool
) -> None:
    nodes = [FakeNode(NODE), FakeNode(PEER)]
    nodes[0].hold(message(NODE, 1))
    nodes[1].hold(*[message(NODE, each) for each in range(1, second_has + 1)])
    for node in nodes[:lost]:
        node.error = LOST
    if read:
        with store.writing() as connection:
            move_cursor(connection, TOPIC, NODE.node_id, read, NOW_NS)
    session = cast(NetworkSession, cast(Any, Session(*nodes)))

    found = asyncio.run(topics_with_news(session, store, [TOPIC]))

    assert found == ([TOPIC] if has_news else [])
    assert all(node.questions <= 1 for node in nodes)
