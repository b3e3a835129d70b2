"""Topic heads beside what a client has of the topic: each difference is named, and each lie."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedAnswer, MalformedData
from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit.protocol.topic_heads import (
    MOST_ENTRIES,
    Chain,
    Entry,
    TopicHead,
    entry_of,
    sign_topic_head,
)
from chainkit_client.breach import Breach
from chainkit_client.ordering.ranges import RangeRequest
from chainkit_client.reading.verified import VerifiedEnvelope, read_envelope
from chainkit_client.topics.following import Followed, Topic
from support.client.served import KEYS, NODE, NOW_NS, PEER, TOPIC
from support.network.originator import BEGIN_NS, SECOND_NS, Originator

LOG = {number: NODE.signed(number) for number in (2, 3, 5, 8)}
NOW = BEGIN_NS // SECOND_NS + 60
ID = NODE.node_id


def entries(*numbers: int) -> list[Entry]:
    return [entry_of(LOG[each]) for each in numbers]


def head(
    through: int, *numbers: int, node: Originator = NODE, topic: bytes = TOPIC, of: int = ID
) -> bytes:
    chain = Chain().extended(entries(*numbers))
    return sign_topic_head(TopicHead(of, topic, through, chain), node.key)


def holding(*numbers: int) -> Topic:
    topic = Topic(TOPIC)
    topic.take([LOG[each] for each in numbers], ID, KEYS, NOW_NS)
    return topic


def listed(topic: Topic, data: bytes, *numbers: int, after: int = 0) -> Followed:
    """Let the node list the entries of a head, which is not as what is here."""
    taken = topic.take_head(data, ID, KEYS)
    assert taken.must_list is not None
    assert taken.breaches == []
    assert taken.must_list.entries_after == after
    return topic.take_entries(taken.must_list.signed, entries(*numbers), after, NOW_NS)


def weights(breaches: Sequence[Breach]) -> list[Weight | None]:
    reports = [each.report(NOW_NS) for each in breaches]
    return [
        None if each is None else judge_safety(parse_unsigned(each), KEYS.by_node, NOW_NS).weight
        for each in reports
    ]


def look(topic: Topic, seconds: float) -> Followed:
    return topic.look(NOW_NS + int(seconds * SECOND_NS))


@pytest.mark.parametrize("numbers", [(), (2,), (2, 3, 5, 8)])
def test_take_head__of_what_is_here__asks_for_nothing(numbers: tuple[int, ...]) -> None:
    topic = holding(*numbers)

    assert topic.take_head(head(9, *numbers), ID, KEYS) == Followed()


def test_take_head__of_an_earlier_state__asks_for_nothing() -> None:
    topic = holding(2, 3, 5, 8)

    assert topic.take_head(head(4, 2, 3), ID, KEYS) == Followed()


def test_take_entries__some_are_not_here__are_asked_for_until_they_come() -> None:
    topic = holding(2, 8)

    assert listed(topic, head(9, 2, 3, 5, 8), 2, 3, 5, 8).breaches == []

    assert topic.requests() == [RangeRequest(ID, 2, 3), RangeRequest(ID, 4, 5)]
    topic.take([LOG[3], LOG[5]], PEER.node_id, KEYS, NOW_NS)
    assert topic.requests() == []
    assert topic.take_head(head(9, 2, 3, 5, 8), ID, KEYS) == Followed()
    assert look(topic, 99) == Followed()


def test_take_entries__nobody_serves_one__its_node_withholds_it() -> None:
    topic = holding(2, 8)
    signed = head(9, 2, 5, 8)
    listed(topic, signed, 2, 5, 8)

    assert look(topic, 9.9).breaches == []
    [breach] = look(topic, 10).breaches

    assert (breach.node_id, breach.misbehavior) == (ID, None)
    assert breach.reason == "its topic head names 5, which nobody serves"
    assert breach.topics is not None
    assert breach.topics.heads == (signed,)
    assert (topic.requests(), look(topic, 99).breaches) == ([], [])


@pytest.mark.parametrize(
    ("expires_at", "requests"),
    [(NOW, []), (NOW + 1, [RangeRequest(ID, 2, 3)]), (None, [RangeRequest(ID, 2, 3)])],
)
def test_take_entries__one_may_have_expired__is_asked_for_if_it_has_not(
    expires_at: int | None, requests: list[RangeRequest]
) -> None:
    topic = holding(2)
    first, expired = entries(2, 3)
    chain = Chain().extended([first, expired])
    signed = sign_topic_head(TopicHead(ID, TOPIC, 9, chain), NODE.key)
    must_list = topic.take_head(signed, ID, KEYS).must_list
    assert must_list is not None

    entry = expired._replace(expires_at=expires_at)
    topic.take_entries(must_list.signed, [first, entry], 0, NOW_NS)

    assert topic.requests() == requests


def test_take_entries__expired__holds_nothing_up_and_accuses_nobody() -> None:
    topic = holding(2)
    topic.hold([PEER.signed(4, seen={ID: 3})], PEER.node_id, KEYS, NOW_NS)
    entry = entries(3)[0]._replace(expires_at=NOW)
    chain = Chain().extended([*entries(2), entry])
    signed = sign_topic_head(TopicHead(ID, TOPIC, 9, chain), NODE.key)
    must_list = topic.take_head(signed, ID, KEYS).must_list
    assert must_list is not None

    topic.take_entries(must_list.signed, [*entries(2), entry], 0, NOW_NS)
    found = look(topic, 1)

    assert [each.envelope.place for each in found.applied] == [(200, 4)]
    assert found.applied[0].without == ()
    assert look(topic, 99).breaches == []
    assert topic.take_head(signed, ID, KEYS) == Followed()
    assert topic.expired() == [(ID, 3)]
    topic.take([LOG[3]], ID, KEYS, NOW_NS)
    assert topic.expired() == []


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [((2, 8), "lacks 5"), ((2, 5), "lacks 8"), ((), "lacks 2"), ((3,), "lacks 2")],
    ids=["one", "the last", "all", "other ones"],
)
def test_take_entries__the_head_lacks_what_is_here__is_proved(
    theirs: tuple[int, ...], reason: str
) -> None:
    topic = holding(2, 5, 8)

    [breach] = listed(topic, head(9, *theirs), *theirs).breaches

    assert breach.reason == f"its topic head up to 9 {reason}"
    assert weights([breach]) == [Weight.PROVED]


def test_take_entries__behind_a_head_that_was_the_same__proves_it_with_both() -> None:
    topic = holding(2, 3)
    topic.take_head(head(4, 2, 3), ID, KEYS)
    topic.take([LOG[5], LOG[8]], ID, KEYS, NOW_NS)

    [breach] = listed(topic, head(9, 2, 3, 8), 8, after=4).breaches

    assert breach.topics is not None
    assert (len(breach.topics.heads), breach.topics.entries) == (2, tuple(entries(8)))
    assert weights([breach]) == [Weight.PROVED]


def test_take_entries__one_came_late__are_compared_from_the_first() -> None:
    topic = holding(2, 8)
    topic.take_head(head(9, 2, 8), ID, KEYS)
    topic.take([LOG[5]], PEER.node_id, KEYS, NOW_NS)

    [breach] = listed(topic, head(9, 2, 8), 2, 8).breaches

    assert weights([breach]) == [Weight.PROVED]


def test_take_head__contradicts_an_earlier_one__is_proved_by_both() -> None:
    topic = holding(2, 3)
    topic.take_head(head(4, 2, 3), ID, KEYS)

    found = topic.take_head(head(4, 2), ID, KEYS)

    assert [each.reason for each in found.breaches] == ["two different heads up to 4"]
    assert weights(found.breaches) == [Weight.PROVED]


def test_take_head__the_later_one_came_first__is_proved_too() -> None:
    topic = holding()
    topic.take_head(head(9, 2), ID, KEYS)

    found = topic.take_head(head(4, 2, 3), ID, KEYS)

    assert weights(found.breaches) == [Weight.PROVED]


def test_take_entries__more_than_a_report_takes__is_kept_without_one() -> None:
    many = [Entry(number, bytes(32)) for number in range(10, 10 + MOST_ENTRIES)]
    theirs = [*entries(2), *many]
    signed = sign_topic_head(TopicHead(ID, TOPIC, 2000, Chain().extended(theirs)), NODE.key)
    topic = holding(2, 5)
    must_list = topic.take_head(signed, ID, KEYS).must_list
    assert must_list is not None

    [breach] = topic.take_entries(must_list.signed, theirs, 0, NOW_NS).breaches

    assert (breach.misbehavior, breach.envelopes) == (None, (LOG[5],))


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        head(9, 2, node=PEER),
        head(9, 2, topic=b"\0other"),
        head(9, 2, of=PEER.node_id),
    ],
    ids=["other bytes", "another's key", "another topic", "another originator"],
)
def test_take_head__that_nobody_can_be_held_to__is_refused(data: bytes) -> None:
    with pytest.raises(MalformedData):
        holding(2).take_head(data, ID, KEYS)


def test_take_head__of_a_node_that_is_not_registered__is_refused() -> None:
    with pytest.raises(MalformedAnswer, match="a node of the registry"):
        holding(2).take_head(head(9, 2), 300, KEYS)


@pytest.mark.parametrize(
    ("numbers", "after"),
    [((2, 5), 0), ((8, 2), 0), ((2, 3, 5, 8), 0), ((8,), 4)],
    ids=["too few", "in another order", "too many", "behind another id"],
)
def test_take_entries__that_do_not_give_the_hash__are_refused(
    numbers: tuple[int, ...], after: int
) -> None:
    topic = holding(3)
    must_list = topic.take_head(head(9, 2, 8), ID, KEYS).must_list
    assert must_list is not None

    with pytest.raises(MalformedData):
        topic.take_entries(must_list.signed, entries(*numbers), after, NOW_NS)


def test_take_entries__newer_than_the_head__are_left_for_the_next_one() -> None:
    topic = holding(2)

    assert listed(topic, head(4, 2, 3), 2, 3, 5, 8) == Followed()
    assert topic.requests() == [RangeRequest(ID, 2, 3)]


numbers = st.sets(st.sampled_from(sorted(LOG)))


@given(st.lists(st.tuples(st.integers(0, 9), numbers), max_size=6))
def test_take_head__honest_heads_in_any_order__accuse_nobody(
    steps: list[tuple[int, set[int]]],
) -> None:
    topic = Topic(TOPIC)
    for through, came in steps:
        topic.take([LOG[each] for each in sorted(came)], ID, KEYS, NOW_NS)
        theirs = [each for each in sorted(LOG) if each <= through]
        taken = topic.take_head(head(through, *theirs), ID, KEYS)
        assert taken.breaches == []
        if taken.must_list is not None:
            after = taken.must_list.entries_after
            behind = [each for each in theirs if each > after]
            found = topic.take_entries(taken.must_list.signed, entries(*behind), after, NOW_NS)
            assert found.breaches == []


@given(numbers, numbers)
def test_take_head__of_anything__names_each_difference(here: set[int], there: set[int]) -> None:
    topic = holding(*sorted(here))
    signed = head(9, *sorted(there))

    taken = topic.take_head(signed, ID, KEYS)

    assert (taken.must_list is None) == (here == there)
    if taken.must_list is not None:
        found = topic.take_entries(taken.must_list.signed, entries(*sorted(there)), 0, NOW_NS)
        asked = {
            number
            for each in topic.requests()
            for number in range(each.after + 1, each.through + 1)
        }
        assert there - here <= asked
        assert weights(found.breaches) == [Weight.PROVED] * bool(here - there)


def test_take_entries__one_is_missing__later_ones_of_its_originator_wait_for_it() -> None:
    topic = Topic(TOPIC)
    answer = [LOG[2], LOG[8], PEER.signed(4, seen={ID: 8})]
    topic.hold(answer, ID, KEYS, NOW_NS)
    listed(topic, head(9, 2, 5, 8), 2, 5, 8)

    assert [each.envelope.place for each in look(topic, 1).applied] == [(ID, 2)]
    # One that is here and held up is not asked for.
    assert topic.requests() == [RangeRequest(ID, 2, 5)]
    followed = topic.take([LOG[5]], PEER.node_id, KEYS, NOW_NS)

    assert [each.envelope.place for each in followed.applied] == [(ID, 5), (ID, 8), (200, 4)]


def test_look__what_a_head_names_does_not_come__later_ones_are_applied_without_it() -> None:
    topic = Topic(TOPIC)
    topic.hold([LOG[2], LOG[8], PEER.signed(4, seen={ID: 8})], ID, KEYS, NOW_NS)
    listed(topic, head(9, 2, 5, 8), 2, 5, 8)
    look(topic, 1)

    found = look(topic, 10)

    assert [each.envelope.place for each in found.applied] == [(ID, 8), (200, 4)]
    assert [each.reason for each in found.breaches] == [
        "its topic head names 5, which nobody serves"
    ]


def promising(number: int, *held: int) -> Topic:
    """A topic whose node signed an answer to a publish, and that holds some envelopes."""
    topic = holding(*held)
    topic.promise([read_verified(LOG[number])])
    return topic


def read_verified(data: bytes) -> VerifiedEnvelope:
    envelope = read_envelope(data, ID, KEYS).envelope
    assert envelope is not None
    return envelope


def test_take_head__has_no_more_than_is_held__denies_what_was_promised() -> None:
    topic = promising(5, 2, 3)

    [breach] = listed(topic, head(9, 2, 3), 2, 3).breaches

    assert breach.reason == "its topic head up to 9 lacks 5"
    assert weights([breach]) == [Weight.PROVED]
    assert topic.promised() == []


def test_take_head__does_not_reach_a_promise__shows_nothing() -> None:
    topic = promising(5, 2, 3)

    assert topic.take_head(head(4, 2, 3), ID, KEYS) == Followed()
    assert topic.promised() == [(ID, 5)]


def test_take_head__has_another_envelope_in_a_promises_place__is_proved() -> None:
    topic = holding(2)
    topic.promise([read_verified(NODE.signed(5, 1.0))])
    topic.take([LOG[5]], ID, KEYS, NOW_NS)

    [breach] = listed(topic, head(9, 2, 5), 2, 5).breaches

    assert weights([breach]) == [Weight.PROVED]


def test_take_entries__have_what_was_promised__it_is_asked_for_and_nobody_accused() -> None:
    topic = promising(5, 2)

    assert listed(topic, head(9, 2, 5), 2, 5).breaches == []

    assert topic.promised() == []
    assert topic.requests() == [RangeRequest(ID, 2, 5)]


def test_promise__is_served__is_settled_and_a_later_head_asks_for_nothing() -> None:
    topic = promising(5, 2)

    assert topic.promised() == [(ID, 5)]
    topic.take([LOG[5]], PEER.node_id, KEYS, NOW_NS)

    assert topic.promised() == []
    assert topic.take_head(head(9, 2, 5), ID, KEYS) == Followed()


def test_promise__a_head_was_read_before__evidence_begins_behind_that_head() -> None:
    topic = holding(2, 3)
    assert topic.take_head(head(3, 2, 3), ID, KEYS) == Followed()
    topic.promise([read_verified(LOG[5])])

    [breach] = listed(topic, head(9, 2, 3), after=3).breaches

    assert weights([breach]) == [Weight.PROVED]
    assert breach.topics is not None and len(breach.topics.heads) == 2
