"""The hub alone: which stream gets what, what a full queue does, and what a reorg takes back."""

from __future__ import annotations

import asyncio

import pytest

from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.live.hub import Hub, Subscription
from chainkit_node.types import Selection

TOPIC = b"\x00group"
OTHER = b"\x00other"


def envelope(sequence_id: int, topic: bytes = TOPIC, originator_id: int = 0) -> StoredEnvelope:
    return StoredEnvelope(originator_id, sequence_id, 0, topic, None, b"e%d" % sequence_id)


def of_topic(hub: Hub, topic: bytes = TOPIC) -> Subscription:
    return hub.subscribe([Selection(topics=frozenset([topic]))])


def of_originator(hub: Hub, originator_id: int) -> Subscription:
    return hub.subscribe([Selection(originator_ids=frozenset([originator_id]))])


def test_publish__streams_of_topics_and_originators__each_gets_what_it_wants() -> None:
    hub = Hub()
    group, other, node = of_topic(hub), of_topic(hub, OTHER), of_originator(hub, 100)

    rows = [envelope(1), envelope(2, OTHER), envelope(3, TOPIC, 100)]
    hub.publish(rows)

    assert group.take(1000) == [rows[0], rows[2]]
    assert other.take(1000) == [rows[1]]
    assert node.take(1000) == [rows[2]]
    assert group.take(1000) == []


def test_publish__refused_update__stands_in_its_originator_s_order_and_not_on_its_topic() -> None:
    hub = Hub()
    group, chain = of_topic(hub), of_originator(hub, 0)

    hub.publish([envelope(1), envelope(2)], refused={(0, 1)})

    assert group.take(1000) == [envelope(2)]
    assert chain.take(1000) == [envelope(1), envelope(2)]


def test_unsubscribe__streams_of_one_topic__leaves_the_others() -> None:
    hub = Hub()
    first, second = of_topic(hub), of_topic(hub)

    hub.unsubscribe(first)
    hub.publish([envelope(1)])

    assert len(hub) == 1
    assert first.take(1000) == []
    assert second.take(1000) == [envelope(1)]


def test_publish__more_than_may_wait__empties_the_queue_and_tells_the_stream() -> None:
    hub = Hub(queue_bytes=5)
    stream = of_topic(hub)

    hub.publish([envelope(1), envelope(2)])
    assert not stream.is_behind
    hub.publish([envelope(3)])

    assert stream.is_behind
    assert stream.take(1000) == []
    stream.catch_up()
    hub.publish([envelope(4)])
    assert stream.take(1000) == [envelope(4)]


def test_take__a_part__leaves_the_rest_to_a_reorg_and_to_the_next() -> None:
    async def play() -> None:
        hub = Hub(queue_bytes=8)
        stream = of_topic(hub)
        hub.publish([envelope(1), envelope(2), envelope(3)])

        assert stream.take(1) == [envelope(1)]
        assert await stream.wait(60)
        hub.retract({0: 2})
        hub.publish([envelope(3, TOPIC, 100)])
        assert stream.take(1000) == [envelope(2), envelope(3, TOPIC, 100)]
        assert not await stream.wait(0.01)
        assert not stream.is_behind

    asyncio.run(play())


def test_skip__a_large_commit__concerns_streams_that_may_want_it() -> None:
    hub = Hub()
    group, chain, node = of_topic(hub), of_originator(hub, 0), of_originator(hub, 100)

    hub.skip([0])

    assert (group.is_behind, chain.is_behind, node.is_behind) == (True, True, False)


def test_retract__what_was_sent_lies_above__tells_the_ancestor() -> None:
    hub = Hub()
    above, below = of_topic(hub), of_topic(hub)
    above.sends([envelope(7)])
    below.sends([envelope(5)])

    hub.retract({0: 5})

    assert above.taken_back == {0: 5}
    assert below.taken_back is None
    assert hub.generation == 1


@pytest.mark.parametrize(("begun", "told"), [(6, {0: 5}), (5, None)])
def test_retract__the_reader_began_above__is_told(begun: int, told: dict[int, int] | None) -> None:
    hub = Hub()
    stream = hub.subscribe([Selection(frozenset([TOPIC]), cursor={0: begun})])

    hub.retract({0: 5})

    assert stream.taken_back == told


def test_retract__twice_before_the_reader_looks__the_lowest_ancestor_counts() -> None:
    hub = Hub()
    stream = of_topic(hub)
    stream.sends([envelope(10)])

    hub.retract({0: 5})
    hub.retract({0: 8})

    assert stream.taken_back == {0: 5}


def test_retract__queued_envelopes__vanish_and_those_of_other_originators_stay() -> None:
    hub = Hub(queue_bytes=7)
    stream = of_topic(hub)
    hub.publish([envelope(5), envelope(6), envelope(9, TOPIC, 100)])

    hub.retract({0: 5})

    # The bytes of what vanished are free again.
    hub.publish([envelope(6)])
    assert stream.taken_back is None
    assert stream.take(1000) == [envelope(5), envelope(9, TOPIC, 100), envelope(6)]
    assert not stream.is_behind


@pytest.mark.parametrize("happens", ["publish", "fall behind", "retract"])
def test_wait__something_to_look_at__ends_at_once(happens: str) -> None:
    async def waits() -> bool:
        hub = Hub()
        stream = of_topic(hub)
        stream.sends([envelope(8)])
        assert not await stream.wait(0)
        {
            "publish": lambda: hub.publish([envelope(9)]),
            "fall behind": lambda: hub.skip([0]),
            "retract": lambda: hub.retract({0: 3}),
        }[happens]()
        return await stream.wait(60)

    assert asyncio.run(waits())


def test_insert__what_was_sent_lies_above__tells_from_where_to_go_on() -> None:
    hub = Hub()
    above, below, other = of_topic(hub), of_topic(hub), of_topic(hub, b"\0other")
    above.sends([envelope(7)])
    below.sends([envelope(3)])
    below.put(envelope(7))
    other.sends([envelope(7)])

    hub.insert([envelope(5)])

    assert above.taken_back == {0: 4}
    # The database has it now, before what was queued.
    assert (below.taken_back, below.is_behind) == (None, True)
    assert (other.taken_back, other.is_behind) == (None, False)
    assert hub.generation == 1


def test_insert__the_reader_began_above__is_told() -> None:
    hub = Hub()
    stream = hub.subscribe([Selection(frozenset([TOPIC]), cursor={0: 9})])

    hub.insert([envelope(5)])

    assert stream.taken_back == {0: 4}


def test_retract__a_gap_was_filled_before__both_are_told() -> None:
    hub = Hub()
    stream = of_topic(hub)
    stream.sends([envelope(10), envelope(9, TOPIC, 100)])

    hub.insert([envelope(4, TOPIC, 100)])
    hub.retract({0: 8})

    assert stream.taken_back == {0: 8, 100: 3}


def test_go_back__after_a_reorg__the_next_reorg_above_that_place_takes_nothing_back() -> None:
    hub = Hub()
    stream = of_topic(hub)
    stream.sends([envelope(10), envelope(9, TOPIC, 100)])
    hub.retract({0: 5})

    stream.go_back()
    hub.publish([envelope(6)])

    assert (stream.taken_back, stream.is_behind, stream.take(1000)) == (None, True, [])
    hub.retract({0: 5})
    assert stream.taken_back is None
    hub.insert([envelope(8, TOPIC, 100)])
    assert stream.taken_back == {100: 7}
