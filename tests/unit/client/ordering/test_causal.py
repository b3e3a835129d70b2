"""The causal order, by examples."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from chainkit_client.ordering.causal import CausalOrder, Policy, causally_ordered
from chainkit_client.ordering.timestamps import timestamp_key
from support.client.topics import Sent, places

WAIT, APPLY = Policy.WAIT, Policy.APPLY


def ordered(
    *envelopes: Sent, known: tuple[tuple[int, int], ...] = (), policy: Policy = WAIT
) -> CausalOrder[Sent]:
    return causally_ordered(envelopes, lambda *place: place in known, policy)


def test_order__nothing__is_empty() -> None:
    for policy in Policy:
        assert ordered(policy=policy) == CausalOrder([], [], {}, [], {})


def test_order__an_envelope__is_the_callers_own_object() -> None:
    envelope = Sent(100, 1)
    order = ordered(envelope)

    assert order.ordered[0] is envelope
    with pytest.raises(FrozenInstanceError):
        order.ordered = ()  # type: ignore[misc]


@pytest.mark.conforms("C13")
def test_order__independent_envelopes__is_by_epoch_then_commit_then_time_then_place() -> None:
    expected = [
        Sent(200, 1, 8),
        Sent(100, 1, 9),
        Sent(0, 5, 1, is_commit=True),
        Sent(200, 2, 2, {0: 5}),
        Sent(200, 3, 3, {0: 5}),
        Sent(300, 1, 3, {0: 5}),
        Sent(0, 7, 0, {0: 5}, is_commit=True),
        Sent(300, 2, 0, {0: 7}),
    ]

    assert sorted(reversed(expected), key=timestamp_key) == expected
    assert ordered(*reversed(expected)).ordered == expected


@pytest.mark.conforms("C13")
def test_order__commit_with_an_early_time__is_last_in_its_epoch() -> None:
    commit = Sent(0, 5, 1, {0: 3}, is_commit=True)
    late = Sent(100, 1, 9, {0: 3})
    next_epoch = Sent(100, 2, 10, {0: 5})

    assert ordered(next_epoch, commit, late, known=((0, 3),)).ordered == [late, commit, next_epoch]


def test_order__chains_envelope_that_is_no_commit__is_among_the_messages() -> None:
    update = Sent(0, 5, 1)
    message = Sent(100, 1, 2)

    assert ordered(message, update).ordered == [update, message]


def test_order__a_reply_whose_clock_is_behind__comes_after_what_it_answers() -> None:
    question = Sent(100, 1, 50)
    reply = Sent(200, 1, 10, {100: 1})
    other = Sent(300, 1, 40)

    assert ordered(reply, question, other).ordered == [other, question, reply]


@pytest.mark.conforms("C9")
@pytest.mark.parametrize("policy", Policy)
def test_order__an_originators_times_fall__follows_its_ids(policy: Policy) -> None:
    first, second, third = Sent(100, 1, 50), Sent(100, 2, 40), Sent(100, 9, 30)
    other = Sent(200, 1, 45)

    order = ordered(third, second, first, other, policy=policy)

    assert order.ordered == [other, first, second, third]
    assert order.unmet == {}


def test_order__times_of_an_originator_fall_across_epochs__follows_its_ids() -> None:
    # The author of the first one had seen the commit, that of the second one had not.
    first, second = Sent(100, 1, 1, {0: 5}), Sent(100, 2, 2)
    commit = Sent(0, 5, 0, is_commit=True)

    assert ordered(second, first, commit).ordered == [commit, first, second]


@pytest.mark.conforms("C9")
def test_order__later_one_is_known_and_the_dependency_is_not__is_missing() -> None:
    envelope = Sent(200, 1, 1, {100: 7})

    order = ordered(envelope, known=((100, 6), (100, 8)))

    assert order == CausalOrder([], [envelope], {(100, 7): [envelope]}, [], {})
    assert ordered(envelope, known=((100, 7),)).ordered == [envelope]


def test_order__later_one_is_in_the_batch_and_the_dependency_is_not__is_missing() -> None:
    later, envelope = Sent(100, 8), Sent(200, 1, 1, {100: 7})

    order = ordered(envelope, later)

    assert order == CausalOrder([later], [envelope], {(100, 7): [envelope]}, [], {})


@pytest.mark.parametrize("policy", Policy)
def test_order__late_envelope_below_a_known_dependency__comes_first(policy: Policy) -> None:
    # The author who had seen 7 had seen 6, too: it was left out here, and came by another node.
    late, envelope = Sent(100, 6, 9), Sent(200, 1, 1, {100: 7})

    assert ordered(envelope, late, known=((100, 7),), policy=policy).ordered == [late, envelope]
    assert ordered(envelope, late, policy=APPLY).ordered == [late, envelope]


@pytest.mark.parametrize("sequence_id", [0, -1])
def test_order__dependency_on_nothing__is_none(sequence_id: int) -> None:
    envelope = Sent(100, 1, 1, {0: sequence_id, 100: sequence_id, 200: sequence_id})

    assert ordered(envelope) == CausalOrder([envelope], [], {}, [], {})


def test_order__several_wait_for_a_place__only_direct_ones_are_told_with_it() -> None:
    first, second = Sent(200, 1, 9, {100: 1}), Sent(300, 1, 2, {100: 1, 400: 4})
    follows, answers = Sent(200, 2, 1), Sent(500, 1, 5, {300: 1})
    free = Sent(600, 1, 3)

    order = ordered(answers, follows, first, second, free)

    assert order.ordered == [free]
    assert order.waiting == [follows, second, answers, first]
    assert order.missing == {(100, 1): [second, first], (400, 4): [second]}
    assert list(order.missing) == [(100, 1), (400, 4)]


def test_order__dependency_on_an_earlier_one_of_its_originator__is_exact() -> None:
    envelope = Sent(100, 5, 1, {100: 3})

    assert ordered(envelope, known=((100, 4),)).missing == {(100, 3): [envelope]}
    assert ordered(envelope, Sent(100, 4)).missing == {(100, 3): [envelope]}
    assert ordered(envelope, Sent(100, 3)).missing == {}


def test_order__place_is_missing_and_waiting_is_over__applies_the_first_with_a_warning() -> None:
    first, second = Sent(200, 1, 2, {100: 1, 150: 3}), Sent(300, 1, 5, {100: 1})
    answer = Sent(400, 1, 1, {200: 1})

    order = ordered(second, answer, first, known=((150, 3),), policy=APPLY)

    assert order.ordered == [first, answer, second]
    assert order.unmet == {(200, 1): [(100, 1)], (300, 1): [(100, 1)]}
    assert order.missing == {(100, 1): [first, second]}
    assert order.waiting == []


def test_order__waiting_is_over__no_warning_for_what_can_still_wait_in_the_batch() -> None:
    # By its time, the answer would be applied first: before the question, which is there.
    question, answer = Sent(200, 1, 9, {100: 1}), Sent(300, 1, 1, {200: 1})

    order = ordered(answer, question, policy=APPLY)

    assert order.ordered == [question, answer]
    assert order.unmet == {(200, 1): [(100, 1)]}


def test_order__waiting_is_over__an_originators_order_is_kept() -> None:
    first, second = Sent(200, 1, 9, {100: 1}), Sent(200, 2, 1, {100: 1})

    order = ordered(second, first, policy=APPLY)

    assert order.ordered == [first, second]
    assert order.unmet == {(200, 1): [(100, 1)], (200, 2): [(100, 1)]}


@pytest.mark.conforms("C9")
@pytest.mark.parametrize("count", [2, 3, 50])
def test_order__cycle__is_found_and_can_be_applied(count: int) -> None:
    cycle = [
        Sent(100 + each, 1, (each * 7) % 50, {100 + (each + 1) % count: 1}) for each in range(count)
    ]
    behind, free = Sent(900, 1, 0, {100: 1}), Sent(901, 1, 99)
    by_time = sorted(cycle, key=timestamp_key)

    order = ordered(behind, *cycle, free)

    assert order.ordered == [free]
    assert order.cycles == [by_time]
    assert order.missing == {}
    assert set(order.waiting) == {behind, *cycle}

    applied = ordered(behind, *cycle, free, policy=APPLY)

    assert applied.ordered[:2] == [free, by_time[0]]
    assert set(applied.ordered) == {behind, free, *cycle}
    # Only the first one comes before what it depends on: the others are a chain then.
    assert list(applied.unmet) == [by_time[0].place]
    assert applied.unmet[by_time[0].place] == by_time[0].dependencies


def test_order__two_cycles_one_behind_the_other__are_two() -> None:
    first = [Sent(100, 1, 8, {200: 1}), Sent(200, 1, 9, {100: 1})]
    second = [Sent(300, 1, 1, {400: 1}), Sent(400, 1, 2, {300: 1, 200: 1})]

    assert ordered(*second, *first).cycles == [second, first]
    applied = ordered(*second, *first, policy=APPLY)
    # The second one is first in time, and still waits for the other one, which it can.
    assert applied.ordered == [*first, *second]
    assert applied.unmet == {(100, 1): [(200, 1)], (300, 1): [(400, 1)]}


def test_order__cycle_through_an_originators_order__is_found() -> None:
    # 200's author had seen 2, which came after 1, whose author had seen that of 200.
    first, second = Sent(100, 1, 1, {200: 1}), Sent(100, 2, 2)
    other = Sent(200, 1, 3, {100: 2})

    order = ordered(other, second, first)

    assert order.cycles == [[first, second, other]]
    assert ordered(other, second, first, policy=APPLY).ordered == [first, second, other]


def test_order__cycle_behind_an_originators_earlier_one__comes_after_it() -> None:
    # 2 and the chain's are a cycle; 1 is none of it, but the chain's author had seen it.
    itself, second = Sent(100, 1, 9, {100: 1}), Sent(100, 2, 5, {0: 2})
    chains = Sent(0, 2, 1, {100: 2})

    order = ordered(chains, second, itself, policy=APPLY)

    assert order.cycles == [[chains, second], [itself]]
    assert order.ordered == [itself, chains, second]


def test_order__cycle_through_a_place_that_is_hidden__is_found() -> None:
    # 200's author had seen 2, and 1 before it, whose author had seen that of 200: without 2, too.
    first, other = Sent(100, 1, 1, {200: 1}), Sent(200, 1, 3, {100: 2})

    order = ordered(other, first)

    assert order.cycles == [[first, other]]
    assert order.missing == {(100, 2): [other]}


@pytest.mark.conforms("C9")
@pytest.mark.parametrize("sequence_id", [5, 6, 2**63])
@pytest.mark.parametrize("known", [(), ((100, 5), (100, 6), (100, 2**63))])
def test_order__depends_on_itself_or_a_later_one__is_a_cycle_of_its_own(
    sequence_id: int, known: tuple[tuple[int, int], ...]
) -> None:
    envelope, later = Sent(100, 5, 1, {100: sequence_id}), Sent(100, 6, 2)

    order = ordered(envelope, later, known=known)

    assert order == CausalOrder([], [envelope, later], {}, [[envelope]], {})
    applied = ordered(envelope, later, known=known, policy=APPLY)
    assert applied.ordered == [envelope, later]
    assert applied.unmet == {(100, 5): [(100, sequence_id)]}


def test_order__part_of_a_cycle_depends_on_itself__is_one_cycle() -> None:
    first, second = Sent(100, 1, 1, {100: 1, 200: 1}), Sent(200, 1, 2, {100: 1})

    assert ordered(first, second).cycles == [[first, second]]
    assert ordered(first, second, policy=APPLY).unmet == {(100, 1): [(100, 1), (200, 1)]}


def test_order__cycle_waits_for_a_missing_place__both_are_told() -> None:
    first, second = Sent(100, 1, 1, {200: 1}), Sent(200, 1, 2, {100: 1, 300: 4})

    order = ordered(first, second)

    assert (order.missing, order.cycles) == ({(300, 4): [second]}, [[first, second]])
    applied = ordered(first, second, policy=APPLY)
    assert places(applied.ordered) == [(100, 1), (200, 1)]
    assert applied.unmet == {(100, 1): [(200, 1)], (200, 1): [(300, 4)]}


def test_order__two_envelopes_of_one_place__is_refused() -> None:
    with pytest.raises(
        ValueError, match="envelope 7 of originator 100: expected one in a batch, got two"
    ):
        ordered(Sent(100, 7, 1), Sent(200, 7), Sent(100, 7, 2))


def test_order__envelopes_that_cannot_be_hashed__are_taken() -> None:
    class Unhashable(Sent):
        __hash__ = None  # type: ignore[assignment]

    envelope = Unhashable(200, 1, 1, {100: 1})

    assert causally_ordered([envelope], lambda *place: False, APPLY).ordered == [envelope]
