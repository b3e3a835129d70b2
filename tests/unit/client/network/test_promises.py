"""Answers to publishes that are kept until their topics have them, also over restarts."""

from __future__ import annotations

from chainkit_client.network.promises import PROMISE_SECONDS, Promises
from chainkit_client.reading.verified import Keys, VerifiedEnvelope, read_envelope
from chainkit_client.storage.store import Store
from chainkit_client.topics.following import Topic
from support import publishes
from support.client.served import KEYS, NODE, NOW_NS, TOPIC
from support.network.originator import SECOND_NS


def promise(number: int, payload: bytes | None = None) -> VerifiedEnvelope:
    envelope = read_envelope(NODE.signed(number, 0, payload), 100, KEYS).envelope
    assert envelope is not None
    return envelope


def welcome(number: int) -> VerifiedEnvelope:
    return promise(number, publishes.paid(publishes.welcome(), 100))


def promises(store: Store, later_seconds: float = 0) -> Promises:
    return Promises(store, lambda: NOW_NS + int(later_seconds * SECOND_NS))


def places(found: list[VerifiedEnvelope]) -> list[tuple[int, int]]:
    return [each.place for each in found]


def test_promises__process_ends__the_next_has_them_for_a_day(store: Store) -> None:
    promises(store).keep(promise(2))

    assert places(promises(store).of(TOPIC, KEYS)) == [(100, 2)]
    assert promises(store).of(b"\1another", KEYS) == []
    assert promises(store, PROMISE_SECONDS).of(TOPIC, KEYS) == []


def test_promises__registry_lacks_the_node__are_not_asked_for(store: Store) -> None:
    promises(store).keep(promise(2))

    assert promises(store).of(TOPIC, Keys({200: KEYS.by_node[200]})) == []


def test_promises__topic_has_one_of_two__the_other_is_kept(store: Store) -> None:
    kept, both = promises(store), [promise(2), promise(3)]
    topic = Topic(TOPIC)
    for each in both:
        kept.keep(each)
    topic.promise(both)
    topic.take([both[0].envelope], 100, KEYS, NOW_NS)

    kept.settle(topic, kept.of(TOPIC, KEYS))

    assert places(kept.of(TOPIC, KEYS)) == places(promises(store).of(TOPIC, KEYS)) == [(100, 3)]


def test_of_unread_topics__some_stay_open__each_has_its_turn(store: Store) -> None:
    kept = promises(store)
    for each in (promise(1), welcome(2), welcome(3), welcome(4)):
        kept.keep(each)

    turns = [places(kept.of_unread_topics(KEYS, 2)) for _ in range(2)]

    assert turns == [[(100, 2), (100, 3)], [(100, 4), (100, 2)]]
