"""Each envelope is published once, whatever becomes of answers, nodes and the gateway itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from chainkit.errors import EndpointUnavailable
from chainkit.nodes.connection import signer_of
from chainkit.nodes.outcomes import NodeUnreached
from chainkit.nodes.preference import in_order_of_preference
from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.protocol.payer_envelope import parse_payer_envelope
from chainkit.protocol.proto.envelopes_pb2 import UnsignedOriginatorEnvelope
from chainkit.service.refusals import InvalidRequest, NotNow, NotReady, PassedOn, Unfinished
from chainkit.signatures import SigningKey
from chainkit.types import BlockReference
from chainkit_gateway import publishing
from chainkit_gateway.journal import Journal
from chainkit_gateway.publishing import CHAIN_THREADS, Payer, Publisher
from chainkit_gateway.routing import route
from chainkit_gateway.types import Mined, Publication, Published, Sent
from support import mls, publishes
from support.gateway.fake_nodes import KEY as NODE_KEY
from support.gateway.fake_nodes import FakeNode, FakeNodes, of_chain, originated

WELCOME = route(publishes.welcome(), "ann")
COMMIT = route(publishes.commit(), "ann")
KEY = SigningKey(b"\7" * 32)
MINED = Mined(b"h" * 32, 5, BlockReference(9, bytes(32)), b"place")
SENT = Sent(b"h" * 32, COMMIT.digest, 0, b"raw", 1, gas=1, tip=1, maximum_fee=1)
SECONDS = 0.05
"""Until the deadline of a caller for whom nothing more happens."""
AWAY = PassedOn(grpc.StatusCode.UNAVAILABLE, "chain: expected its latest state, got none")
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

    async def answer(self, publication: Publication, seconds: float = 10.0) -> Published:
        deadline = asyncio.get_running_loop().time() + seconds
        place = await self.publisher.place(publication, deadline)
        return await self.publisher.answer(publication, place, deadline)


def run(start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(start())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "gateway.db")
    yield made
    made.journal.close()


def test_publish__same_bytes_at_once__are_stored_once(world: World) -> None:
    async def at_once() -> list[bytes]:
        answers = await asyncio.gather(*(world.answer(WELCOME) for _ in range(4)))
        return [each.envelope for each in answers]

    assert run(at_once) == world.first.stored * 4
    assert len(world.first.asked) == 1


def test_publish__identity_update_that_breaks_a_rule__costs_nothing(world: World) -> None:
    update = route(publishes.identity_update(), "ann")

    with pytest.raises(InvalidRequest, match="no action"):
        world.publish(update)

    assert world.chain.asked == 0
    assert world.journal.find(update.digest) is None


def test_publish__after_an_answer__gives_it_again(world: World) -> None:
    answer = world.publish()
    world.restart()

    assert world.publish() == answer
    assert world.first.stored == [answer]
    assert world.second.asked == []


def test_publish__first_node__is_signed_for_it(world: World) -> None:
    world.publish()

    parsed = parse_payer_envelope(world.first.asked[0])
    assert parsed.target_originator == world.first.node_id
    assert parsed.client_envelope == WELCOME.client_envelope


@pytest.mark.parametrize("is_killed", [False, True])
def test_publish__answer_was_lost__finds_what_the_node_stored(
    world: World, is_killed: bool
) -> None:
    # Others' envelopes fill the first pages of the topic, and the chain's are among them.
    world.first.others = [of_chain(number) for number in (1, 2, 3)]
    world.first.others += [originated(300, number, b"payer") for number in (1, 2)]
    world.first.loses_answers = True
    with pytest.raises(NotReady, match="send the same bytes again"):
        world.publish()
    world.first.loses_answers = False
    if is_killed:
        world.restart()

    answer = world.publish()

    assert world.first.stored == [answer]
    assert world.second.stored == []
    assert len(world.first.asked) == 1


@pytest.mark.conforms("N9", "C5")
def test_publish__envelope_of_another_key__is_not_answered_and_another_node_is_asked(
    world: World,
) -> None:
    world.first.signs = False
    with pytest.raises(NotReady, match="the registered key did not sign"):
        world.publish()

    answer = world.publish()

    assert world.second.stored == [answer]


@pytest.mark.conforms("N9")
def test_publish__chain_s_payload_of_another_key__is_not_answered(world: World) -> None:
    world.first.served[b"h" * 32] = world.second.served[b"h" * 32] = b"envelope"
    world.first.signs = False
    assert world.publish(COMMIT) == b"envelope"
    world.second.signs = False

    assert world.publish(COMMIT, SECONDS) == MINED.envelope


@pytest.mark.conforms("N9")
def test_signer_of__envelopes_of_both_kinds__is_the_key_that_signed() -> None:
    own = originated(100, 1, b"payer")
    unsigned = UnsignedOriginatorEnvelope(originator_sequence_id=5).SerializeToString()
    chain = sign_originator_envelope(unsigned, b"h" * 32, KEY)

    assert signer_of(own) == NODE_KEY.public_key
    assert signer_of(chain) == KEY.public_key
    for broken in (b"", own[:-1], chain[:-70], b"\0" * 99):
        assert signer_of(broken) not in (KEY.public_key, NODE_KEY.public_key)
    for envelope in (own, chain):
        for place in range(len(envelope)):
            changed = bytearray(envelope)
            changed[place] ^= 1
            assert signer_of(bytes(changed)) not in (KEY.public_key, NODE_KEY.public_key)


def test_publish__gateway_killed_before_it_wrote_the_answer__finds_it(world: World) -> None:
    def die(digest: bytes, envelope: bytes) -> None:
        raise KeyboardInterrupt

    world.journal.complete = die  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        world.publish()
    world.restart()

    answer = world.publish()

    assert world.first.stored == [answer]


def test_publish__answer_was_lost_and_nothing_stored__asks_the_next_node(world: World) -> None:
    world.first.loses_answers = True
    with pytest.raises(NotReady):
        world.publish()
    world.first.stored.clear()

    answer = world.publish()

    assert world.second.stored == [answer]


@pytest.mark.parametrize("failure", [AWAY, UNREACHED])
def test_publish__node_that_has_the_answer_is_away__waits_for_it(
    world: World, failure: Exception
) -> None:
    world.first.loses_answers = True
    with pytest.raises(NotReady):
        world.publish()
    world.first.query_failures = [failure]

    with pytest.raises(NotReady, match="send the same bytes again"):
        world.publish()

    assert world.second.stored == []


@pytest.mark.parametrize("failure", [AWAY, UNREACHED])
def test_publish__first_node_stored_nothing__goes_to_the_next(
    world: World, failure: Exception
) -> None:
    world.first.failures = [failure]

    answer = world.publish()

    assert world.second.stored == [answer]
    begun = world.journal.find(WELCOME.digest)
    assert begun is not None
    assert begun.node_id == world.second.node_id


def test_publish__all_nodes_away__says_what_the_last_said(world: World) -> None:
    world.first.failures, world.second.failures = [UNREACHED], [AWAY]

    with pytest.raises(NotReady, match="got chain: expected its latest state, got none"):
        world.publish()

    assert world.journal.find(WELCOME.digest) is None


def test_publish__node_refuses__passes_its_refusal_on_and_asks_nobody_else(world: World) -> None:
    refusal = PassedOn(grpc.StatusCode.ABORTED, "behind", b"status")
    world.first.failures = [refusal]

    with pytest.raises(PassedOn) as caught:
        world.publish()

    assert caught.value is refusal
    assert world.second.asked == []
    assert world.journal.find(WELCOME.digest) is None


def test_publish__node_that_answers_with_another_payload__is_not_believed(world: World) -> None:
    world.publish(route(publishes.key_package(), "ann"))
    other = world.first.stored + world.second.stored

    async def publish(payer_envelope: bytes, seconds: float) -> bytes:
        return other[0]

    world.first.publish = publish  # type: ignore[method-assign]

    with pytest.raises(NotReady, match="expected the envelope of what it was sent"):
        world.publish()


def test_publish__caller_hangs_up__goes_on(world: World) -> None:
    async def hang_up() -> bytes:
        first = asyncio.create_task(world.answer(WELCOME))
        await asyncio.sleep(0)
        first.cancel()
        return (await world.answer(WELCOME)).envelope

    assert run(hang_up) == world.first.stored[0]
    assert len(world.first.stored) == 1


def test_publish__commit__is_answered_by_the_first_node_that_serves_it(world: World) -> None:
    world.second.served = {b"h" * 32: b"envelope"}

    assert world.publish(COMMIT) == b"envelope"
    assert world.first.asked == world.second.asked == []


def test_publish__commit_that_no_node_serves__is_answered_with_its_place(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    answer = run(lambda: world.answer(COMMIT, SECONDS))

    assert answer == Published(MINED.envelope, is_served=False)
    assert "published by transaction 0x6868" in caplog.text
    assert "block 9" in caplog.text
    world.first.served[b"h" * 32] = b"envelope"
    assert world.publish(COMMIT) == b"envelope"


def test_publish__node_serves_a_commit_late__answers_as_soon_as_it_does(world: World) -> None:
    async def serve_late() -> Published:
        answer = asyncio.create_task(world.answer(COMMIT))
        await world.second.was_asked.wait()
        world.second.served[b"h" * 32] = b"envelope"
        return await answer

    assert run(serve_late) == Published(b"envelope")


def test_publish__node_removed_from_the_registry__is_not_waited_for(world: World) -> None:
    async def remove() -> Published:
        answer = asyncio.create_task(world.answer(COMMIT))
        await world.first.was_asked.wait()
        del world.nodes.nodes[world.first.node_id]
        world.second.served[b"h" * 32] = b"envelope"
        return await answer

    assert run(remove) == Published(b"envelope")


def test_publish__one_node_stalls__is_waited_for_once_and_not_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "NODE_SECONDS", SECONDS)
    world.first.stalls = True
    publish = world.chain.publish

    def serve_from_the_second_time(publication: Publication) -> Mined:
        if world.chain.asked == 1:
            monkeypatch.setattr(publishing, "NODE_SECONDS", 3600)
            world.second.served[b"h" * 32] = b"envelope"
        return publish(publication)

    world.chain.publish = serve_from_the_second_time  # type: ignore[method-assign]

    answer = run(lambda: asyncio.wait_for(world.answer(COMMIT, 7200), 30))

    assert answer == Published(b"envelope")


def test_publish__no_node_at_all__is_answered_with_its_place(world: World) -> None:
    world.nodes.nodes.clear()

    assert world.publish(COMMIT, SECONDS) == MINED.envelope


def test_publish__reorg_moves_a_commit_that_no_node_serves__is_found_at_its_new_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "NODE_SECONDS", SECONDS)
    moved = replace(MINED, transaction_hash=b"m" * 32, sequence_id=4)
    world.chain.places = [MINED, moved]
    world.first.served[moved.transaction_hash] = b"envelope"

    assert world.publish(COMMIT) == b"envelope"


def test_publish__identity_update_in_a_block__has_its_place_once_a_node_serves_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def permit(*_: object) -> None:
        """The update breaks a rule that is not tested here."""

    monkeypatch.setattr(publishing, "check_update", permit)
    update = route(publishes.identity_update(), "ann")

    async def place() -> Mined | Published:
        deadline = asyncio.get_running_loop().time() + 10
        return await world.publisher.place(update, deadline)

    world.first.served[b"h" * 32] = b"envelope"
    assert run(place) == Published(b"envelope")


def test_publish__transaction_sent_and_chain_silent__is_under_way_and_not_refused(
    world: World,
) -> None:
    world.journal.add_transaction(COMMIT, SENT)
    world.chain.failures = [EndpointUnavailable("chain", "an answer", "none")] * 3

    with pytest.raises(Unfinished, match="payload was sent and is not mined so far"):
        world.publish(COMMIT, SECONDS)

    world.chain.failures = world.chain.failures[:1]
    world.first.served[b"h" * 32] = b"envelope"
    assert world.publish(COMMIT) == b"envelope"


def test_publish__deadline_has_passed__begins_nothing(world: World) -> None:
    with pytest.raises(Unfinished, match="payload is under way"):
        world.publish(COMMIT, 0)

    assert world.chain.asked == 0


def test_publish__chain_refuses__is_not_told_to_try_for_ever(world: World) -> None:
    world.chain.failures = [NotNow("GroupMessages", "the payload to be taken", "EnforcedPause()")]

    with pytest.raises(NotNow, match="EnforcedPause"):
        world.publish(COMMIT)


def test_publish__chain_does_not_answer__is_told_to_try_again(world: World) -> None:
    world.chain.failures = [EndpointUnavailable("chain", "an answer", "none")]

    with pytest.raises(NotReady, match="chain: expected the payload in a block"):
        world.publish(COMMIT)


def test_publish__many_commits_wait_for_the_chain__holds_up_nothing_else(world: World) -> None:
    mined = threading.Event()

    def wait(publication: Publication) -> Mined:
        assert mined.wait(10)
        return MINED

    async def publish() -> list[bytes]:
        ids = [number.to_bytes(16, "big") for number in range(CHAIN_THREADS)]
        envelopes = [publishes.group_message(mls.private_message(i, mls.COMMIT), i) for i in ids]
        commits = [asyncio.create_task(world.answer(route(each, "ann"))) for each in envelopes]
        await asyncio.sleep(0.05)
        try:
            await asyncio.wait_for(world.answer(WELCOME), 5)
            assert not any(each.done() for each in commits)
        finally:
            mined.set()
        return [each.envelope for each in await asyncio.gather(*commits)]

    world.chain.publish = wait  # type: ignore[method-assign]
    world.first.served = {b"h" * 32: b"envelope"}

    assert run(publish) == [b"envelope"] * CHAIN_THREADS
    assert len(world.first.stored) == 1
