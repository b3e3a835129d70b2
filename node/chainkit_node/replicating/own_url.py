"""Asks at this node's own URL whether somebody else answers there with this node's key (ADR 65).

The question is a topic head: whoever answers signs it, and only a holder of the key can. Where this
process itself is reached, it has signed the answer. A URL that is not reached from this machine, or
that leads to a stranger, says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError

from chainkit.errors import ChainkitError
from chainkit.protocol.methods import QUERY_TOPIC_HEADS
from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.topic_heads import read_topic_head
from chainkit.types import Node
from chainkit_node.originating.twin import TwinCheck, question_request
from chainkit_node.peers.client import Peer
from chainkit_node.peers.directory import Listing

ROUND_SECONDS: Final = 20.0
_ANSWER_SECONDS: Final = 4.0


class OwnUrl:
    """Used on the event loop's thread."""

    def __init__(
        self,
        listing: Callable[[], Listing],
        connect: Callable[[Node], Peer],
        twin: TwinCheck,
    ) -> None:
        """Take the registry's nodes, and a function that connects with a new token."""
        self._listing = listing
        self._connect = connect
        self._twin = twin

    async def run(self) -> None:
        """Ask until it is cancelled."""
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            await self.ask()

    async def ask(self) -> None:
        """Ask once; say nothing where there is no answer."""
        listing = self._listing()
        if listing.own_id is None:
            return
        own, topic = listing.nodes[listing.own_id], self._twin.question()
        try:
            peer = self._connect(own)
            try:
                answer = await peer.call(
                    QUERY_TOPIC_HEADS, question_request(topic), _ANSWER_SECONDS
                )
            finally:
                await peer.close()
            [head] = node_api_pb2.QueryTopicHeadsResponse.FromString(answer).answers
            found = read_topic_head(head.head.SerializeToString(), own.signing_key)
        except (ChainkitError, DecodeError, ValueError):
            # A node that cannot reach itself, as behind some routers, learns nothing.
            return
        if found.topic == topic:
            self._twin.was_answered(topic)
