"""Any topic, whatever is lost of it and however it is shuffled, has the order by definition."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.types import Place
from chainkit_client.ordering.batch import IsKnown
from chainkit_client.ordering.causal import CausalOrder, Policy, causally_ordered
from support.client.topics import (
    ORIGINATORS,
    Sent,
    arbitrary_topics,
    few_originators,
    honest_topics,
    order_by_definition,
    order_of_specification,
    places,
)

chances = st.randoms(use_true_random=False)
policies = st.sampled_from(Policy)
topics = st.one_of(honest_topics(), arbitrary_topics)
few_places = st.sets(st.tuples(few_originators, st.integers(1, 6)))


def among(known: Collection[Place]) -> IsKnown:
    return lambda originator_id, sequence_id: (originator_id, sequence_id) in known


def shuffled(envelopes: list[Sent], chance: random.Random) -> list[Sent]:
    """Shuffle envelopes, and the dependencies of each."""
    changed = []
    for each in envelopes:
        items = list(each.depends_on.items())
        chance.shuffle(items)
        changed.append(replace(each, depends_on=dict(items)))
    chance.shuffle(changed)
    return changed


def split(envelopes: list[Sent], chance: random.Random, parts: int) -> tuple[list[Sent], ...]:
    """Divide envelopes by chance."""
    divided: tuple[list[Sent], ...] = tuple([] for _ in range(parts))
    for each in envelopes:
        chance.choice(divided).append(each)
    return divided


def check_order(order: CausalOrder[Sent], known: Collection[Place]) -> None:
    """Check that no envelope comes before one that it had to wait for, unless that is told."""
    at = {each.place: index for index, each in enumerate(order.ordered)}
    last: dict[int, int] = {}
    for index, each in enumerate(order.ordered):
        assert last.get(each.originator_id, 0) < each.sequence_id
        last[each.originator_id] = each.sequence_id
        for place in each.dependencies:
            if place not in order.unmet.get(each.place, ()):
                assert place in known or at[place] < index


@pytest.mark.conforms("C9")
@given(honest_topics(), chances, policies)
def test_order__honest_topic_with_losses__is_that_by_definition(
    topic: list[Sent], chance: random.Random, policy: Policy
) -> None:
    applied, _lost, batch = split(topic, chance, 3)
    known = set(places(applied))

    order = causally_ordered(shuffled(batch, chance), among(known), policy)

    assert order == order_by_definition(batch, known, policy)
    assert order.cycles == []
    check_order(order, known)


@pytest.mark.conforms("C9")
@given(arbitrary_topics, few_places, policies)
def test_order__arbitrary_topic__is_that_by_definition(
    batch: list[Sent], known: set[Place], policy: Policy
) -> None:
    known -= set(places(batch))

    order = causally_ordered(batch, among(known), policy)

    assert order == order_by_definition(batch, known, policy)
    check_order(order, known)


@given(honest_topics())
def test_order__specifications_loop_keeps_originators_orders__is_the_same(
    topic: list[Sent],
) -> None:
    order = order_of_specification(topic)
    rising = sorted(order, key=lambda each: each.sequence_id)
    keeps_orders = all(
        [each for each in order if each.originator_id == originator_id]
        == [each for each in rising if each.originator_id == originator_id]
        for originator_id in ORIGINATORS
    )

    if keeps_orders:
        assert causally_ordered(topic, among([])).ordered == order
    check_order(causally_ordered(topic, among([])), [])


@given(topics, few_places, policies, chances)
def test_order__same_envelopes_in_another_order__is_the_same(
    batch: list[Sent], known: set[Place], policy: Policy, chance: random.Random
) -> None:
    order = causally_ordered(batch, among(known), policy)
    again = causally_ordered(shuffled(batch, chance), among(known), policy)

    assert again == order
    assert list(again.missing) == list(order.missing) == sorted(order.missing)
    assert list(again.unmet) == list(order.unmet)


@given(topics, few_places, policies)
def test_order__any_topic__loses_and_repeats_nothing(
    batch: list[Sent], known: set[Place], policy: Policy
) -> None:
    order = causally_ordered(batch, among(known), policy)

    assert Counter(places([*order.ordered, *order.waiting])) == Counter(places(batch))
    assert not (policy is Policy.APPLY and order.waiting)
    assert not (policy is Policy.WAIT and order.unmet)


@given(topics, few_places)
def test_order__any_topic__begins_alike_with_both_policies(
    batch: list[Sent], known: set[Place]
) -> None:
    waiting = causally_ordered(batch, among(known))
    applied = causally_ordered(batch, among(known), Policy.APPLY)

    assert applied.ordered[: len(waiting.ordered)] == waiting.ordered
    assert applied.missing == waiting.missing
    assert applied.cycles == waiting.cycles
    assert bool(waiting.waiting) == bool(applied.unmet)
    assert bool(waiting.waiting) == bool(waiting.missing or waiting.cycles)


@given(arbitrary_topics, few_places)
def test_order__envelopes_are_applied_nevertheless__only_absent_ones_and_cycles_are_unmet(
    batch: list[Sent], known: set[Place]
) -> None:
    known -= set(places(batch))
    order = causally_ordered(batch, among(known), Policy.APPLY)

    cycle_of = {each.place: cycle for cycle in order.cycles for each in cycle}
    by_place = {each.place: each for each in batch}
    for place, dependencies in order.unmet.items():
        assert dependencies
        for originator_id, sequence_id in dependencies:
            in_cycle = any(
                each.originator_id == originator_id and each.sequence_id <= sequence_id
                for each in cycle_of.get(place, ())
            )
            is_missing = by_place[place] in order.missing.get((originator_id, sequence_id), ())
            assert is_missing or in_cycle


@given(honest_topics(), st.integers(1, 5), chances)
def test_order__batch_comes_in_parts_and_nothing_is_missing__all_is_applied_causally(
    topic: list[Sent], parts: int, chance: random.Random
) -> None:
    known: set[Place] = set()
    waiting: list[Sent] = []
    for part in split(topic, chance, parts):
        order = causally_ordered([*part, *waiting], among(known))
        check_order(order, known)
        assert not order.cycles
        known |= set(places(order.ordered))
        waiting = list(order.waiting)

    assert waiting == []
    assert known == set(places(topic))


@given(honest_topics(), chances)
def test_order__missing_places_are_fetched__everything_is_applied(
    topic: list[Sent], chance: random.Random
) -> None:
    held = {each.place: each for each in topic}
    batch, _ = split(topic, chance, 2)
    rounds = 0

    while (order := causally_ordered(batch, among([]))).missing:
        assert all(place in held for place in order.missing)
        batch += [held[place] for place in order.missing]
        rounds += 1

    assert order.waiting == []
    assert rounds <= len(topic)


@given(topics, few_places, policies)
def test_order__any_topic__asks_once_and_only_for_what_is_not_in_the_batch(
    batch: list[Sent], known: set[Place], policy: Policy
) -> None:
    asked: list[Place] = []

    def is_known(originator_id: int, sequence_id: int) -> bool:
        asked.append((originator_id, sequence_id))
        return asked[-1] in known

    causally_ordered(batch, is_known, policy)

    assert len(asked) == len(set(asked))
    assert set(asked).isdisjoint(places(batch))
    assert all(
        originator_id in ORIGINATORS and sequence_id > 0 for originator_id, sequence_id in asked
    )
