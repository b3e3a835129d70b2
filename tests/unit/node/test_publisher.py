"""The publisher on a node's database: what it lets through to the sequencer, and when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.payer_envelope import parse_payer_envelope
from chainkit.service.refusals import InvalidRequest, NotReady
from chainkit.types import TopicKind
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.types import StepResult
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.originating.freshness import STALE_SECONDS, ChainFreshness
from chainkit_node.originating.publisher import Conflict, Originator, Publisher
from chainkit_node.originating.sequencer import Sequencer
from support import mls, publishes
from support.chains.fake_chain import FakeChain, Post
from support.indexer.fake_node import KEY, FakeNode

NODE_ID = publishes.NODE_ID
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
    def __init__(self, path: Path, number: int = NODE_ID) -> None:
        self.number = number
        self.clock = Clock()
        self.chain = FakeChain()
        self.indexer = FakeNode(self.chain, path)
        self.log = EnvelopeLog(self.indexer.store)
        self.freshness = ChainFreshness(self.clock)
        now_ns = mls.SECONDS * 10**9
        self.sequencer = Sequencer(
            self.indexer.store, lambda: number, KEY, lambda: now_ns, lambda rows: None
        )
        registered = Registered(number)
        originator = Originator(
            self.log, self.sequencer, registered, self.freshness, lambda: now_ns
        )
        self.publisher = Publisher(originator)

    def step(self) -> StepResult:
        result = self.indexer.step()
        self.freshness.succeeded(result, 0)
        return result

    def publish(self, *client_envelopes: bytes) -> int:
        envelopes = [publishes.paid(each, self.number) for each in client_envelopes]
        return len(self.publisher.accept(envelopes).result(60))

    def close(self) -> None:
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


@pytest.mark.conforms("N19")
def test_accept__one_of_several_is_refused__stores_none(node: Node) -> None:
    node.step()

    with pytest.raises(InvalidRequest):
        node.publish(publishes.welcome(), publishes.welcome(b"short"))

    topic = TopicKind.WELCOME.topic(publishes.INSTALLATION_KEY)
    _, latest = node.log.position([topic])
    assert latest == {topic: 0}
    assert node.publish(publishes.welcome()) == 1
    cursor, _ = node.log.position([topic])
    assert cursor[NODE_ID] == 1


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
