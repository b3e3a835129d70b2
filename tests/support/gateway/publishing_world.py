"""A gateway's publisher with nodes and a chain of its own, to be killed and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc

from chainkit.nodes.outcomes import NodeUnreached
from chainkit.nodes.preference import in_order_of_preference
from chainkit.service.refusals import PassedOn
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference
from chainkit_gateway.journal import Journal
from chainkit_gateway.publishing import Payer, Publisher
from chainkit_gateway.routing import route
from chainkit_gateway.types import Mined, Publication, Published, Sent
from support import publishes
from support.gateway.fake_nodes import FakeNode, FakeNodes

WELCOME = route(publishes.welcome(), "ann")
COMMIT = route(publishes.commit(), "ann")
KEY = SigningKey(b"\7" * 32)
MINED = Mined(b"h" * 32, 5, BlockReference(9, bytes(32)), b"place")
SENT = Sent(b"h" * 32, COMMIT.digest, 0, b"raw", 1, gas=1, tip=1, maximum_fee=1)
SECONDS = 0.05
"""Until the deadline of a caller for whom nothing more happens."""
AWAY = PassedOn(grpc.StatusCode.UNAVAILABLE, "chain: expected its latest state, got none")
NOT_FOR_US = PassedOn(grpc.StatusCode.UNAUTHENTICATED, "payer: expected another, got 0x12")
UNREACHED = NodeUnreached("node 100", "a connection", "none")


class FakeChainWay:
    """Mines at once, or fails as told."""

    def __init__(self) -> None:
        self.asked = 0
        self.failures: list[Exception] = []
        self.places = [MINED]
        """The last one stays."""

    def publish(self, publication: Publication) -> Mined:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.places.pop(0) if len(self.places) > 1 else self.places[0]


class World:
    """A gateway that can be killed, and what is around it."""

    def __init__(self, path: Path) -> None:
        ids = in_order_of_preference(WELCOME.topic, (100, 200))
        self.first, self.second = (FakeNode(each) for each in ids)
        self.nodes = FakeNodes(self.first, self.second)
        self.chain = FakeChainWay()
        self.path = path
        self.journal = Journal.open(path)
        self.start()

    def start(self) -> None:
        payer = Payer(KEY, self.nodes, self.chain, self.journal)
        self.publisher = Publisher(payer)

    def restart(self) -> None:
        self.journal.close()
        self.journal = Journal.open(self.path)
        self.start()

    def publish(self, publication: Publication = WELCOME, seconds: float = 10.0) -> bytes:
        return run(lambda: self.answer(publication, seconds)).envelope

    async def answer(
        self, publication: Publication, seconds: float = 10.0, place_seconds: float = 10.0
    ) -> Published:
        """Publish, and wait for a node for this long; the call has a deadline of its own."""
        now = asyncio.get_running_loop().time
        place = await self.publisher.place(publication, now() + place_seconds)
        return await self.publisher.answer(publication, place, now() + seconds)


def run(start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(start())
