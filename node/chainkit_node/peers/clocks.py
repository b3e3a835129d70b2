"""Asks other nodes for their clocks, as a stranger: a node refuses tokens of a clock that is wrong.

The question is a CompareRanges without ranges. A node that does not know the method, as one of
another make, tells nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from google.protobuf.message import DecodeError

from chainkit.errors import ChainkitError
from chainkit.protocol.methods import COMPARE_RANGES
from chainkit.protocol.proto import node_api_pb2
from chainkit.types import Node
from chainkit_node.peers.client import Peer
from chainkit_node.peers.directory import Listing

ROUND_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 1.0
"""Before a node was heard in this process: the first envelope may be signed soon."""
_ANSWER_SECONDS: Final = 4.0

ReportClock = Callable[[int, int, float], None]
"""Takes a node's id, the node's clock in nanoseconds since 1970, and how long the answer took."""


class PeerClocks:
    """A task on the event loop's thread."""

    def __init__(
        self,
        listing: Callable[[], Listing],
        connect: Callable[[Node], Peer],
        report_clock: ReportClock,
    ) -> None:
        """Take the registry's nodes, and a function that connects to a node without a token."""
        self._listing = listing
        self._connect = connect
        self._report_clock = report_clock
        self._asked: set[int] = set()

    async def run(self) -> None:
        """Ask until it is cancelled: a new node soon, and all nodes once a round."""
        next_round = time.monotonic()
        while True:
            nodes = self._others()
            if time.monotonic() >= next_round:
                next_round = time.monotonic() + ROUND_SECONDS
                self._asked.clear()
            new = [node for node in nodes if node.node_id not in self._asked]
            self._asked.update(node.node_id for node in new)
            await asyncio.gather(*map(self._ask, new))
            await asyncio.sleep(_LOOK_SECONDS)

    def _others(self) -> list[Node]:
        listing = self._listing()
        return [
            node
            for node in listing.nodes.values()
            if node.is_enabled and node.node_id != listing.own_id
        ]

    async def _ask(self, node: Node) -> None:
        question = node_api_pb2.CompareRangesRequest(originator_node_id=node.node_id)
        begun_at = time.monotonic()
        try:
            peer = self._connect(node)
            try:
                answer = await peer.call(
                    COMPARE_RANGES, question.SerializeToString(), _ANSWER_SECONDS
                )
            finally:
                await peer.close()
            now_ns = node_api_pb2.CompareRangesResponse.FromString(answer).now_ns
        except (ChainkitError, DecodeError):
            # The streams report a node that does not answer.
            return
        if now_ns:
            self._report_clock(node.node_id, now_ns, time.monotonic() - begun_at)
