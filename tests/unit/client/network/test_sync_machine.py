"""The machine of a group's rounds: its table, and what is known after each step."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from chainkit_client.groups.payload import Payload
from chainkit_client.intents.machine import IllegalTransition
from chainkit_client.network import sync_machine
from chainkit_client.network.chain_status import ChainStatus, Found
from chainkit_client.network.sync_machine import (
    MOST_DOUBTED,
    TRANSITIONS,
    ConfirmedPayload,
    Event,
    Move,
    Step,
    SyncState,
)
from chainkit_client.reading.answer import Conflict
from chainkit_client.reading.verified import VerifiedEnvelope, read_envelope
from chainkit_client.topics.following import Applied, Followed
from support.client.served import KEYS, NODE
from support.client.sync_stage import block, commit

S, E = Step, Event
TABLE = {
    (S.IDLE, E.STARTED): (S.CHECKING, False),
    (S.CHECKING, E.UNCHANGED): (S.LOOKING_UP, False),
    (S.CHECKING, E.TAKEN_BACK): (S.LOOKING_UP, True),
    (S.CHECKING, E.LEFT): (S.LOOKING_UP, True),
    (S.LOOKING_UP, E.UNCHANGED): (S.READING, False),
    (S.LOOKING_UP, E.CONFIRMED): (S.READING, True),
    (S.READING, E.READ): (S.SETTLING, False),
    (S.READING, E.READ_OFTEN): (S.FINALIZING, False),
    (S.SETTLING, E.UNCHANGED): (S.CONFIRMING, False),
    (S.SETTLING, E.REPLACED): (S.RECHECKING, False),
    (S.RECHECKING, E.UNCHANGED): (S.READING, True),
    (S.RECHECKING, E.TAKEN_BACK): (S.READING, True),
    (S.RECHECKING, E.LEFT): (S.READING, True),
    (S.CONFIRMING, E.LOOKED_UP): (S.APPLYING, False),
    (S.APPLYING, E.APPLIED): (S.FINALIZING, False),
    (S.APPLYING, E.HELD_UP): (S.READING, True),
    (S.APPLYING, E.LEFT): (S.READING, True),
    (S.FINALIZING, E.FINALIZED): (S.IDLE, False),
    (S.CHECKING, E.FAILED): (S.IDLE, False),
    (S.LOOKING_UP, E.FAILED): (S.IDLE, False),
    (S.READING, E.SILENT): (S.IDLE, False),
    (S.READING, E.FAILED): (S.IDLE, True),
    (S.SETTLING, E.FAILED): (S.IDLE, False),
    (S.RECHECKING, E.FAILED): (S.IDLE, False),
    (S.CONFIRMING, E.FAILED): (S.IDLE, False),
    (S.APPLYING, E.FAILED): (S.IDLE, True),
    (S.FINALIZING, E.FAILED): (S.IDLE, False),
}


def envelope(number: int, seconds: float = 0.0) -> VerifiedEnvelope:
    found = read_envelope(commit(number, seconds), NODE.node_id, KEYS).envelope
    assert found is not None
    return found


THREE, FOUR = envelope(3), envelope(4)
FULL = SyncState(
    {0: 2},
    reads=2,
    confirmed={
        each.place: ConfirmedPayload(each, block(each.sequence_id)) for each in (THREE, FOUR)
    },
    doubted={b"digest": (THREE, ChainStatus.FALSE)},
    conflicts=[Conflict(THREE.held, FOUR)],
    pending=(Applied(FOUR),),
    ready=(Applied(THREE),),
    handed_in={THREE.place: Payload.of(THREE)},
)


@pytest.mark.parametrize(("step", "event"), list(product(Step, Event)))
def test_moved__each_event_at_each_step__is_as_tabled_or_raises(step: Step, event: Event) -> None:
    before = replace(FULL, step=step)
    expected = TABLE.get((step, event))
    if expected is None:
        with pytest.raises(IllegalTransition, match=step.name):
            sync_machine.moved(before, event)
        return

    after = sync_machine.moved(before, event)

    target, begins_again = expected
    reads = 0 if event is E.STARTED else 2
    kept = replace(before, step=target, reads=reads)
    begun = replace(kept, conflicts=(), pending=(), ready=(), handed_in={})
    assert after == (begun if begins_again else kept)


def test_transitions__the_whole_table__is_the_one_of_the_tests() -> None:
    assert dict(TRANSITIONS) == {key: Move(*move) for key, move in TABLE.items()}


@pytest.mark.parametrize("step", [each for each in Step if each is not Step.IDLE])
def test_transitions__work_fails_at_any_step__the_next_round_can_start(step: Step) -> None:
    failed = sync_machine.moved(replace(FULL, step=step), E.FAILED)

    assert sync_machine.moved(failed, E.STARTED).step is S.CHECKING


def test_looked_up__two_payloads__one_stands_where_it_is_now_and_one_is_doubted() -> None:
    found = [
        (THREE, Found(ChainStatus.CONFIRMED, block(9))),
        (FOUR, Found(ChainStatus.ABSENT)),
    ]

    after = sync_machine.looked_up(SyncState({}), found)

    assert after.confirmed == {THREE.place: ConfirmedPayload(THREE, block(9))}
    assert after.doubted == {FOUR.digest: (FOUR, ChainStatus.ABSENT)}
    assert after.waits_for_chain


def test_waits_for_chain__only_false_ones__does_not_wait() -> None:
    found = [(THREE, Found(ChainStatus.FALSE))]

    assert not sync_machine.looked_up(SyncState({}), found).waits_for_chain


def test_doubting__more_than_are_kept__forgets_the_oldest() -> None:
    older = {bytes([each]): (THREE, ChainStatus.ABSENT) for each in range(MOST_DOUBTED)}

    found = [(FOUR, Found(ChainStatus.ABSENT))]
    after = sync_machine.doubting(SyncState({}, doubted=older), found)

    assert len(after.doubted) == MOST_DOUBTED
    assert list(after.doubted) == [*list(older)[1:], FOUR.digest]


def test_trusting__one_of_two__the_other_stays_doubted() -> None:
    found = [(each, Found(ChainStatus.ABSENT)) for each in (THREE, FOUR)]
    doubted = sync_machine.doubting(SyncState({}), found)

    assert list(sync_machine.trusting(doubted, {THREE.digest}).doubted) == [FOUR.digest]


@pytest.mark.parametrize(
    ("gone", "left"), [([FOUR], [THREE]), ([FOUR, THREE], []), ([THREE, FOUR], []), ([], [3, 4])]
)
def test_taken_back__from_a_place_on__nothing_stands_behind_it(
    gone: list[VerifiedEnvelope], left: list[object]
) -> None:
    after = sync_machine.taken_back(FULL, gone)

    assert len(after.confirmed) == len(left)
    assert not {each.place for each in gone} & set(after.confirmed)


def test_taken_back__by_one_originator__those_of_another_stand() -> None:
    other = ConfirmedPayload(replace(FOUR, originator_id=7), block(4))
    both = replace(FULL, confirmed={**FULL.confirmed, (7, 4): other})

    assert sync_machine.taken_back(both, [THREE]).confirmed == {(7, 4): other}


def test_read__an_answer__is_pending_behind_what_was() -> None:
    served = Conflict(FOUR.held, THREE)

    after = sync_machine.read(FULL, Followed(applied=[Applied(THREE)], conflicts=[served]))

    assert after.pending == (Applied(FOUR), Applied(THREE))
    assert (after.reads, after.conflicts) == (3, [served])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_confirmed__the_first_ones__are_ready_and_the_rest_is_pending(count: int) -> None:
    both = (Applied(THREE), Applied(FOUR))

    after = sync_machine.confirmed(SyncState({}, pending=both), count)

    assert (after.ready, after.pending) == (both[:count], both[count:])


def test_handed_in__what_stands__is_noted_beside_what_was() -> None:
    own = replace(Payload.of(FOUR), originator_id=100)

    after = sync_machine.handed_in(FULL, [own, Payload.of(FOUR)])

    assert after.handed_in == {each.place: Payload.of(each) for each in (THREE, FOUR)}
    assert after.ready == ()


@pytest.mark.parametrize(("height", "numbers"), [(2, []), (3, [3]), (4, [3, 4])])
def test_passed__up_to_a_height__those_of_its_block_too(height: int, numbers: list[int]) -> None:
    assert list(sync_machine.passed(FULL, height)) == [(0, each) for each in numbers]


def test_finalized__one_of_two__the_other_stands_and_the_last_final_id_rises() -> None:
    after = sync_machine.finalized(FULL, {THREE.place})

    assert (after.final, list(after.confirmed)) == ({0: 3}, [FOUR.place])
    assert after.handed_in == {}


def test_finalized__a_lower_id_than_before__the_last_final_id_stays() -> None:
    later = replace(FULL, final={0: 8})

    assert sync_machine.finalized(later, {THREE.place}).final == {0: 8}
