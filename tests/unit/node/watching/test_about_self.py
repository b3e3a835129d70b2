"""Other nodes' reports about this node: proofs are shown, and claims alarm nobody."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from chainkit.misbehavior.report import safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.methods import QUERY_REPORTS
from chainkit.protocol.proto.message_api_pb2 import (
    MisbehaviorReport,
    QueryMisbehaviorReportsRequest,
    QueryMisbehaviorReportsResponse,
)
from chainkit.types import BlockReference, Node
from chainkit_node.peers.client import PeerRefused, PeerSilent
from chainkit_node.peers.directory import Listing
from chainkit_node.watching import about_self
from chainkit_node.watching.about_self import NEW_NS, ReportsAboutSelf
from chainkit_node.watching.rounds import ROUND_SECONDS, Rounds
from support.network.simulation.loop import run
from support.reporting import ACCUSED, KEYS, NOW_NS, OTHER, OWN, claim, double, proof, slow

PAGE = 10
LISTING = Listing(
    {each: Node(each, key.public_key, "http://x:1", True) for each, key in KEYS.items()},
    OWN,
    BlockReference(1, bytes(32)),
)


@dataclass
class World:
    """Nodes with the reports that each hosts, by its time, or the error of each question."""

    hosts: Mapping[int, Sequence[tuple[int, bytes]] | Exception] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    own_id: int | None = OWN
    rewinds: bool = False
    """The hosts answer from the beginning, whatever they are asked for."""

    def listing(self) -> Listing:
        return Listing(LISTING.nodes, self.own_id, LISTING.block)

    def connect(self, node: Node) -> Any:
        return Peer(self, node.node_id)

    def play(self, rounds: float = 2.0) -> ReportsAboutSelf:
        """Ask for some rounds."""

        async def story() -> ReportsAboutSelf:
            tested = ReportsAboutSelf(
                self.listing,
                self.connect,
                Rounds(random.Random(1)),
                asyncio.get_running_loop().time,
                lambda: NOW_NS,
            )
            task = asyncio.ensure_future(tested.run())
            await asyncio.sleep(rounds * ROUND_SECONDS)
            assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return tested

        found: list[ReportsAboutSelf] = []

        async def keep() -> None:
            found.append(await story())

        run(keep())
        return found[0]


@dataclass
class Peer:
    world: World
    node_id: int

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        assert method == QUERY_REPORTS
        self.world.asked.append(self.node_id)
        hosted = self.world.hosts.get(self.node_id, ())
        if isinstance(hosted, Exception):
            raise hosted
        after = QueryMisbehaviorReportsRequest.FromString(request).after_ns
        page = [each for each in hosted if each[0] > after or self.world.rewinds][:PAGE]
        reports = [
            MisbehaviorReport(server_time_ns=time_ns, unsigned_misbehavior_report=report)
            for time_ns, report in page
        ]
        return QueryMisbehaviorReportsResponse(reports=reports).SerializeToString()

    async def close(self) -> None:
        """There is nothing to close."""


def at_times(*reports: bytes, first_ns: int = NOW_NS - 1000) -> list[tuple[int, bytes]]:
    return [(first_ns + number, each) for number, each in enumerate(reports)]


def test_reports__with_a_proof_against_this_node__are_shown_and_counted_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    both = at_times(proof(3, OWN), claim(4, OWN), proof(5, ACCUSED))
    tested = World({ACCUSED: both, OTHER: both}).play()

    hosted = tested.hosted()
    assert sorted(hosted) == [ACCUSED, OTHER]
    assert [(len(each.proofs), each.claimed) for each in hosted.values()] == [(1, 1), (1, 1)]
    assert tested.new_proofs() == 1
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "hosts a proof against this node: two different envelopes 3" in record.getMessage()


def test_reports__that_prove_nothing__alarm_nobody(caplog: pytest.LogCaptureFixture) -> None:
    kind = Misbehavior.DUPLICATE_SEQUENCE_ID
    # The evidence is about another node.
    false = safety_report(OWN, kind, double(3, ACCUSED), NOW_NS, is_from_node=False)
    lies = at_times(claim(4, OWN), slow(1, OWN), false, b"no report", b"")
    tested = World({ACCUSED: lies}).play()

    assert {each: len(found.proofs) for each, found in tested.hosted().items()} == {ACCUSED: 0}
    assert tested.hosted()[ACCUSED].claimed == 3
    assert tested.new_proofs() == 0
    assert not caplog.records


def test_proof__that_was_stored_days_ago__is_shown_and_no_news() -> None:
    old = at_times(proof(3, OWN), first_ns=NOW_NS - NEW_NS - 1)

    tested = World({ACCUSED: old}).play()

    assert len(tested.hosted()[ACCUSED].proofs) == 1
    assert tested.new_proofs() == 0


def test_reports__more_than_one_round_reads__are_read_in_the_next_ones() -> None:
    many = at_times(*(claim(each, OWN) for each in range(2, 2 + 3 * PAGE)))
    world = World({ACCUSED: many})

    tested = world.play(rounds=6.0)

    assert tested.hosted()[ACCUSED].claimed == 3 * PAGE
    assert 4 <= world.asked.count(ACCUSED) <= 12


def test_reports__one_round__judges_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(about_self, "MOST_JUDGED", 2)
    world = World({ACCUSED: at_times(*(claim(each, OWN) for each in range(2, 9)))})

    tested = world.play(rounds=2.0)

    assert tested.hosted()[ACCUSED].claimed == 2 * world.asked.count(ACCUSED)


def test_host__answers_from_the_beginning_again_and_again__is_believed_once() -> None:
    world = World({ACCUSED: at_times(claim(2, OWN))}, rewinds=True)

    tested = world.play(rounds=6.0)

    assert tested.hosted()[ACCUSED].claimed == 1
    assert world.asked.count(ACCUSED) > 3


def test_hosts__of_another_make_or_silent_or_broken__hold_up_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lacking = PeerRefused("node 200", "reports", "UNIMPLEMENTED")
    lacking.code = grpc.StatusCode.UNIMPLEMENTED
    caplog.set_level(logging.INFO)
    for error, lines in ((lacking, 0), (PeerSilent("node 200", "a", "b"), 1), (ValueError(), 1)):
        caplog.clear()
        tested = World({ACCUSED: error, OTHER: at_times(proof(3, OWN))}).play(rounds=4.0)

        assert sorted(tested.hosted()) == [OTHER]
        told = [each for each in caplog.records if "could not be asked" in each.getMessage()]
        assert [each.levelno for each in told] == [logging.INFO] * lines


def test_node__that_is_not_registered__asks_nobody() -> None:
    world = World({ACCUSED: at_times(proof(3, OWN))}, own_id=None)

    assert world.play().hosted() == {}
    assert world.asked == []
