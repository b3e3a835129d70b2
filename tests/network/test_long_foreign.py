"""A node of another make among three of ours: ten minutes of load, silences, and two lies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.signed import SignedReport, take_apart
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import parse_originated
from support import publishes
from support.chains.chain import Deployment
from support.network.api import Api
from support.network.foreign_node import ForeignProcess, foreign_process
from support.network.real_nodes import RealNetwork, RealNode, becomes, real_network, until
from support.seeds import only_in_soak

SECONDS = 600.0
SILENT_SECONDS = 75.0
"""Longer than any node of ours ever waited for a frame."""
BURST = 200
PAUSE_SECONDS = 0.02
NEVER_GIVEN = 10_000_000
PAGE = 1_000
PATIENCE_SECONDS = 420.0
"""By its own word, an envelope that a node never signed is missing after five minutes."""

pytestmark = [only_in_soak, pytest.mark.timeout(2400)]


@dataclass(frozen=True)
class Mixed:
    """Three nodes of ours, and one of another make that lies to the first."""

    network: RealNetwork
    foreign: ForeignProcess

    @property
    def ours(self) -> list[RealNode]:
        return self.network.nodes

    def reports(self, node: RealNode) -> list[SignedReport]:
        return [take_apart(each) for each in node.api.query_reports()]

    def found(self, node: RealNode) -> set[tuple[int, Misbehavior, Weight]]:
        """Return who is accused by the reports of a node, of what, and what these are worth.

        Slow answers are left out: a machine that has other work to do makes anybody slow.
        """
        keys = self.network.keys() | {self.foreign.node_id: self.foreign.key.public_key}
        return {
            (
                each.node_id,
                each.report.misbehavior,
                Weight.CLAIMED
                if each.report.misbehavior.is_liveness
                else judge_safety(each.report, keys, time.time_ns()).weight,
            )
            for each in self.reports(node)
            if each.report.misbehavior is not Misbehavior.SLOW_NODE
        }

    def log(self, api: Api, originator_id: int) -> dict[int, bytes]:
        """Return all that a node has of an originator, page by page."""
        found: dict[int, bytes] = {}
        while True:
            cursor = {originator_id: max(found, default=0)}
            page = api.query(originators=[originator_id], cursor=cursor, limit=PAGE)
            if not page:
                return found
            found |= {parse_originated(each).envelope.sequence_id: each for each in page}


@pytest.fixture
def mixed(local_deployment: Deployment, tmp_path: Path) -> Iterator[Mixed]:
    with real_network(local_deployment, tmp_path) as network, foreign_process(b"\5" * 32) as other:
        ours = [network.add() for _ in range(3)]
        for each in ours:
            each.listens()
        for each in ours:
            each.originates()
        node_id = network.register(other.key, other.url)
        peers = {each.node_id: each.gate.url for each in ours}
        other.begin(node_id, peers, victim=ours[0].node_id)
        yield Mixed(network, other)


def test_foreign_node__ten_minutes_of_load__all_is_equal_and_its_lies_alone_are_reported(
    mixed: Mixed,
) -> None:
    foreign, ours = mixed.foreign, mixed.ours
    ends_at = time.monotonic() + SECONDS

    def load(node: RealNode) -> None:
        while time.monotonic() < ends_at:
            node.publish()
            time.sleep(PAUSE_SECONDS)

    def bursts() -> None:
        while time.monotonic() < ends_at:
            foreign.publish(BURST, PAUSE_SECONDS)
            time.sleep(SILENT_SECONDS)

    with ThreadPoolExecutor(len(ours) + 1) as pool:
        works = [*(pool.submit(load, each) for each in ours), pool.submit(bursts)]
        lie = publishes.group_message(seen={ours[1].node_id: NEVER_GIVEN})
        foreign.api.publish(publishes.paid(lie, foreign.node_id))
        disputed = foreign.sign_twice()
        for each in works:
            each.result()

    lies = {
        (foreign.node_id, Misbehavior.CAUSAL_ORDERING, Weight.CLAIMED),
        (foreign.node_id, Misbehavior.DUPLICATE_SEQUENCE_ID, Weight.PROVED),
    }
    becomes(lambda: all(mixed.found(each) >= lies for each in ours), PATIENCE_SECONDS)
    assert [mixed.found(each) for each in ours] == [lies] * len(ours)

    def is_equal(originator_id: int) -> bool:
        logs = [mixed.log(each.api, originator_id) for each in (*ours, foreign)]
        if originator_id == foreign.node_id:
            assert len({log.pop(disputed) for log in logs}) == 2
        return logs == [logs[0]] * len(logs)

    for originator_id in (*mixed.network.keys(), foreign.node_id):
        until(lambda: is_equal(originator_id))  # noqa: B023
    # A silence is no reason to subscribe again, and what a node lacks is said once.
    assert foreign.streams() == {each.node_id: 1 for each in ours}
    for each in ours:
        assert each.attention() == set()
        assert each.events("peer_lacks") == 1
        assert not each.events("comparison_failed") + each.events("peer_stream_failed")
