"""A node whose PostgreSQL fails over to a standby while payers publish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

import grpc
import pytest

from chainkit.protocol.originated_envelope import parse_originated
from localnet.postgres import Postgres
from support.chains.chain import Deployment
from support.command_line import run
from support.indexer.standby import Standby, of_either, wait_for_standby
from support.network.real_nodes import RealNetwork, RealNode, real_network, until


@dataclass
class Pair:
    """A node on the first of two servers, and another one, which has a database of its own."""

    network: RealNetwork
    stack: ExitStack
    primary: Postgres
    standby: Standby
    acknowledged: list[bytes] = field(default_factory=list)

    @property
    def nodes(self) -> list[RealNode]:
        return self.network.nodes

    def publish(self, count: int = 1) -> list[bytes]:
        published = self.nodes[0].publish(count)
        self.acknowledged += published
        return published

    def both_hold_all(self) -> bool:
        """Whether both nodes have all that was acknowledged, and nothing else."""
        node_id = self.nodes[0].node_id
        one, other = (each.holds(node_id) for each in self.nodes)
        return one == other and set(self.acknowledged) <= set(one)


@pytest.fixture(scope="module")
def pair(local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with ExitStack() as stack:
        primary = stack.enter_context(Postgres(fsync="off"))
        database = primary.new_database()
        standby = stack.enter_context(Standby(primary, fsync="off"))
        wait_for_standby(primary)
        folder = tmp_path_factory.mktemp("standby")
        network = stack.enter_context(real_network(local_deployment, folder))
        for each in (of_either(database, primary, standby), None):
            network.add(each, has_record=False)
        for node in network.nodes:
            node.listens()
        for node in network.nodes:
            node.originates()
        yield Pair(network, stack, primary, standby)


def ids(envelopes: list[bytes]) -> list[int]:
    return [parse_originated(each).envelope.sequence_id for each in envelopes]


@pytest.mark.conforms("N7")
def test_primary__fails_twice_under_publishes__nothing_is_lost_and_no_id_signed_again(
    pair: Pair,
) -> None:
    node, other = pair.nodes
    fails_with_a_synchronous_standby(pair)
    until(pair.both_hold_all)
    held = ids(node.holds(node.node_id))
    assert held == list(range(1, len(held) + 1))
    until(lambda: node.attention() == other.attention() == set())

    published, again = fails_with_a_standby_that_is_behind(pair)
    assert ids(again) == [ids(published)[-1] + 1]
    until(pair.both_hold_all)
    assert ids(node.holds(node.node_id))[-4:] == ids([*published, *again])
    until(lambda: node.attention() == other.attention() == set())


def fails_with_a_synchronous_standby(pair: Pair) -> None:
    """The primary is gone while a payer publishes, and the standby takes its place."""
    node, ended = pair.nodes[0], Event()

    def publishes() -> None:
        while not ended.is_set():
            # While neither server takes writes, the node refuses.
            with suppress(grpc.RpcError):
                pair.publish()

    payer = Thread(target=publishes)
    payer.start()
    try:
        until(lambda: len(pair.acknowledged) > 20)
        pair.primary.stop(immediately=True)
        until(lambda: "docs/runbook/database-unavailable.md" in status(node))
        before = len(pair.acknowledged)
        pair.standby.promote()
        until(lambda: len(pair.acknowledged) > before + 20)
    finally:
        ended.set()
        payer.join()


def fails_with_a_standby_that_is_behind(pair: Pair) -> tuple[list[bytes], list[bytes]]:
    """The other node alone has the last envelopes; return these, and the next one."""
    primary, port = pair.standby, pair.primary.port
    behind = pair.stack.enter_context(Standby(primary, port, fsync="off"))
    behind.stop()
    published = pair.publish(3)
    until(pair.both_hold_all)
    primary.stop(immediately=True)
    behind.start()
    behind.promote()
    again: list[bytes] = []
    until(lambda: bool(again.extend(pair.publish()) or again))
    return published, again


def status(node: RealNode) -> str:
    """Return the answer to an operator, also an error."""
    found = run("node", "status", "--url", node.monitor)
    return f"{found.out} {found.err}"
