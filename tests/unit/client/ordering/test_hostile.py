"""Batches that are made to hurt: they end, with the result that small ones have."""

from __future__ import annotations

import pytest

from chainkit_client.ordering.causal import Policy, causally_ordered
from support.client.topics import Sent

MANY = 30_000
HUGE = 2**63 - 1
BEYOND = 2**80


def nothing(originator_id: int, sequence_id: int) -> bool:
    return False


@pytest.mark.parametrize("place", [(999, HUGE), (999, BEYOND), (2**32 - 1, 1)])
def test_order__all_wait_for_one_missing_place__asks_for_it_once(place: tuple[int, int]) -> None:
    depends_on = dict([place])
    envelopes = [Sent(each, HUGE, MANY - each, depends_on) for each in range(1_000, MANY)]
    asked = []

    def is_known(*place: int) -> bool:
        asked.append(place)
        return False

    order = causally_ordered(envelopes, is_known)

    assert asked == [place]
    assert order.ordered == []
    assert order.missing == {place: order.waiting}
    assert order.waiting == envelopes[::-1]


@pytest.mark.parametrize("policy", Policy)
def test_order__originator_with_many_that_wait__has_one_root(policy: Policy) -> None:
    envelopes = [Sent(100, each, MANY - each, {200: 1}) for each in range(1, MANY)]

    order = causally_ordered(envelopes[::-1], nothing, policy)

    assert len(order.missing) == 1
    assert [*order.ordered, *reversed(order.waiting)] == envelopes
    assert len(order.unmet) == len(order.ordered)


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("first_depends_on", [{}, {1: 1}])
def test_order__long_chain_against_the_clocks__needs_no_deep_stack(
    policy: Policy, first_depends_on: dict[int, int]
) -> None:
    chain = [Sent(2, 1, MANY, first_depends_on)]
    chain += [Sent(each, 1, MANY - each, {each - 1: 1}) for each in range(3, MANY // 2)]

    order = causally_ordered(chain, nothing, policy)

    if policy is Policy.WAIT and first_depends_on:
        assert order.waiting == [*reversed(chain[1:]), chain[0]][: len(chain)]
        assert list(order.missing) == [(1, 1)]
    else:
        assert order.ordered == chain


@pytest.mark.parametrize("policy", Policy)
def test_order__cycle_of_many__is_found(policy: Policy) -> None:
    count = MANY // 4
    cycle = [Sent(each, 1, each, {each % count + 1: 1}) for each in range(1, count + 1)]

    order = causally_ordered(cycle, nothing, policy)

    assert order.cycles == [cycle]
    assert len(order.unmet) == (policy is Policy.APPLY)


def test_order__many_cycles__are_all_found() -> None:
    pairs = [
        [Sent(each, 1, each, {each + 1: 1}), Sent(each + 1, 1, each + 1, {each: 1})]
        for each in range(1, MANY // 5, 2)
    ]

    order = causally_ordered([each for pair in pairs for each in pair], nothing, Policy.APPLY)

    assert order.cycles == pairs
    assert len(order.unmet) == len(pairs)


@pytest.mark.parametrize("policy", Policy)
def test_order__everybody_depends_on_everybody__is_one_cycle(policy: Policy) -> None:
    everybody = dict.fromkeys(range(1, 301), 1)
    envelopes = [
        Sent(each, 1, 0, {other: 1 for other in everybody if other != each}) for each in everybody
    ]

    order = causally_ordered(envelopes, nothing, policy)

    assert order.cycles == [envelopes]
    assert order.ordered == (envelopes if policy is Policy.APPLY else [])


def test_order__thousands_of_originators_in_each__are_all_told() -> None:
    claimed = {each: HUGE + each for each in range(1_000, 6_000)}
    envelopes = [Sent(100, each, each, claimed) for each in range(1, 31)]

    order = causally_ordered(envelopes, nothing, Policy.APPLY)

    assert order.ordered == envelopes
    assert list(order.missing) == sorted(claimed.items())
    assert all(each == envelopes for each in order.missing.values())
    assert order.unmet == {each.place: sorted(claimed.items()) for each in envelopes}


def test_order__ids_beyond_all_columns__are_compared_exactly() -> None:
    lower, higher = Sent(100, BEYOND, 2), Sent(100, BEYOND + 1, 1)
    envelope = Sent(BEYOND, 1, 0, {100: BEYOND + 1})

    assert causally_ordered([envelope, higher, lower], nothing).ordered == [lower, higher, envelope]
