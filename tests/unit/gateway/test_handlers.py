"""A request of clients: admitted as a whole, or refused as a whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.protocol.proto.payer_api_pb2 import GetNodesResponse, PublishClientEnvelopesRequest
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.grpc_methods import Caller
from chainkit.service.refusals import InvalidRequest, NotNow, Overloaded, Refusal, Unauthenticated
from chainkit_gateway.clients import Clients, RateLimits, Tokens
from chainkit_gateway.handlers import MOST_ENVELOPES, PayerHandlers
from chainkit_gateway.retention import RetentionPolicy
from chainkit_gateway.routing import route
from chainkit_gateway.types import Mined, Publication, Published
from support import mls, publishes
from support.gateway.fake_nodes import FakeNode, FakeNodes
from support.publishes import GROUP_ID

TOKEN = "t" * 16
ANN = Caller("ipv4:10.0.0.1:5", f"Bearer {TOKEN}")
STRANGER = Caller("ipv4:10.0.0.1:5")
WELCOME = publishes.welcome()


class FakePublisher:
    def __init__(self) -> None:
        self.published: list[Publication] = []
        self.steps: list[tuple[str, Publication]] = []
        self.refused: Publication | None = None
        self.seconds = 0.0

    async def place(self, publication: Publication, deadline: float) -> Mined | Published:
        self.published.append(publication)
        self.seconds = deadline - asyncio.get_running_loop().time()
        self.steps.append(("begun", publication))
        if publication == self.refused:
            raise NotNow("contract", "the payload to be taken", "a pause")
        await asyncio.sleep(0)
        self.steps.append(("placed", publication))
        return Published(b"of " + publication.digest)

    async def answer(
        self, publication: Publication, place: Mined | Published, deadline: float
    ) -> Published:
        assert isinstance(place, Published)
        return place


class World:
    def __init__(self, folder: Path, limits: RateLimits) -> None:
        path = folder / "tokens"
        path.write_text(f"ann {TOKEN}\n")
        self.publisher = publisher = FakePublisher()
        clients = Clients(Tokens.read(path), limits, lambda: 0.0)
        self.handlers = PayerHandlers(
            FakeNodes(FakeNode(100)), publisher, clients, RetentionPolicy()
        )

    def publish(
        self, *envelopes: bytes, caller: Caller = ANN, days: int | None = None
    ) -> list[bytes]:
        request = PublishClientEnvelopesRequest(
            envelopes=envelopes, retention_days=days
        ).SerializeToString()
        answer = asyncio.run(self.handlers.publish_client_envelopes(request, caller))
        return list(Envelopes.FromString(answer).envelopes)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, RateLimits(1, 2))


def test_publish__known_client__is_answered_in_order_and_named(world: World) -> None:
    answers = world.publish(WELCOME, publishes.commit())

    assert [each.client for each in world.publisher.published] == ["ann", "ann"]
    assert answers == [b"of " + each.digest for each in world.publisher.published]


def test_publish__payloads_of_one_topic__begin_one_after_the_other(tmp_path: Path) -> None:
    world = World(tmp_path, RateLimits())
    proposal, other = publishes.group_message(mls.private_message(GROUP_ID, mls.PROPOSAL)), WELCOME

    answers = world.publish(proposal, other, publishes.commit())

    steps = [(step, each.client_envelope) for step, each in world.publisher.steps]
    assert steps.index(("placed", proposal)) < steps.index(("begun", publishes.commit()))
    assert steps.index(("begun", other)) < steps.index(("placed", proposal))
    assert answers == [
        b"of " + route(each, "ann").digest for each in (proposal, other, publishes.commit())
    ]


def test_publish__payload_of_a_topic_is_refused__begins_none_after_it(tmp_path: Path) -> None:
    world = World(tmp_path, RateLimits())
    proposal = publishes.group_message(mls.private_message(GROUP_ID, mls.PROPOSAL))
    world.publisher.refused = route(proposal, "ann")

    with pytest.raises(NotNow):
        world.publish(proposal, publishes.commit())

    assert [each.client_envelope for each in world.publisher.published] == [proposal]


@pytest.mark.conforms("T1", "T3")
def test_publish__days_are_named_or_not__are_the_payers_and_none_for_the_chain(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, RateLimits())
    world.publish(WELCOME, publishes.commit(), publishes.group_message())
    world.publish(publishes.group_message(), publishes.commit(), days=7)

    assert [each.retention_days for each in world.publisher.published] == [90, None, 30, 7, None]

    world.publisher.published.clear()
    for days in (0, 31):
        with pytest.raises(InvalidRequest, match="expected 1 to 30 for a group message"):
            world.publish(publishes.commit(), publishes.group_message(), days=days)
    assert world.publisher.published == []


@pytest.mark.parametrize(("named", "seconds"), [(None, 108), (30.0, 27)])
def test_publish__deadline_of_the_caller__leaves_time_for_the_answer(
    world: World, named: float | None, seconds: float
) -> None:
    world.publish(WELCOME, caller=replace(ANN, seconds=named))

    assert world.publisher.seconds == pytest.approx(seconds, abs=1)


@pytest.mark.conforms("N1")
def test_publish__stranger__is_refused_before_anything_is_read(world: World) -> None:
    with pytest.raises(Unauthenticated):
        world.publish(WELCOME, caller=STRANGER)
    with pytest.raises(Unauthenticated):
        asyncio.run(world.handlers.publish_client_envelopes(b"\xff", STRANGER))
    with pytest.raises(Unauthenticated):
        asyncio.run(world.handlers.get_nodes(b"", STRANGER))

    assert world.publisher.published == []


@pytest.mark.conforms("N1")
def test_publish__above_the_rate__publishes_none_of_the_request(world: World) -> None:
    world.publish(WELCOME)

    with pytest.raises(Overloaded, match=r"again in 1.0 s"):
        world.publish(WELCOME, WELCOME)

    assert len(world.publisher.published) == 1


@pytest.mark.parametrize(
    ("envelopes", "words"),
    [
        ([WELCOME, b"\xff"], "ClientEnvelope: .* bytes that are no message"),
        ([b""] * (MOST_ENVELOPES + 1), f"expected at most {MOST_ENVELOPES}"),
    ],
    ids=["one is none", "too many"],
)
def test_publish__one_breaks_a_rule__publishes_none(
    tmp_path: Path, envelopes: list[bytes], words: str
) -> None:
    world = World(tmp_path, RateLimits())

    with pytest.raises(InvalidRequest, match=words):
        world.publish(*envelopes)

    assert world.publisher.published == []


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05abc"])
def test_publish__not_a_request__is_a_typed_refusal(world: World, data: bytes) -> None:
    with pytest.raises(Refusal, match="expected bytes of PublishClientEnvelopesRequest"):
        asyncio.run(world.handlers.publish_client_envelopes(data, ANN))


def test_get_nodes__known_client__names_them(world: World) -> None:
    answer: Any = asyncio.run(world.handlers.get_nodes(b"", ANN))

    assert dict(GetNodesResponse.FromString(answer).nodes) == {100: "http://node-100"}
