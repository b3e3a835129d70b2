"""Each envelope is published once, whatever becomes of answers, nodes and the gateway itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc
import pytest

from chainkit.nodes.connection import signer_of
from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.protocol.payer_envelope import parse_payer_envelope
from chainkit.protocol.proto.envelopes_pb2 import UnsignedOriginatorEnvelope
from chainkit.service.refusals import InvalidRequest, NotReady, PassedOn
from chainkit_gateway.routing import route
from support import publishes
from support.gateway.fake_nodes import KEY as NODE_KEY
from support.gateway.fake_nodes import of_chain, originated
from support.gateway.publishing_world import AWAY, KEY, NOT_FOR_US, UNREACHED, WELCOME, World, run


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
    def die(answers: Sequence[tuple[bytes, bytes]]) -> None:
        raise KeyboardInterrupt

    world.journal.complete_all = die  # type: ignore[method-assign]
    world.start()
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


@pytest.mark.parametrize("failure", [AWAY, UNREACHED, NOT_FOR_US])
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
