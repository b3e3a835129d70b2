from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from chainkit.errors import ChainkitError
from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.topic_heads import Chain, TopicHead, sign_topic_head
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference, Node
from chainkit_node.originating.twin import TwinCheck
from chainkit_node.peers.client import PeerSilent
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.own_url import OwnUrl

KEY, STRANGER = SigningKey(bytes(31) + b"\1"), SigningKey(bytes(31) + b"\2")
OWN = Node(200, KEY.public_key, "https://node.example:5051", True)
LISTING = Listing({200: OWN}, 200, BlockReference(1, bytes(32)))

Answer = Callable[[bytes], bytes]


def signed_by(key: SigningKey, topic: bytes | None = None) -> Answer:
    def answer(asked: bytes) -> bytes:
        head = TopicHead(200, topic or asked, 9, Chain())
        response = node_api_pb2.QueryTopicHeadsResponse()
        response.answers.add().head.ParseFromString(sign_topic_head(head, key))
        return response.SerializeToString()

    return answer


def silent(_asked: bytes) -> bytes:
    raise PeerSilent("node 200", "an answer", "none")


def asked_once(answer: Answer, listing: Listing = LISTING, is_itself: bool = False) -> bool:
    """Ask at the URL; return whether a twin was found."""
    twin = TwinCheck(lambda: 200, lambda: 0, lambda: 0.0)

    class Peer:
        async def call(self, _method: str, request: bytes, _seconds: float) -> bytes:
            [query] = node_api_pb2.QueryTopicHeadsRequest.FromString(request).queries
            if is_itself:
                twin.signs_head(query.topic)
            return answer(query.topic)

        async def close(self) -> None:
            pass

    asyncio.run(OwnUrl(lambda: listing, lambda _node: cast(Any, Peer()), twin).ask())
    try:
        twin.check()
    except ChainkitError:
        return True
    return False


def test_ask__another_process_signs_the_answer_with_the_own_key__is_a_twin() -> None:
    assert asked_once(signed_by(KEY))


@pytest.mark.parametrize(
    "answer",
    [signed_by(STRANGER), signed_by(KEY, bytes(33)), silent, lambda _: b"", lambda _: b"\xff"],
)
def test_ask__answer_that_a_stranger_can_give__says_nothing(answer: Answer) -> None:
    assert not asked_once(answer)


def test_ask__this_process_itself_answers__is_no_twin() -> None:
    assert not asked_once(signed_by(KEY), is_itself=True)


def test_ask__not_registered__asks_nobody() -> None:
    assert not asked_once(signed_by(KEY), Listing({}, None, None))
