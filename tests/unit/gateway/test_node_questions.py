"""Each question of a gateway to its nodes carries a cursor, down to the bytes of the call.

XIP-49 does not say what a subscription without a cursor gets. Some nodes answer it with news alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from chainkit.nodes import connection
from chainkit.nodes.connection import NodeEntry
from chainkit.nodes.pool import Nodes
from chainkit.protocol import methods
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.refusals import NotReady
from chainkit_gateway.fallen import Fallen
from chainkit_gateway.journal import Journal
from chainkit_gateway.publishing import Payer, Publisher
from chainkit_gateway.routing import route
from chainkit_gateway.types import Publication
from support import publishes
from support.gateway.publishing_world import COMMIT, KEY, MINED, WELCOME, FakeChainWay
from support.identity import create, update
from support.inboxes import ALICE, INBOX

UPDATE = route(publishes.written_update(INBOX, update(INBOX, create(ALICE))), "ben")
NODE = 100
FORMER = 62


class Call:
    """An answer of a node without an envelope: a lost publish, an empty page, an ended stream."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __await__(self) -> Any:
        async def answer() -> bytes:
            if self.method == methods.PUBLISH_PAYER_ENVELOPES:
                raise AioRpcError(grpc.StatusCode.UNAVAILABLE, Metadata(), Metadata(), "lost")
            return b""

        return answer().__await__()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await asyncio.sleep(0)
        for _ in ():
            yield b""

    def cancel(self) -> None:
        """End the call, which has ended."""


class Channel:
    """A channel to a node, and the requests that it took, by method."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes]] = []

    def unary_unary(self, method: str) -> Any:
        def call(request: bytes, timeout: float) -> Call:
            self.requests.append((method, request))
            return Call(method)

        return call

    unary_stream = unary_unary


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> Channel:
    made = Channel()

    async def is_connected(*_: object) -> None:
        pass

    monkeypatch.setattr(connection, "connect", lambda *_: made)
    monkeypatch.setattr(connection, "wait_until_connected", is_connected)
    return made


class Account:
    """An account with a commit that fell in a reorg."""

    def fallen(self) -> list[tuple[Publication, int]]:
        return [(COMMIT, FORMER)]

    def send_again(self, publication: Publication) -> None:
        """Send nothing."""


async def ask_everything(journal: Journal) -> None:
    nodes = Nodes({NODE: NodeEntry("http://node.example:80", b"")})
    publisher = Publisher(Payer(KEY, nodes, FakeChainWay(), journal))
    now = asyncio.get_running_loop().time
    for _ in range(2):
        # The first answer is lost; then the envelope is looked for at the node.
        with pytest.raises(NotReady):
            await publisher.place(WELCOME, now() + 10)
    # An update is judged by the earlier ones, and waited for until a node serves it.
    await publisher.place(UPDATE, now() + 0.05)
    await Fallen(Account(), nodes).publish_again()


def test_gateway__each_question_to_a_node__has_a_cursor_on_the_wire(
    channel: Channel, tmp_path: Path
) -> None:
    journal = Journal.open(tmp_path / "journal.db")
    try:
        asyncio.run(ask_everything(journal))
    finally:
        journal.close()

    queries, streams = (
        [each for method, each in channel.requests if method == wanted]
        for wanted in (methods.QUERY_ENVELOPES, methods.SUBSCRIBE_ENVELOPES)
    )
    asked = [message_api_pb2.QueryEnvelopesRequest.FromString(each).query for each in queries]
    waited = [message_api_pb2.SubscribeEnvelopesRequest.FromString(each).query for each in streams]
    assert all(query.HasField("last_seen") for query in (*asked, *waited))
    assert [dict(query.last_seen.node_id_to_sequence_id) for query in asked] == [
        {NODE: 0},
        {},
        {0: FORMER - 1},
    ]
    assert waited
    assert all(
        dict(query.last_seen.node_id_to_sequence_id) == {0: MINED.sequence_id - 1}
        for query in waited
    )
