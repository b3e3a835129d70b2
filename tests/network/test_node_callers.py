"""Other nodes before a node's gate: limits of their own, and an end when the registry says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import grpc
import pytest

from chainkit.service.node_token import TokenFault
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference, Node
from chainkit_node.peers.connections import PeerConnection
from chainkit_node.peers.directory import Listing
from chainkit_node.peers.tokens import PeerTokens
from chainkit_node.settings import NodeLimits, StrangerLimits

from .test_node_limits import REFLECTION, SECONDS, Metadata, Served, path, refused, serving

OWN_ID, PEER_ID, OTHER_ID = 100, 200, 300
KEYS = {each: SigningKey(bytes([each // 100]) * 32) for each in (OWN_ID, PEER_ID, OTHER_ID)}
NOW = 1_800_000_000.0
ONE_OF_ALL = StrangerLimits(requests_per_second=1, request_burst=1)

Story = Callable[[Served], Coroutine[Any, Any, None]]


def listing() -> Listing:
    nodes = {each: Node(each, key.public_key, "", True) for each, key in KEYS.items()}
    return Listing(nodes, OWN_ID, BlockReference(1, bytes(32)))


def disable(served: Served, node_id: int) -> None:
    nodes = dict(served.listing.nodes)
    nodes[node_id] = replace(nodes[node_id], is_enabled=False)
    served.listing = replace(served.listing, nodes=nodes)


def tokens(node_id: int = PEER_ID) -> PeerTokens:
    return PeerTokens(lambda: node_id, KEYS[node_id], lambda: NOW)


def shown(node_id: int = PEER_ID) -> Metadata:
    return tokens(node_id).metadata(OWN_ID)


def among_nodes(
    story: Story, nodes: NodeLimits | None = None, strangers: StrangerLimits | None = None
) -> None:
    async def listed(served: Served) -> None:
        served.listing, served.now = listing(), NOW
        await story(served)

    # Buckets never fill again.
    serving(strangers or StrangerLimits(), listed, lambda: 0, nodes)


async def unauthenticated(call: Any) -> str:
    """Return the words of a refusal because of a token."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    return str(caught.value.details())


@pytest.mark.conforms("N42")
def test_nodes__strangers_at_their_limits__have_room_at_the_same_address() -> None:
    limits = StrangerLimits(request_burst=1, requests_per_second=1, calls=1, streams=1)

    async def story(served: Served) -> None:
        stream = served.stream()
        assert await stream.read() == b""
        await refused(served.unary("Echo"))
        streams = [served.stream(metadata=shown()) for _ in range(3)]
        assert [await each.read() for each in streams] == [b""] * 3
        for _ in range(3):
            assert await served.unary("Echo", b"a", shown()) == b"a"

    among_nodes(story, strangers=limits)


@pytest.mark.conforms("N42")
def test_nodes__one_at_its_limits__leaves_room_for_others_and_strangers() -> None:
    limits = NodeLimits(requests_per_second=1, request_burst=3, streams_of_one=2, streams=3)

    async def story(served: Served) -> None:
        streams = [served.stream(metadata=shown()) for _ in range(2)]
        assert [await each.read() for each in streams] == [b""] * 2
        words = await refused(served.stream(metadata=shown()).read())
        assert "open streams: expected at most 2 from one node, got more" in words
        words = await refused(served.unary("Echo", metadata=shown()))
        assert "at most 1 a second from one node" in words
        other = served.stream(metadata=shown(OTHER_ID))
        assert await other.read() == b""
        words = await refused(served.stream(metadata=shown(OTHER_ID)).read())
        assert "open streams: expected at most 3 in all" in words
        assert await served.stream().read() == b""
        assert await served.unary("Echo", b"a") == b"a"

    among_nodes(story, limits)


@pytest.mark.conforms("N42")
def test_nodes__calls_of_strangers_all_taken__are_answered() -> None:
    async def story(served: Served) -> None:
        waiting = [asyncio.ensure_future(served.unary("Wait", b"a")) for _ in range(2)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert "calls at a time: expected at most 1 in all" in await refused(done.pop())
        assert await served.unary("Echo", b"a", shown()) == b"a"
        served.waits.set()
        await asyncio.gather(*waiting, return_exceptions=True)

    among_nodes(story, strangers=StrangerLimits(calls=1))


def test_nodes__token_that_is_refused__is_told_typed_and_counted() -> None:
    async def story(served: Served) -> None:
        for_another = tokens().metadata(OTHER_ID)
        words = await unauthenticated(served.unary("Echo", metadata=for_another))
        assert words == "token: expected a token for node 100, got one for another"
        await unauthenticated(served.stream(metadata=for_another).read())
        assert served.refused_tokens == {TokenFault.WRONG_AUDIENCE: 2}
        assert served.refusals == {(each, "UNAUTHENTICATED"): 1 for each in ("Echo", "Stream")}

    among_nodes(story)


@pytest.mark.conforms("N37")
def test_nodes__disabled_while_a_stream_is_open__get_no_further_frame() -> None:
    async def story(served: Served) -> None:
        streams = [served.stream(metadata=shown(each)) for each in (PEER_ID, OTHER_ID)]
        assert [await each.read() for each in streams] == [b""] * 2
        disable(served, PEER_ID)
        served.waits.set()

        words = await unauthenticated(streams[0].read())

        assert words == ("token: expected a node that is enabled, got node 200, which is disabled")
        assert [await streams[1].read() for _ in range(2)] == [b""] * 2
        await unauthenticated(served.unary("Echo", metadata=shown()))

    among_nodes(story)


@pytest.mark.conforms("N37")
def test_nodes__disabled_while_they_ask_on_one_stream__get_no_further_answer() -> None:
    async def story(served: Served) -> None:
        call = served.channel.stream_stream(REFLECTION)(timeout=SECONDS, metadata=shown())
        await call.write(b"")
        assert await call.read()
        disable(served, PEER_ID)
        await call.write(b"")

        assert "which is disabled" in await unauthenticated(call.read())

    among_nodes(story)


@pytest.mark.conforms("N41")
def test_connection__to_a_peer__shows_a_new_token_in_time() -> None:
    async def story(served: Served) -> None:
        client = PeerTokens(lambda: PEER_ID, KEYS[PEER_ID], lambda: served.now)
        url = f"http://127.0.0.1:{served.port}"
        peer = PeerConnection(replace(served.listing.nodes[OWN_ID], http_address=url), client)
        for _ in range(6):
            assert await peer.unary(path("Echo"), b"a", SECONDS) == b"a"
            stream = peer.stream(path("Stream"), b"b", SECONDS)
            assert [frame async for frame in stream] == [b"b"] * 3
            served.now += 1000
        await peer.close()
        # As strangers they would have been refused at the second request.
        assert not served.refusals

    among_nodes(story, strangers=ONE_OF_ALL)
