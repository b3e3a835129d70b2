"""A group brought up to date while the chain changes, and while other processes do the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from chainkit.errors import ChainError
from support.client.served import KEYS, NODE, PEER
from support.client.sync_stage import Stage, commit, transaction_of


def test_sync__reorg_takes_a_commit_back__the_group_goes_back_before_it(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=1)
    stage.round()

    stage.session.mined = {transaction_of(commit(3, server=each)): 1 for each in (NODE, PEER)}
    stage.session.mine(4, 3, seconds=9)
    found = stage.round()

    assert (found.reorgs, stage.groups.retracted) == (1, [3])
    assert stage.groups.applied == [(0, 3), (0, 4), (0, 3), (0, 4)]


def test_sync__reorg_moves_a_block__nothing_is_taken_back(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.round()
    stage.session.mine(3, 7)

    assert (stage.round().reorgs, stage.groups.retracted) == (0, [])


def test_sync__block_is_final__the_group_forgets_and_it_is_looked_up_no_more(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=1)
    stage.session.chain.final_number = 1

    stage.round()
    lookups = stage.session.lookups
    stage.round()

    assert stage.groups.finalized == [3]
    # Its block is still there: so is the payload.
    assert stage.session.lookups == lookups


def test_sync__begun_again__what_is_final_and_applied_is_looked_up_no_more(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=1)
    stage.session.chain.final_number = 1
    stage.round()
    before = stage.session.lookups

    asyncio.run(stage.again().sync())

    # The commit that is not final.
    assert stage.session.lookups == before + 1
    assert stage.groups.applied == [(0, 3), (0, 4)] * 2


def test_sync__begun_again__another_payload_below_the_final_one_is_looked_up(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.chain.final_number = 1
    stage.round()
    del stage.groups.held[0, 3]
    before = stage.session.lookups

    asyncio.run(stage.again().sync())

    assert stage.session.lookups > before
    assert stage.groups.applied == [(0, 3)] * 2


def test_sync__reorg_before_the_block_is_final__it_is_taken_back_and_not_final(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)

    def reorg() -> None:
        stage.session.mined.clear()
        stage.session.mine(3, 2, seconds=9)
        stage.session.chain.final_number = 1

    stage.session.chain.meanwhile = reorg
    stage.round()
    assert stage.groups.finalized == []
    stage.session.chain.meanwhile = lambda: None
    stage.round()

    assert (stage.groups.applied, stage.groups.retracted) == ([(0, 3), (0, 3)], [2])
    assert stage.groups.finalized == []


def test_sync__another_process_went_back__nothing_is_final_until_it_is_applied_again(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)

    def go_back() -> None:
        stage.groups.held.clear()
        stage.session.chain.final_number = 1

    stage.session.chain.meanwhile = go_back
    stage.round()
    assert stage.groups.finalized == []
    stage.session.chain.meanwhile = lambda: None
    stage.round()

    assert (stage.groups.applied, stage.groups.finalized) == ([(0, 3), (0, 3)], [3])


def test_sync__commit_is_left_out_between_others__its_successors_are_applied_again(
    stage: Stage,
) -> None:
    for number in (3, 4):
        stage.session.mine(number, number, seconds=number)
    for node in (stage.session.one, stage.session.other):
        node.hidden = {(0, 3)}
    stage.round()
    assert stage.groups.applied == [(0, 4)]

    stage.session.other.hidden = set()
    stage.round()

    assert stage.groups.applied == [(0, 4), (0, 3), (0, 3), (0, 4)]
    assert sorted(stage.groups.held) == [(0, 3), (0, 4)]


def test_sync__a_place_is_doubted__what_a_reorg_put_there_is_read(stage: Stage) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=6)
    late = commit(3, seconds=5)
    stage.session.one.hold(late)
    stage.session.other.hidden = {(0, 3)}
    stage.round()

    stage.session.one.hold(commit(3))
    stage.session.mined[transaction_of(commit(3))] = 1
    stage.round()

    assert sorted(stage.groups.held) == [(0, 3), (0, 4)]
    assert stage.groups.applied[-2:] == [(0, 3), (0, 4)]


def test_sync__another_process_took_it_back_before__the_group_stays_where_it_is(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)
    stage.round()
    stage.session.mined.clear()
    stage.session.mine(3, 2, seconds=9)
    asyncio.run(stage.again().sync())

    stage.round()

    assert (stage.groups.applied, stage.groups.retracted) == ([(0, 3)] * 3, [])


def test_sync__another_process_applied_what_is_gone__the_right_one_is_applied_again(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)
    stage.round()
    right = stage.groups.held[0, 3]
    stage.groups.held[0, 3] = replace(right, originator_ns=1)

    stage.round()

    assert stage.groups.held[0, 3] == right


def test_sync__chain_is_silent_while_it_took_two_back__the_next_round_goes_back(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=1)
    stage.round()
    stage.session.mined.clear()
    stage.session.lookups_until_silent = stage.session.lookups + 1

    with pytest.raises(ChainError):
        stage.round()
    assert stage.groups.retracted == []
    stage.session.lookups_until_silent = None
    found = stage.round()

    assert (found.reorgs, stage.groups.retracted) == (1, [2])
    assert found.waits_for_chain


def test_sync__another_process_goes_back_all_the_time__is_read_four_times_in_a_round(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)
    stage.groups.have_applied = lambda received: not received  # type: ignore[method-assign]

    stage.round()

    assert stage.groups.applied == [(0, 3)] * 4
    assert stage.session.lookups == 1


def test_sync__the_chain_changes_within_a_round__what_is_gone_is_taken_back_at_once(
    stage: Stage,
) -> None:
    stage.session.mine(3, 1)
    stage.session.mine(4, 2, seconds=1)
    stage.round()
    other = commit(3, seconds=1)
    later = [commit(4, seconds=1, server=each) for each in (NODE, PEER)]
    stage.session.one.hold(other)

    def reorg() -> None:
        stage.session.mined = {transaction_of(each): 7 for each in (other, *later)}

    stage.session.one.meanwhile = reorg
    found = stage.round()

    assert (found.reorgs, stage.groups.retracted) == (1, [2])
    assert sorted(stage.groups.held) == [(0, 3), (0, 4)]


def test_sync__payload_comes_below_what_is_final_under_a_sparse_id__is_read_and_applied(
    stage: Stage,
) -> None:
    stage.session.keys = replace(KEYS, sparse_ids=frozenset({0}))
    stage.session.mine(1000, 1)
    stage.session.chain.final_number = 1
    stage.round()
    assert stage.groups.finalized == [1000]
    stage.session.mine(17, 2, seconds=1)

    stage.round()

    assert stage.groups.held.keys() == {(0, 17), (0, 1000)}
    assert stage.groups.applied == [(0, 1000), (0, 17), (0, 17), (0, 1000)]
