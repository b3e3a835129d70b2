"""A topic that is followed: what is applied, what waits, and who is accused of it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit.misbehavior.types import Misbehavior
from chainkit.types import Place
from chainkit_client.ordering.ranges import RangeRequest
from chainkit_client.topics.following import Followed, Topic
from support import mls, publishes
from support.client.served import KEYS, NODE, NOW_NS, PEER, TOPIC, of_chain, weight
from support.network.originator import SECOND_NS, Originator

SENDERS = {each.node_id: each for each in (NODE, PEER)}
PATIENCE = 10


def sent(
    sender: Originator, sequence_id: int, seen: Mapping[int, int] | None = None, words: bytes = b""
) -> bytes:
    """A message of the topic; other words make another payload."""
    unique = words or b"%d %d" % (sender.node_id, sequence_id)
    message = mls.private_message(publishes.GROUP_ID, authenticated_data=b"")
    message = message[:-10] + unique[:10].rjust(10, b".")
    client = publishes.group_message(message, seen=seen)
    payload = publishes.paid(client, sender.node_id)
    return sender.signed(sequence_id, sequence_id, payload)


def take(topic: Topic, *envelopes: bytes, seconds: float = 0.0) -> Followed:
    return topic.take(envelopes, NODE.node_id, KEYS, NOW_NS + int(seconds * SECOND_NS))


def look(topic: Topic, seconds: float) -> Followed:
    return topic.look(NOW_NS + int(seconds * SECOND_NS))


def deny(topic: Topic, place: Place, *node_ids: int) -> None:
    for each in node_ids:
        topic.lacks(place, each)


def places(followed: Followed) -> list[Place]:
    return [each.envelope.place for each in followed.applied]


@pytest.mark.conforms("C11")
def test_take__messages_and_a_commit__are_applied_in_order_and_last_seen_follows() -> None:
    topic = Topic(TOPIC)

    commit = of_chain(4, client=publishes.commit())
    followed = take(topic, commit, sent(PEER, 3, {0: 4, 100: 7}), sent(NODE, 7, {0: 4}))

    assert places(followed) == [(0, 4), (100, 7), (200, 3)]
    assert dict(topic.last_seen.sequence_ids) == {0: 4, 100: 7, 200: 3}
    assert dict(topic.cursor.sequence_ids) == {0: 4, 100: 7, 200: 3}
    assert take(topic, commit, sent(NODE, 7, {0: 4})).applied == []


@pytest.mark.conforms("C11")
def test_take__dependency_is_not_here__waits_and_is_asked_for_by_its_range() -> None:
    topic = Topic(TOPIC)
    take(topic, sent(PEER, 2))

    followed = take(topic, sent(NODE, 1, {200: 5}))

    assert followed.applied == []
    assert [each.place for each in topic.waiting] == [(100, 1)]
    assert topic.requests() == [RangeRequest(200, 2, 5)]
    # It is not seen as long as it waits; a query need not bring it again.
    assert dict(topic.last_seen.sequence_ids) == {200: 2}
    assert dict(topic.cursor.sequence_ids) == {200: 2, 100: 1}

    assert places(take(topic, sent(PEER, 5))) == [(200, 5), (100, 1)]
    assert topic.requests() == []


def test_cursor__what_may_change__is_asked_for_again() -> None:
    topic = Topic(TOPIC)
    take(topic, of_chain(2), of_chain(4), sent(PEER, 3))

    topic.read_again = {0: 3, 5: 1}
    assert dict(topic.cursor.sequence_ids) == {0: 2, 200: 3, 5: 0}
    topic.read_again = {0: 9}
    assert dict(topic.cursor.sequence_ids) == {0: 4, 200: 3}


def test_take__dependency_was_hidden_below_the_cursor__is_named_exactly() -> None:
    topic = Topic(TOPIC)
    take(topic, sent(PEER, 8))

    take(topic, sent(NODE, 1, {200: 7}))

    assert topic.requests() == [RangeRequest(200, 6, 7)]


@pytest.mark.conforms("C14")
def test_look__nobody_has_a_dependency__is_applied_with_a_warning_and_is_a_claim() -> None:
    topic = Topic(TOPIC, PATIENCE)
    take(topic, sent(PEER, 4), sent(NODE, 1, {200: 5}), sent(NODE, 2))
    deny(topic, (200, 5), 100, 200)

    assert places(look(topic, PATIENCE - 0.1)) == []
    followed = look(topic, PATIENCE)

    assert places(followed) == [(100, 1), (100, 2)]
    assert [each.without for each in followed.applied] == [((200, 5),), ()]
    [breach] = followed.breaches
    assert (breach.node_id, breach.misbehavior) == (100, Misbehavior.CAUSAL_ORDERING)
    assert breach.reason == "1 depends on 5 of originator 200, which nobody has"
    assert weight(breach) is Weight.CLAIMED
    assert (list(topic.waiting), topic.requests()) == ([], [])


@pytest.mark.conforms("C11")
def test_last_seen__names_what_its_originator_has_not_given__is_named_once_it_has() -> None:
    topic = Topic(TOPIC, PATIENCE)
    take(topic, sent(PEER, 4), sent(NODE, 1), sent(NODE, 3, {200: 5}), sent(NODE, 4))
    deny(topic, (200, 5), 200)

    look(topic, PATIENCE)
    assert dict(topic.last_seen.sequence_ids) == {100: 1, 200: 4}
    take(topic, sent(PEER, 5), seconds=PATIENCE)

    assert dict(topic.last_seen.sequence_ids) == {100: 4, 200: 5}


def test_last_seen__the_first_of_its_originator_names_what_is_not_given__names_none() -> None:
    topic = Topic(TOPIC, PATIENCE)
    take(topic, sent(PEER, 4), sent(NODE, 3, {200: 5}))
    deny(topic, (200, 5), 200)

    look(topic, PATIENCE)

    assert dict(topic.last_seen.sequence_ids) == {200: 4}


@pytest.mark.parametrize("denied_by", [(), (100,), (200,), (300,)])
def test_look__those_concerned_have_not_answered_for_a_place__accuses_nobody(
    denied_by: tuple[int, ...],
) -> None:
    topic = Topic(TOPIC, PATIENCE)
    take(topic, sent(PEER, 4), sent(NODE, 1, {200: 5}))
    deny(topic, (200, 5), *denied_by)

    followed = look(topic, PATIENCE)

    assert places(followed) == [(100, 1)]
    assert followed.breaches == []


def test_look__missing_place_may_have_expired__accuses_nobody() -> None:
    topic = Topic(TOPIC, PATIENCE)
    take(topic, sent(NODE, 1, {200: 5}))
    deny(topic, (200, 5), 100, 200)

    assert look(topic, PATIENCE).breaches == []


def test_take__what_was_given_up_comes_late__is_applied_all_the_same() -> None:
    topic = Topic(TOPIC, PATIENCE)
    take(topic, sent(NODE, 1, {200: 5}))
    look(topic, PATIENCE)

    assert places(take(topic, sent(PEER, 5), seconds=PATIENCE)) == [(200, 5)]


def test_found_elsewhere__dependency_of_another_topic__holds_nobody_up() -> None:
    topic = Topic(TOPIC, PATIENCE)
    take(topic, sent(NODE, 1, {200: 5}))

    topic.found_elsewhere((200, 5))
    followed = look(topic, 0)

    assert places(followed) == [(100, 1)]
    assert followed.applied[0].without == ()
    assert look(topic, PATIENCE).breaches == []


def test_take__dependency_is_void__is_not_waited_for() -> None:
    topic = Topic(TOPIC)
    void = NODE.signed(1, 1, publishes.paid(publishes.group_message(b"no MLS")))

    followed = take(topic, void, sent(PEER, 1, {100: 1}))

    assert places(followed) == [(200, 1)]
    assert [each.misbehavior for each in followed.breaches] == [Misbehavior.INVALID_PAYLOAD]
    # Told once, however often it comes; and another one under its id is equivocation.
    assert take(topic, void).breaches == []
    [breach] = take(topic, sent(NODE, 1)).breaches
    assert (breach.misbehavior, weight(breach)) == (
        Misbehavior.DUPLICATE_SEQUENCE_ID,
        Weight.PROVED,
    )


@pytest.mark.conforms("C11")
def test_last_seen__void_payload_of_the_chain__counts_once_nothing_before_is_awaited() -> None:
    topic = Topic(TOPIC)
    take(topic, of_chain(4, client=publishes.commit()))
    void = of_chain(9, client=publishes.group_message(b"no MLS"))

    # The message names a commit that nobody has served yet.
    take(topic, void, sent(NODE, 1, {0: 6}))
    assert dict(topic.last_seen.sequence_ids) == {0: 4}

    take(topic, of_chain(6, client=publishes.commit()))
    assert dict(topic.last_seen.sequence_ids) == {0: 9, 100: 1}
    assert take(topic, sent(PEER, 1, {0: 9})).applied
    assert dict(topic.last_seen.sequence_ids) == {0: 9, 100: 1, 200: 1}


@pytest.mark.conforms("C12")
def test_take__the_same_payload_by_two_originators__is_shown_once() -> None:
    topic = Topic(TOPIC)

    followed = take(topic, sent(NODE, 1, words=b"hello"), sent(PEER, 1, words=b"hello"))
    again = take(topic, sent(PEER, 2, words=b"hello"), sent(PEER, 3, words=b"bye"))

    assert [each.is_copy for each in (*followed.applied, *again.applied)] == [
        *(False, True),
        *(True, False),
    ]


def test_take__a_cycle__is_claimed_against_each_once_and_holds_nothing_up() -> None:
    topic = Topic(TOPIC)

    followed = take(topic, sent(NODE, 1, {200: 1}), sent(PEER, 1, {100: 1}), sent(NODE, 2))

    assert sorted(places(followed)) == [(100, 1), (100, 2), (200, 1)]
    assert [(each.node_id, weight(each)) for each in followed.breaches] == [
        (100, Weight.CLAIMED),
        (200, Weight.CLAIMED),
    ]
    assert sum(len(each.without) for each in followed.applied) == 1


def test_take__a_cycle_through_the_chain__accuses_nobody() -> None:
    """A reorg has put a commit that had seen the message where its author saw another one."""
    commit = of_chain(5, client=publishes.commit({100: 1}))

    followed = take(Topic(TOPIC), sent(NODE, 1, {0: 5}), commit)

    assert sorted(places(followed)) == [(0, 5), (100, 1)]
    assert followed.breaches == []


def test_take__a_cycle_of_three__has_its_evidence_in_the_order_that_judges_ask_for() -> None:
    third = Originator(300, NODE.key)
    keys = type(KEYS)({**KEYS.by_node, 300: NODE.key.public_key})
    topic = Topic(TOPIC)
    envelopes = (sent(NODE, 1, {200: 1}), sent(PEER, 1, {300: 1}), sent(third, 1, {100: 1}))

    followed = topic.take(envelopes, 100, keys, NOW_NS)

    assert [each.node_id for each in followed.breaches] == [100, 200, 300]
    for each in followed.breaches:
        report = parse_unsigned(each.report(NOW_NS) or b"")
        assert judge_safety(report, keys.by_node, NOW_NS).weight is Weight.CLAIMED


def test_look__more_wait_than_there_is_room__gives_up_at_once() -> None:
    topic = Topic(TOPIC, PATIENCE, most_waiting=3)
    take(topic, sent(PEER, 8), *(sent(NODE, each, {200: 9}) for each in range(1, 5)))

    deny(topic, (200, 9), 100, 200)
    followed = look(topic, 0.0)

    assert len(followed.applied) == 4
    assert followed.breaches == []


def test_take__hostile_cycle__takes_no_square_of_time() -> None:
    topic = Topic(TOPIC)
    count = 700
    envelopes = [
        sent(sender, each, {other.node_id: count})
        for sender, other in ((NODE, PEER), (PEER, NODE))
        for each in range(1, count + 1)
    ]

    assert len(take(topic, *envelopes).applied) == 2 * count


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.4))
def test_take__any_answers_with_losses__applies_each_once_after_its_dependencies(
    seed: int, loss: float
) -> None:
    chance = random.Random(seed)
    history = honest_history(chance)
    topic, applied, without = Topic(TOPIC, PATIENCE), [], set()
    lost = {place for place in history if chance.random() < loss}
    arriving = [each for place, each in history.items() if place not in lost]

    for step in range(6):
        page = chance.sample(arriving, min(len(arriving), 8)) if step < 5 else arriving
        followed = topic.take(page, NODE.node_id, KEYS, NOW_NS + step * SECOND_NS)
        for each in (*followed.applied, *look(topic, step).applied):
            applied.append(each)
    for each in look(topic, 60).applied:
        applied.append(each)

    order = [each.envelope.place for each in applied]
    assert sorted(order) == sorted(set(history) - lost)
    for each in applied:
        without.update(each.without)
        before = set(order[: order.index(each.envelope.place)])
        needed = {one for one in each.envelope.depends_on.items() if one[1] > 0}
        assert needed - before <= lost
        assert set(each.without) == needed & lost
    assert (list(topic.waiting), topic.requests()) == ([], [])


def honest_history(chance: random.Random) -> dict[Place, bytes]:
    """Messages of two originators, each by an author who has seen some of the earlier ones."""
    last: dict[int, int] = {}
    seen: list[Mapping[int, int]] = [{}]
    history: dict[Place, bytes] = {}
    for _ in range(chance.randint(1, 14)):
        sender: Originator = chance.choice(list(SENDERS.values()))
        sequence_id = last.get(sender.node_id, 0) + chance.randint(1, 2)
        latest: Sequence[Mapping[int, int]] = seen[-3:]
        envelope = sent(sender, sequence_id, chance.choice(latest))
        last = {**last, sender.node_id: sequence_id}
        history[sender.node_id, sequence_id] = envelope
        seen.append(last)
    return history
