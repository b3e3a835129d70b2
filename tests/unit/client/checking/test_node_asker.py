"""A node that is asked for the ends of its logs while its connection breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from chainkit.nodes.connection import NodeConnection
from chainkit.nodes.outcomes import ConnectionLost
from chainkit_client.checking.node_asker import NodeAnswers, NodeAsker
from chainkit_client.reading.verified import Keys


class RestartedNode:
    """A node that is restarted behind a proxy: the first answer is lost."""

    node_id = 100

    def __init__(self) -> None:
        self.asked = 0

    async def connect(self) -> None:
        """The proxy accepts each connection."""

    async def query(self, request: Any, seconds: float) -> Sequence[bytes]:
        self.asked += 1
        if self.asked == 1:
            raise ConnectionLost("node 100", "an answer", "upstream connect error")
        return []


def test_find_ends__connection_is_lost_once__the_node_is_asked_again_and_not_accused() -> None:
    node, answers = RestartedNode(), NodeAnswers(100)
    asker = NodeAsker(cast(NodeConnection, node), Keys({}), lambda: 0, 10.0)

    asyncio.run(asker.find_ends([100], {}, answers))

    assert node.asked > 1
    assert answers.findings == []
    assert answers.highest == {100: 0}
