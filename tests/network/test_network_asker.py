"""Nodes of every kind, asked by one that stands outside: foreign ones, slow ones, and liars."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import Node
from chainkit_node.inspection.network import Accusation, NodeAnswer
from chainkit_node.inspection.network_asker import NetworkAsker
from support.network.originator import Originator
from support.reporting import ACCUSED, KEYS, NOW_NS, OTHER, claim, proof, slow

HEALTH = "grpc.health.v1.Health"
REPLICATION = "xmtp.xmtpv4.message_api.ReplicationApi"
MISBEHAVIOR = "xmtp.xmtpv4.message_api.MisbehaviorApi"
PATIENCE = 10.0

EMPTY: Mapping[int, Sequence[bytes]] = {}

Method = Callable[[bytes], bytes]


@contextmanager
def served(**methods: Method) -> Iterator[str]:
    """Serve methods named such as ``Check``; all others are unimplemented."""
    names = {"Check": HEALTH, "QueryEnvelopes": REPLICATION, "QueryMisbehaviorReports": MISBEHAVIOR}
    server = grpc.server(ThreadPoolExecutor(4))
    for name, method in methods.items():
        handler = grpc.unary_unary_rpc_method_handler(_behavior(method))
        generic = grpc.method_handlers_generic_handler(names[name], {name: handler})
        server.add_generic_rpc_handlers([generic])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def _behavior(method: Method) -> Callable[[bytes, Any], bytes]:
    return lambda request, context: method(request)


def serving(request: bytes) -> bytes:
    status = health_pb2.HealthCheckResponse.SERVING
    answer: bytes = health_pb2.HealthCheckResponse(status=status).SerializeToString()
    return answer


def log_of(logs: Mapping[int, Sequence[bytes]] = EMPTY) -> Method:
    """QueryEnvelopes over logs, by originator; ids begin at 1."""

    def query(request: bytes) -> bytes:
        parsed = message_api_pb2.QueryEnvelopesRequest.FromString(request)
        [originator_id] = parsed.query.originator_node_ids
        after = parsed.query.last_seen.node_id_to_sequence_id[originator_id]
        found = logs.get(originator_id, [])[after : after + parsed.limit]
        return Envelopes(envelopes=found).SerializeToString()

    return query


def chain_log(count: int) -> list[bytes]:
    """Envelopes of the chain, without content."""
    return [
        sign_originator_envelope(bytes([8, 0, 16, each]), b"\x12" * 32, KEYS[ACCUSED])
        for each in range(1, count + 1)
    ]


def reports_of(*unsigned: bytes) -> Method:
    """QueryMisbehaviorReports over reports, two a page."""

    def query(request: bytes) -> bytes:
        after = message_api_pb2.QueryMisbehaviorReportsRequest.FromString(request).after_ns
        answer = message_api_pb2.QueryMisbehaviorReportsResponse()
        for number, each in enumerate(unsigned, start=1):
            if number > after and len(answer.reports) < 2:
                answer.reports.add(server_time_ns=number, unsigned_misbehavior_report=each)
        return answer.SerializeToString()

    return query


def node(node_id: int, url: str, is_enabled: bool = True) -> Node:
    return Node(node_id, KEYS[node_id].public_key, url, is_enabled)


def look(
    *nodes: Node,
    chain: Mapping[int, int | None] | None = None,
    patience: float = PATIENCE,
    times: int = 1,
) -> tuple[list[NodeAnswer], tuple[Accusation, ...]]:
    """Look so often; return the last answers, and the accusations."""

    async def run() -> tuple[list[NodeAnswer], tuple[Accusation, ...]]:
        asker = NetworkAsker(patience)
        try:
            for _ in range(times):
                answers = await asker.look(nodes, chain or {})
            return list(answers), asker.reported.accusations()
        finally:
            await asker.close()

    return asyncio.run(run())


@pytest.mark.parametrize("guess", [None, 6, 11, 40])
def test_look__node_without_our_own_methods__is_searched(guess: int | None) -> None:
    logs = {0: chain_log(11), ACCUSED: Originator(ACCUSED, KEYS[ACCUSED]).log(11)}
    with served(QueryEnvelopes=log_of(logs)) as url:
        [answer], accusations = look(node(ACCUSED, url), chain={0: guess}, times=2)

    assert (answer.health, answer.reports, answer.error) == (None, None, None)
    assert answer.lacks == ("health checks", "comparisons of logs", "topic heads", "reports")
    assert answer.held == {0: 11, ACCUSED: 11}
    assert not answer.is_silent
    assert accusations == ()


def test_look__nodes_that_host_reports__are_counted_once_over_several_looks() -> None:
    made = [proof(1, OTHER), proof(1, OTHER), slow(1), claim(9), proof(2, OTHER)]
    methods = {"Check": serving, "QueryEnvelopes": log_of()}
    with (
        served(**methods, QueryMisbehaviorReports=reports_of(*made)) as url,
        served(**methods, QueryMisbehaviorReports=reports_of(made[0], b"no report")) as second,
    ):
        nodes = node(ACCUSED, url), node(OTHER, second)
        answers, accusations = look(*nodes, times=2)

    assert [(each.health, each.reports) for each in answers] == [("SERVING", 5), ("SERVING", 2)]
    assert {each.lacks for each in answers} == {("comparisons of logs", "topic heads")}
    assert accusations == (
        Accusation(ACCUSED, proved=0, claimed=2, hosts=(ACCUSED,)),
        Accusation(OTHER, proved=2, claimed=0, hosts=(ACCUSED, OTHER)),
    )


def test_look__node_that_hangs__takes_no_longer_than_its_patience() -> None:
    release = threading.Event()

    def hang(request: bytes) -> bytes:
        release.wait()
        return b""

    with (
        served(Check=hang) as hanging,
        served(Check=serving, QueryEnvelopes=hang) as half,
        served(Check=serving, QueryEnvelopes=log_of()) as well,
    ):
        try:
            nodes = node(100, hanging), node(ACCUSED, half), node(OTHER, well)
            began = time.monotonic()
            [silent, slow_one, good], _ = look(*nodes, patience=1.0)
            taken = time.monotonic() - began
        finally:
            release.set()

    assert taken < 5.0
    assert (silent.is_silent, silent.error) == (True, "no answer within 1 s")
    assert (slow_one.is_silent, slow_one.error) == (False, "not all answers within 1 s")
    assert set(slow_one.held.values()) == {None}
    assert (good.error, good.held) == (None, {100: 0, ACCUSED: 0, OTHER: 0})


def test_look__node_that_answers_nonsense__is_told_and_the_others_are_seen() -> None:
    not_after = message_api_pb2.QueryMisbehaviorReportsResponse()
    not_after.reports.add(server_time_ns=0, unsigned_misbehavior_report=slow(NOW_NS))
    with (
        served(Check=lambda request: b"\xff\xff") as garbled,
        served(
            Check=serving,
            QueryEnvelopes=log_of(),
            QueryMisbehaviorReports=lambda request: not_after.SerializeToString(),
        ) as endless,
    ):
        [first, second, third], _ = look(
            node(100, garbled), node(ACCUSED, endless), node(OTHER, "ftp://\x1b[2J")
        )

    assert first.error == "answer: expected HealthCheckResponse, got other bytes"
    assert second.error == "reports: expected some after 0, got 0"
    assert (third.is_silent, third.url) == (True, "ftp://\\x1b[2J")
    assert third.error is not None
    assert "expected http://host:port" in third.error
