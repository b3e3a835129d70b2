"""The publisher on a node's database: what it lets through to the sequencer, and when."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from chainkit.errors import StoreUnavailable
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.payer_envelope import parse_payer_envelope, sign_payer_envelope
from chainkit.service.refusals import InvalidRequest, NotReady, Overloaded, Unauthenticated
from chainkit.signatures import SigningKey, address_of
from chainkit.types import TopicKind
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.types import StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.originating.freshness import STALE_SECONDS, ChainFreshness
from chainkit_node.originating.payers import PayerLimiter
from chainkit_node.originating.publisher import Conflict, Originator, Publisher
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.originating.storage_space import LOOK_SECONDS, StorageSpace
from chainkit_node.settings import PayerLimits, StorageLimits
from chainkit_node.types import Selection
from support import mls, publishes
from support.chains.fake_chain import FakeChain, Post
from support.indexer.fake_node import KEY, FakeNode

NODE_ID = publishes.NODE_ID
OTHER_PAYER = SigningKey(b"\x11" * 32)
GROUP = Post("group", id_length=16)


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Registered:
    """A registry that lists the node."""

    def __init__(self, number: int) -> None:
        self.number = number

    def node_id(self) -> int:
        return self.number


class Node:
    def __init__(
        self,
        path: Path,
        number: int = NODE_ID,
        payers: PayerLimits | None = None,
    ) -> None:
        self.number = number
        self.clock = Clock()
        self.chain = FakeChain()
        self.indexer = FakeNode(self.chain, path)
        self.log = EnvelopeLog(self.indexer.store)
        self.freshness = ChainFreshness(self.clock)
        self.free: int | None = None
        self.space = StorageSpace(lambda most: self.free, StorageLimits(free_bytes=100), self.clock)
        self.now_ns = mls.SECONDS * 10**9
        self.sequencer = Sequencer(
            self.indexer.store, lambda: number, KEY, lambda: self.now_ns, lambda rows: None
        )
        registered = Registered(number)
        originator = Originator(
            self.log,
            self.sequencer,
            registered,
            self.freshness,
            self.space,
            PayerLimiter(payers or PayerLimits(), self.clock),
            lambda topic, last_id: {},
            lambda: self.now_ns,
        )
        self.publisher = Publisher(originator)

    def step(self) -> StepResult:
        result = self.indexer.step()
        self.freshness.succeeded(result, 0)
        self.space.succeeded(result, 0)
        return result

    def publish(self, *client_envelopes: bytes) -> int:
        envelopes = [publishes.paid(each, self.number) for each in client_envelopes]
        return len(self.publisher.accept(envelopes).result(60))

    def publish_for(self, payer: SigningKey) -> int:
        envelope = sign_payer_envelope(publishes.welcome(), self.number, payer, None)
        return len(self.publisher.accept([envelope]).result(60))

    def close(self) -> None:
        self.publisher.close()
        self.sequencer.close()
        self.log.close()
        self.indexer.store.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "node.db")
    yield made
    made.close()


@pytest.mark.conforms("N18")
def test_accept__chain_out_of_reach__is_refused_until_a_step_succeeds(node: Node) -> None:
    with pytest.raises(NotReady, match="expected an answer of the chain within 30 s"):
        node.publish(publishes.welcome())

    node.step()
    assert node.publish(publishes.welcome()) == 1
    node.clock.seconds += STALE_SECONDS
    assert node.publish(publishes.welcome()) == 1
    node.clock.seconds += 1
    with pytest.raises(NotReady):
        node.publish(publishes.welcome())
    node.step()
    assert node.publish(publishes.welcome()) == 1


@pytest.mark.conforms("N16")
@pytest.mark.parametrize("payload", [publishes.commit(), publishes.identity_update()])
def test_accept__payload_that_needs_the_total_order__is_not_originated(
    node: Node, payload: bytes
) -> None:
    node.step()

    with pytest.raises(InvalidRequest, match="a gateway posts it to the chain"):
        node.publish(payload)


@pytest.mark.conforms("N14")
def test_accept__commit_on_the_chain__must_be_named_by_messages_of_its_group(node: Node) -> None:
    identifier = GROUP.named_identifier
    message = publishes.group_message(identifier=identifier, target=NODE_ID)
    node.step()
    assert node.publish(message) == 1

    node.chain.mine([GROUP])
    node.step()
    with pytest.raises(Conflict) as caught:
        node.publish(message)
    assert caught.value.cursor == {0: 1, NODE_ID: 1}
    named = publishes.group_message(identifier=identifier, seen={0: 1}, target=NODE_ID)
    assert node.publish(named) == 1

    node.chain.fork(1, [], [])
    while node.log.chain_cursor() != {0: 0}:
        node.step()
    assert node.publish(message) == 1


def test_accept__message_that_names_a_commit__is_between_it_and_the_next_of_its_second(
    node: Node,
) -> None:
    identifier = GROUP.named_identifier
    topic = TopicKind.GROUP_MESSAGE.topic(identifier)
    node.chain.mine([replace(GROUP, times=2)])
    node.step()
    first, second = node.log.page(Selection(topics=frozenset([topic])), 10, 10**6).rows
    node.now_ns = node.chain.head.timestamp * 10**9
    before = publishes.group_message(identifier=b"o" * 16, target=NODE_ID)
    named = [
        publishes.group_message(identifier=identifier, seen={0: each}, target=target)
        for each, target in ((second.sequence_id, NODE_ID), (first.sequence_id, 0))
    ]

    answers = node.publisher.accept([publishes.paid(each, NODE_ID) for each in (before, *named)])

    times = [parse_originated(each).envelope.originator_ns for each in answers.result(60)]
    assert times[0] < first.originator_ns < second.originator_ns < times[1] < times[2]
    assert times[2] < second.originator_ns + 1_000


@pytest.mark.conforms("N19")
def test_accept__one_of_several_is_refused__stores_none(node: Node) -> None:
    node.step()

    with pytest.raises(InvalidRequest):
        node.publish(publishes.welcome(), publishes.welcome(b"short"))

    topic = TopicKind.WELCOME.topic(publishes.INSTALLATION_KEY)
    _, latest = node.log.position([topic])
    assert latest == {topic: (0, 0)}
    assert node.publish(publishes.welcome()) == 1
    cursor, _ = node.log.position([topic])
    assert cursor[NODE_ID] == 1


@pytest.mark.conforms("N19")
def test_accept__many_requests_at_once__each_gets_its_own_answer(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.step()
    identifier = GROUP.named_identifier
    node.chain.mine([GROUP])
    node.step()
    message = publishes.group_message(identifier=identifier, target=NODE_ID)
    named = publishes.group_message(identifier=identifier, seen={0: 1}, target=NODE_ID)
    welcome, broken = publishes.welcome(), publishes.welcome(b"short")
    looks, position = [], EnvelopeLog.position

    def counted(log: EnvelopeLog, topics: Collection[bytes]) -> Any:
        looks.append(set(topics))
        return position(log, topics)

    monkeypatch.setattr(EnvelopeLog, "position", counted)
    entered, begin = Event(), Event()
    check = node.freshness.check

    def waits() -> None:
        entered.set()
        assert begin.wait(60)
        check()

    monkeypatch.setattr(node.freshness, "check", waits)
    requests = [[welcome], [message], [named, welcome], [broken], [welcome]] * 6
    paid = [[publishes.paid(each, NODE_ID) for each in request] for request in requests]
    # The first is judged by itself; the others wait for it, and are judged together.
    answers = [node.publisher.accept(paid[0])]
    assert entered.wait(60)
    answers += [node.publisher.accept(envelopes) for envelopes in paid[1:]]
    answers[4].cancel()
    begin.set()

    errors = [None if each.cancelled() else each.exception(60) for each in answers]
    kinds = [None, Conflict, None, InvalidRequest, None] * 6
    assert [error and type(error) for error in errors] == kinds
    assert answers[4].cancelled()
    stored = [
        parse_originated(envelope).envelope.sequence_id
        for answer, error in zip(answers, errors, strict=True)
        if error is None and not answer.cancelled()
        for envelope in answer.result()
    ]
    assert stored == list(range(1, 24))
    topic = TopicKind.GROUP_MESSAGE.topic(identifier)
    assert looks == [{topic}]


def test_accept__database_is_away__is_told_to_all_that_wait(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.step()
    message = publishes.group_message(identifier=GROUP.named_identifier, target=NODE_ID)

    def fails(log: EnvelopeLog, topics: Collection[bytes]) -> Any:
        raise StoreUnavailable("database", "an answer", "none")

    with monkeypatch.context() as patch:
        patch.setattr(EnvelopeLog, "position", fails)
        with pytest.raises(StoreUnavailable):
            node.publish(message)
        assert node.publish(publishes.welcome()) == 1
    assert node.publish(message) == 1


@pytest.mark.conforms("N10")
def test_accept__one_payload_through_two_originators__each_gives_it_an_id_of_its_own(
    node: Node, tmp_path: Path
) -> None:
    other = Node(tmp_path / "other.db", number=200)
    payload = publishes.welcome()
    for each in (node, other):
        each.step()

    assert (node.publish(payload), other.publish(payload)) == (1, 1)
    assert other.publish(payload) == 1

    for each, count in ((node, 1), (other, 2)):
        rows = [StoredEnvelope._make(row) for row in each.indexer.rows(schema.envelopes)]
        assert [row.sequence_id for row in rows] == list(range(1, count + 1))
        stored = [parse_originated(row.envelope).envelope for row in rows]
        payers = [parse_payer_envelope(one.payer_envelope) for one in stored]
        assert [one.originator_id for one in stored] == [each.number] * count
        assert [payer.client_envelope for payer in payers] == [payload] * count
    other.close()


def test_accept__too_little_space_is_free__is_refused_until_there_is_more(node: Node) -> None:
    node.free = 99
    node.step()
    with pytest.raises(NotReady) as caught:
        node.publish(publishes.welcome())
    assert str(caught.value).startswith(
        "publish: expected at least 100 bytes free for the database, got 99"
    )
    assert node.space.short() == str(caught.value)

    node.free = 100
    node.clock.seconds += LOOK_SECONDS
    node.step()
    assert node.publish(publishes.welcome()) == 1
    assert node.space.short() is None


def test_accept__more_bytes_of_one_payer_than_its_rate__are_refused_until_later(
    tmp_path: Path,
) -> None:
    with closing(Node(tmp_path / "node.db", payers=PayerLimits(100, 1000))) as node:
        node.step()
        assert node.publish(*[publishes.welcome(data=bytes(600))] * 2) == 2
        with pytest.raises(Overloaded, match="at most 100 bytes a second from one payer, got more"):
            node.publish(publishes.welcome())
        assert node.publish_for(OTHER_PAYER) == 1

        node.clock.seconds += 20
        assert node.publish(publishes.welcome()) == 1


def test_accept__payer_that_is_not_allowed__is_refused_with_its_address(tmp_path: Path) -> None:
    limits = PayerLimits(allowed=(address_of(OTHER_PAYER.public_key).lower(),))
    with closing(Node(tmp_path / "node.db", payers=limits)) as node:
        node.step()
        with pytest.raises(Unauthenticated) as caught:
            node.publish(publishes.welcome())
        own = address_of(publishes.PAYER.public_key)
        assert str(caught.value) == f"payer: expected one for whom this node publishes, got {own}"
        assert node.publish_for(OTHER_PAYER) == 1
