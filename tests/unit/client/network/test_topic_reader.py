"""A topic read from several nodes: what one leaves out comes from another, or is evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Sequence

import pytest

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit.nodes.outcomes import NodeLost
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.topic_heads import Entry
from chainkit.signatures import SigningKey
from chainkit_client.network import topic_reader
from chainkit_client.network.topic_reader import NodesSilent, TopicReader
from chainkit_client.reading.verified import Keys
from chainkit_client.topics.following import Followed, Topic
from support import publishes
from support.client.nodes import FakeNode
from support.client.served import KEYS, NODE, NOW_NS, PEER, TOPIC, of_chain
from support.network.originator import SECOND_NS, Originator

LOST = NodeLost("node", "an answer", "none")


class Clock:
    def __init__(self) -> None:
        self.now = NOW_NS

    def __call__(self) -> int:
        return self.now


class Network:
    """Two nodes, and one reader."""

    def __init__(self, at_once: int = 2) -> None:
        self.one, self.other = FakeNode(NODE), FakeNode(PEER)
        self.clock = Clock()
        self.reader = TopicReader(
            Topic(TOPIC), lambda: [self.one, self.other], lambda: KEYS, self.clock, at_once
        )

    def publish(self, *envelopes: bytes, topic: bytes = TOPIC) -> None:
        for node in (self.one, self.other):
            node.hold(*envelopes, topic=topic)

    def read(self) -> Followed:
        return asyncio.run(self.reader.read())

    def later(self, seconds: float) -> Followed:
        self.clock.now += int(seconds * SECOND_NS)
        return self.read()


@pytest.fixture
def network() -> Network:
    return Network()


def places(found: Followed) -> list[tuple[int, int]]:
    return [each.envelope.place for each in found.applied]


def proved(found: Followed) -> list[tuple[int, str]]:
    """The nodes that are proved to have lied, and why."""
    shown = []
    for breach in found.breaches:
        report = breach.report(NOW_NS)
        assert report is not None, breach.reason
        judgement = judge_safety(parse_unsigned(report), KEYS.by_node, NOW_NS)
        assert judgement.weight is Weight.PROVED
        shown.append((breach.node_id, breach.reason))
    return shown


LOG = [NODE.signed(each, each) for each in (2, 3, 5)]


def test_read__honest_nodes__applies_all_and_then_what_is_new(network: Network) -> None:
    network.publish(*LOG, of_chain(4, client=publishes.commit()))

    first = network.read()
    network.publish(PEER.signed(7, 9, seen={100: 5, 0: 4}))
    later = network.read()

    assert sorted(places(first)) == [(0, 4), (100, 2), (100, 3), (100, 5)]
    assert places(later) == [(200, 7)]
    assert (first.breaches, later.breaches, network.reader.silent) == ([], [], {})


def test_read__long_topic__goes_on_page_by_page(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_reader, "PAGE", 2)
    network.publish(*[NODE.signed(each, each) for each in range(1, 12)])

    assert places(network.read()) == [(100, each) for each in range(1, 12)]


def test_read__pages_too_long_for_the_line__come_in_smaller_ones(
    network: Network,
) -> None:
    log = [NODE.signed(each, each) for each in range(1, 41)]
    network.publish(*log)

    def as_the_line_can(page: list[bytes]) -> list[bytes]:
        if len(page) > 10:
            raise LOST
        return page

    for node in (network.one, network.other):
        node.has_heads = False
        node.doctored = as_the_line_can
    first = places(network.read())
    rounds = [*first, *(each for _ in range(4) for each in places(network.read()))]

    # One round makes progress, and what came is not asked for again.
    assert len(first) >= 7
    assert rounds == [(100, each) for each in range(1, 41)]
    assert network.one.questions < 25


def test_read__nodes_answer_nothing__are_asked_for_smaller_pages_and_for_whole_ones_again(
    network: Network,
) -> None:
    for node in (network.one, network.other):
        node.error = LOST

    for _ in range(2):
        with pytest.raises(NodesSilent):
            network.read()

    assert network.one.questions == network.other.questions == 8
    network.one.error = network.other.error = None
    network.publish(*LOG)
    assert places(network.read()) == [(100, 2), (100, 3), (100, 5)]


@pytest.mark.conforms("C10")
def test_read__one_node_hides_a_message__comes_from_the_other(network: Network) -> None:
    network.publish(*LOG)
    network.one.hidden = {(100, 3)}
    network.one.has_heads = network.other.has_heads = False

    assert places(network.read()) == [(100, 2), (100, 3), (100, 5)]


def among_three(hidden: Sequence[set[tuple[int, int]]], proved: Container[int] = ()) -> list[int]:
    """How often each of three nodes that hide some is asked, the preferred one first.

    The commits that they do not hide are applied.
    """
    nodes = [
        FakeNode(Originator(number, SigningKey(bytes([number]) * 32)), hidden=each)
        for number, each in enumerate(hidden, 1)
    ]
    for node in nodes:
        for number in (4, 5):
            client = publishes.commit()
            node.hold(of_chain(number, number, client=client, server=node.originator))
    keys = Keys({each.node_id: each.originator.key.public_key for each in nodes})
    reader = TopicReader(Topic(TOPIC), lambda: nodes, lambda: keys, lambda: NOW_NS, 2, proved)
    applied = places(asyncio.run(reader.read()))
    everything = {(0, 4), (0, 5)}
    assert set(applied) == everything.difference(
        set.intersection(*(each.hidden for each in nodes if each.questions))
    )
    return [each.questions > 0 for each in nodes]


FIRST, SECOND = {(0, 4)}, {(0, 5)}
BOTH = FIRST | SECOND


@pytest.mark.parametrize(
    ("hidden", "asked"),
    [
        ((set(), set(), set()), [True, True, False]),
        ((SECOND, SECOND, set()), [True, True, False]),
        ((SECOND, BOTH, set()), [True, True, True]),
        ((FIRST, SECOND, set()), [True, True, True]),
    ],
)
def test_read__answers_of_two_nodes_differ__all_are_asked(
    hidden: Sequence[set[tuple[int, int]]], asked: list[bool]
) -> None:
    assert among_three(hidden) == asked


def test_read__node_is_proved_to_have_lied__another_is_asked_in_its_place() -> None:
    assert among_three((SECOND, SECOND, set()), {1}) == [False, True, True]
    # Nobody else answers: what it serves is verified all the same.
    assert among_three((set(), set(), set()), {1, 2, 3}) == [True, True, False]


def test_read__only_the_originator_was_asked_and_hides_one__its_head_shows_it() -> None:
    network = Network(at_once=1)
    network.publish(*LOG)
    network.one.hidden = {(100, 3)}

    found = network.read()

    assert sorted(places(found)) == [(100, 2), (100, 3), (100, 5)]
    assert found.breaches == []


def test_read__the_only_node_that_has_it_hides_it__is_evidence_after_a_while() -> None:
    network = Network()
    network.one.hold(*LOG)
    network.one.hidden = {(100, 3)}

    assert network.read().breaches == []
    [breach] = network.later(11).breaches

    assert breach.reason == "its topic head names 3, which nobody serves"


def test_read__a_head_leaves_a_message_out__is_proved(network: Network) -> None:
    network.publish(*LOG)
    network.one.left_out = {3}

    assert proved(network.read()) == [(100, "its topic head up to 5 lacks 3")]


def test_read__a_head_and_all_answers_leave_it_out__is_proved_by_another_node(
    network: Network,
) -> None:
    network.publish(*LOG)
    network.one.hidden, network.one.left_out = {(100, 5)}, {5}

    assert proved(network.read()) == [(100, "its topic head up to 5 lacks 5")]


def test_read__a_head_has_another_message_in_a_place__is_asked_for_and_both_are_found() -> None:
    false, true = (NODE.signed(3, 3.0, seen=seen) for seen in ({}, {100: 2}))
    network = Network(at_once=1)
    # The originator's head is that of its true log, which another node has from it.
    network.publish(LOG[0], true, LOG[2])
    network.one.doctored = lambda page: [false if each == true else each for each in page]

    found, again = network.read(), network.read()

    assert places(found) == [(100, 2), (100, 3), (100, 5)]
    assert [each.envelope for each in found.second] == [true]
    assert set(proved(found)) == {
        (100, "its topic head up to 5 lacks 3"),
        (100, "envelope 3 beside 3"),
    }
    # Each fact is evidence once, and nothing is asked for again.
    assert (again.second, again.breaches, network.reader.topic.disputed()) == ([], [], [])


def test_read__two_heads_contradict_each_other__is_proved(network: Network) -> None:
    network.publish(*LOG)
    network.read()
    network.one.left_out = {2}

    reasons = [reason for _, reason in proved(network.read())]

    assert "two different heads up to 5" in reasons


def test_read__dependency_that_no_node_answered__is_asked_for_by_its_range() -> None:
    network = Network(at_once=1)
    network.publish(*LOG)
    network.one.hold(PEER.signed(9, 9, seen={200: 4}))
    network.other.hold(PEER.signed(4, 4), PEER.signed(9, 9, seen={200: 4}))

    assert (200, 9) in places(network.read())


def test_read__dependency_of_another_topic__holds_nothing_up(network: Network) -> None:
    network.publish(
        PEER.signed(4, 4, publishes.paid(publishes.welcome(b"\1" * 32), 200)), topic=b"x"
    )
    network.publish(NODE.signed(2, 2, seen={200: 4}))

    found = network.read()

    assert places(found) == [(100, 2)]
    assert found.applied[0].without == ()


def test_read__many_dependencies_of_another_topic__hold_nobody_up_and_accuse_nobody(
    network: Network,
) -> None:
    welcomes = [
        PEER.signed(each, each, publishes.paid(publishes.welcome(b"\1" * 32), 200))
        for each in range(1, 21)
    ]
    network.publish(*welcomes, topic=b"x")
    network.publish(*(NODE.signed(each, each, seen={200: each}) for each in range(1, 21)))

    found, later = network.read(), network.later(11)

    assert places(found) == [(100, each) for each in range(1, 21)]
    assert all(each.without == () for each in found.applied)
    assert (found.breaches, later.breaches) == ([], [])


class HidesOfTopics(FakeNode):
    """A node that serves an envelope only where its place is asked for."""

    async def query(
        self, request: message_api_pb2.QueryEnvelopesRequest, seconds: float
    ) -> Sequence[bytes]:
        self.hidden = {(200, 4)} if request.query.topics else set()
        return await super().query(request, seconds)


def test_read__dependency_is_hidden_in_answers_about_the_topic__comes_by_its_place() -> None:
    network = Network()
    network.one, network.other = HidesOfTopics(NODE), HidesOfTopics(PEER, left_out={4})
    network.publish(NODE.signed(2, 2, seen={200: 4}), PEER.signed(4, 4))

    assert places(network.read()) == [(200, 4), (100, 2)]


def test_read__dependency_that_nobody_has__is_given_up_after_the_patience(network: Network) -> None:
    network.publish(NODE.signed(2, 2, seen={200: 4}))

    assert places(network.read()) == []
    found = network.later(11)

    assert places(found) == [(100, 2)]
    assert found.applied[0].without == ((200, 4),)
    assert [each.node_id for each in found.breaches] == [100]


def test_read__a_node_is_silent__the_other_one_answers(network: Network) -> None:
    network.publish(*LOG)
    network.one.error = LOST

    assert len(network.read().applied) == 3
    assert set(network.reader.silent) == {100}


def test_read__all_are_silent__is_an_error(network: Network) -> None:
    network.one.error = network.other.error = LOST

    with pytest.raises(NodesSilent, match="100: node: expected an answer"):
        network.read()


def again(page: Sequence[bytes]) -> list[bytes]:
    return [LOG[0]]


def garbage(page: Sequence[bytes]) -> list[bytes]:
    return [b"\xff"]


@pytest.mark.parametrize("doctored", [again, garbage])
def test_read__pages_that_lead_nowhere__end_with_that_node(
    network: Network, doctored: Callable[[list[bytes]], list[bytes]]
) -> None:
    network.publish(*LOG)
    network.one.doctored = doctored

    assert sorted(places(network.read())) == [(100, 2), (100, 3), (100, 5)]
    assert set(network.reader.silent) == {100}
    assert network.one.questions < 10


def test_read__node_without_heads__is_read_without_them(network: Network) -> None:
    network.publish(*LOG)
    network.one.has_heads = network.other.has_heads = False

    assert len(network.read().applied) == 3
    assert network.reader.silent == {}


def test_read__entries_that_never_end__end_with_that_node(network: Network) -> None:
    network.publish(*LOG)
    network.one.left_out = {3}
    network.one.doctored_entries = lambda entries: [Entry(9, bytes(32))]

    assert network.read().breaches == []
    assert network.one.head_questions < 10
