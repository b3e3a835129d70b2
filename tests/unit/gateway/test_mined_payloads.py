"""A payload that was sent to the chain is waited for, and never answered as not published."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from chainkit.errors import EndpointUnavailable
from chainkit.service.refusals import NotNow, NotReady, Unfinished
from chainkit_gateway import publishing
from chainkit_gateway.publishing import CHAIN_THREADS
from chainkit_gateway.routing import route
from chainkit_gateway.types import Mined, Publication, Published
from support import mls, publishes
from support.gateway.publishing_world import COMMIT, MINED, SECONDS, SENT, WELCOME, World, run


@pytest.mark.conforms("N9")
def test_publish__chain_s_payload_of_another_key__is_not_answered(world: World) -> None:
    world.first.served[b"h" * 32] = world.second.served[b"h" * 32] = b"envelope"
    world.first.signs = False
    assert world.publish(COMMIT) == b"envelope"
    world.second.signs = False

    assert world.publish(COMMIT, SECONDS) == MINED.envelope


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
        run(lambda: world.answer(COMMIT, place_seconds=SECONDS))

    world.chain.failures = world.chain.failures[:1]
    world.first.served[b"h" * 32] = b"envelope"
    assert world.publish(COMMIT) == b"envelope"


def test_publish__deadline_has_passed__begins_nothing(world: World) -> None:
    with pytest.raises(Unfinished, match="payload is under way"):
        run(lambda: world.answer(COMMIT, place_seconds=0))

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
