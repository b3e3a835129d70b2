"""A group brought up to date: only what the chain has is applied, whoever serves what."""

from __future__ import annotations

import asyncio

import pytest

from chainkit.errors import ChainError, StoreError
from chainkit.nodes.outcomes import NodeLost
from chainkit_client.breach import Breach
from chainkit_client.mls.engine import EngineFailed
from chainkit_client.network.chain_status import ChainStatus
from chainkit_client.network.topic_reader import NodesSilent
from chainkit_client.storage.evidence import read_envelope_at
from support import mls, publishes
from support.client.served import NODE, PEER, of_chain
from support.client.sync_stage import Stage, commit, message, transaction_of
from support.forms import differing


def test_sync__messages_and_commits__are_applied_once_and_kept(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.one.hold(NODE.signed(2, seen={0: 3}))

    first, later = stage.round(), stage.round()

    assert stage.groups.applied == [(0, 3), (100, 2)]
    assert [len(each.outcomes) for each in (first, later)] == [2, 0]
    with stage.store.reading() as connection:
        assert read_envelope_at(connection, (100, 2)) == NODE.signed(2, seen={0: 3})


def test_sync__strangers_payloads_that_readers_differ_on__are_void_and_all_others_are_applied(
    stage: Stage,
) -> None:
    """Nothing is raised, now or after a restart, and nobody is accused."""
    words = mls.private_message(publishes.GROUP_ID, authenticated_data=b"")
    hostile = differing(publishes.group_message(words, seen={0: 3}))
    stage.session.mine(3, 1)
    last = len(hostile) + 2
    for number, client in enumerate(hostile, 2):
        stage.session.one.hold(NODE.signed(number, number, publishes.paid(client)))
        stage.session.other.hold(of_chain(number + 2, number, client, PEER))
    stage.session.one.hold(message(NODE, last, {0: 3, 100: last - 1}))

    stage.round()
    asyncio.run(stage.again().sync())

    assert len(hostile) > 5
    assert stage.groups.applied == [(0, 3), (100, last)] * 2


def test_sync__begun_again__goes_on_with_what_is_kept_and_what_waits(stage: Stage) -> None:
    stage.session.mine(3, 1)
    waits = message(PEER, 8, {100: 7})
    stage.session.one.hold(message(NODE, 2, {0: 3}), waits)
    stage.round()

    # Nodes hide all of it, but for what was missing.
    for node in (stage.session.one, stage.session.other):
        node.held.clear()
    stage.session.other.hold(message(NODE, 7))
    again = stage.again()
    asyncio.run(again.sync())

    assert stage.groups.applied == [(0, 3), (100, 2), (0, 3), (100, 2), (100, 7), (200, 8)]


def test_sync__served_before_the_endpoint_has_it__waits_for_the_chain(stage: Stage) -> None:
    data = commit(3)
    stage.session.one.hold(data)
    stage.session.one.hold(NODE.signed(2, seen={0: 3}))

    first = stage.round()
    assert (first.waits_for_chain, stage.groups.applied) == (True, [])
    stage.session.mined[transaction_of(data)] = 1
    later = stage.round()

    assert (later.waits_for_chain, stage.groups.applied) == (False, [(0, 3), (100, 2)])


@pytest.mark.parametrize("status", [ChainStatus.ABSENT, ChainStatus.FALSE])
def test_sync__one_node_serves_another_payload_in_its_place__the_chain_decides(
    stage: Stage, status: ChainStatus
) -> None:
    stage.session.mine(3, 1)
    other = commit(3, seconds=5)
    stage.session.one.hold(other)
    if status is ChainStatus.FALSE:
        stage.session.false.add(transaction_of(other))

    stage.round()

    assert stage.groups.applied == [(0, 3)]
    with stage.store.reading() as connection:
        kept = read_envelope_at(connection, (0, 3))
    assert kept == commit(3, server=PEER)


def test_sync__the_second_node_serves_another_payload__is_not_read_again(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.other.hold(commit(3, seconds=5, server=PEER))

    stage.round()
    questions = stage.session.one.questions
    stage.round()

    assert stage.groups.applied == [(0, 3)]
    # It asks for all that is not final, and learns that there is no more.
    assert stage.session.one.questions == questions + 2


def test_sync__engine_fails__all_is_read_and_applied_again(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.groups.failures = 1

    with pytest.raises(EngineFailed):
        stage.round()
    assert stage.groups.applied == []
    stage.round()

    assert stage.groups.applied == [(0, 3)]


def test_sync__chain_is_silent_in_between__the_next_round_looks_up_the_rest(stage: Stage) -> None:
    for number in (3, 4):
        stage.session.mine(number, number, seconds=number)
    stage.session.lookups_until_silent = 1
    with pytest.raises(ChainError):
        stage.round()
    assert stage.groups.applied == []

    stage.session.lookups_until_silent = None
    stage.round()

    assert (stage.groups.applied, stage.session.lookups) == ([(0, 3), (0, 4)], 2)


def test_sync__an_answer_is_not_kept__is_read_and_applied_in_the_next_round(stage: Stage) -> None:
    stage.session.one.hold(message(NODE, 2))
    stage.session.store_error = StoreError("database", "a write", "a lock")
    with pytest.raises(StoreError):
        stage.round()

    stage.session.store_error = None
    stage.round()

    assert stage.groups.applied == [(100, 2)]


def test_sync__database_fails_for_a_while__what_is_kept_is_still_known(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.session.one.hold(NODE.signed(2, seen={0: 3}))
    stage.round()
    # The nodes hide what is kept, and waits; the next answer can neither be kept nor the file read.
    stage.session.one.held.clear()
    stage.session.other.hold(message(NODE, 4))
    stage.session.store_error = StoreError("database", "a write", "a lock")
    with monkeypatch.context() as failing, pytest.raises(StoreError):
        failing.setattr(stage.store, "reading", lambda: stage.session.keep(()))
        stage.round()

    stage.session.store_error = None
    stage.session.mine(3, 1)
    stage.round()

    assert sorted(stage.groups.applied) == [(0, 3), (100, 2), (100, 4)]


def test_sync__no_node_answers__what_was_read_is_not_read_again(stage: Stage) -> None:
    stage.session.one.hold(message(NODE, 2))
    stage.round()
    topic = stage.sync.topic
    for node in (stage.session.one, stage.session.other):
        node.error = NodeLost("node", "an answer", "none")

    with pytest.raises(NodesSilent):
        stage.round()

    assert stage.sync.topic is topic


def test_sync__two_at_once__are_one_after_the_other(stage: Stage) -> None:
    stage.session.mine(3, 1)

    async def both() -> list[int]:
        rounds = await asyncio.gather(stage.sync.sync(), stage.sync.sync())
        return [len(each.outcomes) for each in rounds]

    assert asyncio.run(both()) == [1, 0]
    assert stage.groups.applied == [(0, 3)]


def test_sync__a_node_signed_two_under_one_id__both_are_applied(stage: Stage) -> None:
    one, other = message(NODE, 2), NODE.signed(2, 2.0)
    kept: list[Breach] = []
    stage.session.keep = kept.extend
    stage.session.one.hold(one)
    stage.round()
    stage.session.other.hold(other)
    stage.session.one.hold(other)

    stage.round()

    assert stage.groups.applied == [(100, 2), (100, 2)]
    assert {each.node_id for each in kept} == {100}
