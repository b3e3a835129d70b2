"""When a node makes payer reports, and how it asks others: bounded, and whatever they answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import grpc
import pytest

from chainkit.protocol.charges import Charge
from chainkit.protocol.methods import QUERY_PAYER_REPORTS
from chainkit.protocol.proto import node_api_pb2
from chainkit.service.refusals import NotReady
from chainkit.types import Node
from chainkit_node.accounting.books import Standing
from chainkit_node.accounting.reporter import (
    MOST_ROUND_SECONDS,
    PayerReporter,
    round_seconds,
)
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.peers.client import PeerRefused, PeerSilent
from chainkit_node.serving.payer_reports import PayerReportsHandler
from chainkit_node.settings import ServingLimits
from chainkit_node.storage.troubled_reports import Unattested
from chainkit_node.watching.rounds import Rounds
from support.accounting import WAIT_NS, Bookkeeper, bookkeepers, listed
from support.network.simulation.loop import run

A, B, C = 100, 200, 300
LOG = {each: Charge(b"\1" * 20, 0, 100, 30) for each in range(1, 5)}

Answer = Callable[[bytes], Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Bookkeeper]:
    return bookkeepers(tmp_path_factory.mktemp("reporter"), listed(A, B, C))


@pytest.fixture
def nodes(made: list[Bookkeeper]) -> list[Bookkeeper]:
    for each in made:
        each.forgets()
        each.holds(A, LOG)
    return made


@dataclass
class World:
    """Other nodes that answer as a test says: by their own handlers unless it says otherwise."""

    nodes: list[Bookkeeper]
    answers: dict[int, Answer] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    knows_own_log: bool = True

    def connect(self, node: Node) -> Any:
        return Peer(self, node.node_id)

    def may_report(self) -> None:
        if not self.knows_own_log:
            raise NotReady("own log", "known", "not yet")

    def play(
        self, reader: Bookkeeper, seconds: float = 40.0, reports: bool = True
    ) -> PayerReporter:
        """Run one node's task for so long."""
        reporter = PayerReporter(
            reader.books,
            lambda: reader.listing,
            self.connect,
            self.may_report,
            Rounds(random.Random(1), 1.0),
            lambda: asyncio.get_running_loop().time(),
            WAIT_NS / 10**9 if reports else 0.0,
        )

        async def for_a_while() -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await reporter.run()

        run(for_a_while())
        return reporter


@dataclass
class Peer:
    world: World
    node_id: int

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        assert method == QUERY_PAYER_REPORTS
        self.world.asked.append(self.node_id)
        answer = self.world.answers.get(self.node_id)
        if answer is not None:
            return bytes(answer(request))
        [node] = [each for each in self.world.nodes if each.node_id == self.node_id]
        return await served(node, request)

    async def close(self) -> None:
        """There is nothing to close."""


class AtOnce(EnvelopeLog):
    """A log whose readers need no thread."""

    async def in_thread(self, read: Callable[[], Any]) -> Any:
        return read()


async def served(node: Bookkeeper, request: bytes, limits: ServingLimits | None = None) -> bytes:
    with closing(AtOnce(node.store)) as log:
        handler = PayerReportsHandler(log, limits or ServingLimits())
        return await handler.query_payer_reports(request)


def silent(request: bytes) -> bytes:
    raise PeerSilent("node", "an answer", "none")


def without_method(request: bytes) -> bytes:
    error = PeerRefused("node", "envelopes", "UNIMPLEMENTED")
    error.code = grpc.StatusCode.UNIMPLEMENTED
    raise error


def other_bytes(request: bytes) -> bytes:
    return b"\xff"


def made_up(request: bytes) -> bytes:
    report = node_api_pb2.SignedPayerReport(unsigned_payer_report=b"\x08\x64\x10\x01\x18\x04")
    return node_api_pb2.QueryPayerReportsResponse(reports=[report]).SerializeToString()


def test_run__three_nodes_one_after_the_other__all_have_an_attested_report(
    nodes: list[Bookkeeper],
) -> None:
    world = World(nodes)

    for each in (*nodes, *nodes):
        world.play(each)

    assert [each.attested(A) for each in nodes] == [4, 4, 4]
    assert nodes[0].bytes_of(A) == nodes[1].bytes_of(A) == nodes[2].bytes_of(A)


@pytest.mark.parametrize("answer", [silent, other_bytes, made_up])
def test_run__no_majority_answers__makes_no_report(nodes: list[Bookkeeper], answer: Answer) -> None:
    world = World(nodes, {B: answer, C: answer})

    world.play(nodes[0])

    assert {B, C} <= set(world.asked)
    assert nodes[0].bytes_of(A) == []


def test_run__one_of_two_others_answers__makes_a_report(nodes: list[Bookkeeper]) -> None:
    World(nodes, {B: silent}).play(nodes[0])

    assert len(nodes[0].bytes_of(A)) == 1


def test_run__others_of_another_make__makes_a_report(nodes: list[Bookkeeper]) -> None:
    World(nodes, {B: without_method, C: without_method}).play(nodes[0])

    assert len(nodes[0].bytes_of(A)) == 1
    assert nodes[0].attested(A) == 0


@pytest.mark.parametrize(
    "bad",
    [
        made_up(b""),
        # A report of three bytes, which are no message; and one whose totals are none.
        b"\x0a\x03\xff\xff\xff",
        b"\x0a\x05\x1a\x03\xff\xff\xff",
    ],
)
def test_run__one_report_of_an_answer_is_broken_or_nobodys__takes_all_others(
    nodes: list[Bookkeeper], bad: bytes
) -> None:
    reader, liar, _ = nodes
    for each in (reader, liar):
        each.holds(B, LOG)
    liar.makes()
    good = node_api_pb2.QueryPayerReportsResponse(reports=liar.reports(B)).SerializeToString()
    asked: list[bytes] = []

    def mixed(request: bytes) -> bytes:
        asked.append(request)
        # Both are messages of one repeated field: their bytes follow each other.
        return bad + good + bad

    World(nodes, {B: mixed, C: silent}).play(reader, seconds=6.0)

    assert reader.attested(B) == 4
    assert reader.bytes_of(A) == [], "an answer with such a report is none"
    assert len(asked) == 2, "the next page is asked for in the same round"


def test_standing__own_report_without_signatures_and_a_refused_one__are_counted(
    nodes: list[Bookkeeper],
) -> None:
    reader, other, _ = nodes
    for each in (reader, other):
        each.holds(B, LOG)
    other.makes()
    [report] = other.totals(B)
    reader.takes(replace(report, totals=[report.totals[0]._replace(bytes=1)]))

    standing = World(nodes, {B: without_method, C: without_method}).play(reader).standing()

    assert standing == Standing(1, Unattested(1, 4, reader.now_ns))
    for each in (*nodes, *nodes):
        found = World(nodes).play(each).standing()
    assert found == Standing(0, None)
    assert World(nodes).play(reader).standing() == Standing(1, None)


def test_run__own_log_is_not_known__makes_no_report(nodes: list[Bookkeeper]) -> None:
    World(nodes, knows_own_log=False).play(nodes[0])

    assert nodes[0].bytes_of(A) == []


def test_run__without_reports_of_its_own__still_signs_others(nodes: list[Bookkeeper]) -> None:
    a, b, _ = nodes
    b.holds(B, LOG)
    a.makes()

    World(nodes).play(b, reports=False)

    assert b.attested(A) == 4
    assert b.bytes_of(B) == []


@pytest.mark.parametrize("most", [1, 2])
def test_query__more_reports_than_one_answer_has__goes_on_behind_the_last(
    nodes: list[Bookkeeper], most: int
) -> None:
    a = nodes[0]
    for first in (5, 6, 7):
        a.makes()
        a.holds(A, {first: LOG[1]})
    found: list[int] = []
    request = node_api_pb2.QueryPayerReportsRequest()
    query = request.queries.add(originator_node_id=A)

    for _ in range(4):
        limits = ServingLimits(payer_reports=most)
        data = run(served(a, request.SerializeToString(), limits))
        answer = node_api_pb2.QueryPayerReportsResponse.FromString(data)
        ends = [
            node_api_pb2.PayerReport.FromString(each.unsigned_payer_report).last_sequence_id
            for each in answer.reports
        ]
        assert len(ends) <= most
        found += ends
        query.after_sequence_id = found[-1]

    assert found == [4, 5, 6]


@pytest.mark.parametrize(
    ("wait", "seconds"), [(0, MOST_ROUND_SECONDS), (43_200, 600), (2, 1), (100, 5)]
)
def test_round__by_how_often_reports_are_made__is_bounded(wait: float, seconds: float) -> None:
    assert round_seconds(wait) == seconds
