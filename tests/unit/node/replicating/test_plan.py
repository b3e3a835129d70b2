"""Which node is asked for whose envelopes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit_node.replicating.plan import (
    DISABLED_SECONDS,
    SUBSTITUTES,
    Subscription,
    SubscriptionPlan,
)

OWN = 100
NODES = {each: True for each in range(100, 1100, 100)}
OTHERS = frozenset(NODES) - {OWN}


def plan() -> SubscriptionPlan:
    return SubscriptionPlan(random.Random(1))


def asked_for(found: frozenset[Subscription], originator_id: int) -> set[int]:
    return {each.peer_id for each in found if each.originator_id == originator_id}


@pytest.mark.conforms("N27", "N29", "2.2.1-14")
def test_plan__all_enabled__each_other_node_is_asked_for_its_own() -> None:
    found = plan().subscriptions(OWN, NODES, (), 0.0)

    assert found == {Subscription(each, each) for each in OTHERS}
    assert all(each.is_direct for each in found)


def test_plan__own_key_is_not_registered__all_nodes_are_asked() -> None:
    assert plan().subscriptions(None, {100: True}, (), 0.0) == {Subscription(100, 100)}


@pytest.mark.conforms("N30")
def test_plan__a_node_is_unreachable__five_others_are_asked_for_it_and_itself_again() -> None:
    one = plan()

    found = one.subscriptions(OWN, NODES, {300}, 0.0)

    substitutes = asked_for(found, 300) - {300}
    assert len(substitutes) == SUBSTITUTES
    assert substitutes <= OTHERS - {300}
    assert Subscription(300, 300) in found
    # The same ones for as long as it lasts, and none once it is back.
    assert one.subscriptions(OWN, NODES, {300}, 60.0) == found
    assert asked_for(one.subscriptions(OWN, NODES, (), 90.0), 300) == {300}


def test_plan__a_substitute_is_unreachable_too__another_takes_its_place() -> None:
    one = plan()
    first = asked_for(one.subscriptions(OWN, NODES, {300}, 0.0), 300) - {300}
    lost = min(first)

    found = asked_for(one.subscriptions(OWN, NODES, {300, lost}, 1.0), 300) - {300}

    assert len(found) == SUBSTITUTES
    assert first - found == {lost}


def test_plan__picks__differ_between_nodes() -> None:
    picked = {
        frozenset(
            asked_for(
                SubscriptionPlan(random.Random(seed)).subscriptions(OWN, NODES, {300}, 0.0), 300
            )
        )
        for seed in range(20)
    }
    assert len(picked) > 1


@pytest.mark.conforms("N32")
def test_plan__a_node_is_disabled__is_torn_down_and_others_are_asked_for_six_hours() -> None:
    one, disabled = plan(), NODES | {300: False}
    one.subscriptions(OWN, NODES, (), 0.0)

    found = one.subscriptions(OWN, disabled, (), 10.0)

    assert len(asked_for(found, 300)) == SUBSTITUTES
    assert 300 not in {each.peer_id for each in found}
    assert one.subscriptions(OWN, disabled, (), 9.0 + DISABLED_SECONDS) == found
    assert not asked_for(one.subscriptions(OWN, disabled, (), 10.0 + DISABLED_SECONDS), 300)


@pytest.mark.conforms("N32")
def test_plan__found_disabled_at_the_start__others_are_asked_for_six_hours() -> None:
    one, disabled = plan(), NODES | {300: False}

    assert len(asked_for(one.subscriptions(OWN, disabled, (), 0.0), 300)) == SUBSTITUTES
    assert not asked_for(one.subscriptions(OWN, disabled, (), DISABLED_SECONDS), 300)


def test_plan__disabled_again_after_it_was_enabled__begins_anew() -> None:
    one, disabled = plan(), NODES | {300: False}
    one.subscriptions(OWN, disabled, (), 0.0)
    one.subscriptions(OWN, NODES, (), DISABLED_SECONDS)

    found = one.subscriptions(OWN, disabled, (), DISABLED_SECONDS + 1)

    assert len(asked_for(found, 300)) == SUBSTITUTES


@pytest.mark.conforms("N33")
def test_plan__a_node_is_added__is_asked_at_the_next_look() -> None:
    one = plan()
    one.subscriptions(OWN, NODES, (), 0.0)

    assert Subscription(1100, 1100) in one.subscriptions(OWN, NODES | {1100: True}, (), 1.0)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.integers(1, 9).map(lambda each: each * 100), st.booleans()),
            st.sets(st.integers(1, 9).map(lambda each: each * 100)),
            st.floats(0, 10_000),
        ),
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_plan__whatever_happens__asks_only_enabled_others_and_enough_of_them(
    looks: list[tuple[dict[int, bool], set[int], float]], chance: random.Random
) -> None:
    one, now = SubscriptionPlan(chance), 0.0
    for nodes, unreachable, seconds in looks:
        now += seconds
        found = one.subscriptions(OWN, nodes, unreachable, now)

        others = {each for each in nodes if each != OWN}
        enabled = {each for each in others if nodes[each]}
        assert {each.peer_id for each in found} <= enabled
        assert {each.originator_id for each in found} <= others
        for each in enabled & unreachable:
            reachable = enabled - unreachable
            assert len(asked_for(found, each) - {each}) == min(SUBSTITUTES, len(reachable))
        for each in enabled - unreachable:
            assert asked_for(found, each) == {each}
