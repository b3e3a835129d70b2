"""The times that real nodes and a real chain give: one order for whoever lists by time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from chainkit.protocol.envelope import ServedEnvelope, parse_originator_envelope
from chainkit.protocol.originated_envelope import parse_originated
from support import mls, publishes
from support.chain_times import chain_ns
from support.chains.chain import Deployment
from support.network.real_nodes import CHANCE, RealNetwork, RealNode, real_network, until

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("first", "second")]


@pytest.fixture(scope="module")
def network(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealNetwork]:
    with real_network(local_deployment, tmp_path_factory.mktemp("times")) as running:
        yield running


def added(network: RealNetwork) -> RealNode:
    node = network.add()
    node.listens()
    node.originates()
    return node


@pytest.fixture(scope="module")
def first(network: RealNetwork) -> RealNode:
    return added(network)


@pytest.fixture(scope="module")
def second(network: RealNetwork) -> RealNode:
    return added(network)


def commit(group_id: bytes, epoch: int) -> bytes:
    return publishes.group_message(mls.private_message(group_id, mls.COMMIT, epoch), group_id)


def message(group_id: bytes, seen: int, node: RealNode) -> bytes:
    client = publishes.group_message(identifier=group_id, seen={0: seen}, target=node.node_id)
    return publishes.paid(client, node.node_id)


def chain_of(*nodes: RealNode, last_id: int) -> list[ServedEnvelope]:
    """All of the chain, once each node holds it up to an id; the nodes sign the same bytes."""
    answers = []
    for node in nodes:
        until(lambda: len(node.holds(0)) >= last_id)  # noqa: B023
        answers.append([parse_originator_envelope(each) for each in node.holds(0)])
    unsigned = [[each.unsigned_originator_envelope for each in answer] for answer in answers]
    assert all(each == unsigned[0] for each in unsigned)
    assert [each.sequence_id for each in answers[0]] == list(range(1, last_id + 1))
    return answers[0]


def own_times(node: RealNode) -> list[int]:
    return [parse_originated(each).envelope.originator_ns for each in node.holds(node.node_id)]


def test_publish__two_payers_at_one_moment_and_a_kill__all_times_rise(first: RealNode) -> None:
    group_id = CHANCE.randbytes(32)
    payer_envelopes = [
        publishes.paid(publishes.group_message(identifier=group_id, target=first.node_id))
        for _ in range(60)
    ]
    for _ in range(2):
        with ThreadPoolExecutor(2) as threads:
            halves = payer_envelopes[:30], payer_envelopes[30:]
            list(threads.map(lambda some: first.api.publish(*some), halves))
        first.kill()
        first.restart()
        first.originates()
    first.publish()

    times = own_times(first)
    assert len(times) == 121
    assert all(earlier < later for earlier, later in pairwise(times))


def test_follow__blocks_of_one_timestamp__times_rise_and_are_the_same_on_all_nodes(
    network: RealNetwork, first: RealNode, second: RealNode
) -> None:
    chain, group_id = network.chain, CHANCE.randbytes(32)
    before = len(first.holds(0))
    # anvil's clock goes on from here: it stays the node's.
    timestamp = int(time.time()) + 1
    chain.pause_mining()
    try:
        for epoch in range(12):
            chain.publish_message(group_id, commit(group_id, epoch))
            if epoch % 4 == 3:
                chain.anvil.request("evm_setNextBlockTimestamp", timestamp)
                chain.mine()
    finally:
        chain.resume_mining()

    found = chain_of(first, second, last_id=before + 12)[before:]
    blocks = {int(chain.endpoint.receipt(each.transaction_hash)["blockNumber"], 16)
              for each in found}  # fmt: skip
    assert len(blocks) == 3
    times = [each.originator_ns for each in found]
    assert times == [chain_ns(timestamp, each.sequence_id) for each in found]
    assert times == sorted(set(times))


def test_publish__commits_and_messages_in_turns__times_have_the_order_of_what_was_done(
    network: RealNetwork, first: RealNode, second: RealNode
) -> None:
    chain, group_id = network.chain, CHANCE.randbytes(32)
    until(lambda: time.time() > chain.head().timestamp + 1)
    last_id = len(first.holds(0))
    done: list[int] = []
    for epoch in range(8):
        chain.publish_message(group_id, commit(group_id, epoch))
        last_id += 1
        done.append(chain_of(first, second, last_id=last_id)[-1].originator_ns)
        node = (first, second)[epoch % 2]
        [answer] = node.api.publish(message(group_id, last_id, node))
        done.append(parse_originated(answer).envelope.originator_ns)

    assert done == sorted(set(done))


def test_publish__through_two_nodes_right_after_a_commit__no_time_is_given_twice(
    network: RealNetwork, first: RealNode, second: RealNode
) -> None:
    chain, group_id = network.chain, CHANCE.randbytes(32)
    last_id = len(first.holds(0)) + 1
    chain.publish_message(group_id, commit(group_id, 1))
    named = chain_of(first, second, last_id=last_id)[-1]

    def sent(node: RealNode) -> list[int]:
        answers = node.api.publish(*[message(group_id, last_id, node)] * 50)
        return [parse_originated(each).envelope.originator_ns for each in answers]

    with ThreadPoolExecutor(2) as threads:
        times = [*threads.map(sent, (first, second))]

    found = [named.originator_ns, *times[0], *times[1]]
    assert len(set(found)) == 101
    assert min(found) == named.originator_ns
