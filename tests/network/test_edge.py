"""Envoy around nodes and a gateway, as their callers and their operator see it."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import closing, suppress
from pathlib import Path

import grpc
import pytest
from google.rpc import status_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from benchmarks.node.load import open_streams
from benchmarks.usage import process_cpu_seconds
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.edge.folders import PREFIX
from chainkit.types import TopicKind
from support import publishes
from support.network.api import REPLICATION, SECONDS, Api
from support.network.certificates import make_pair, write_pair
from support.network.edge_network import EdgeNetwork
from support.network.node_sdk import NodeSdkClient
from support.network.people import new_person
from support.network.real_nodes import becomes, until

CHANCE = random.Random(45)
_STREAMS = 900
_LOOK_SECONDS = 3.0


def published(edge: EdgeNetwork) -> tuple[bytes, bytes]:
    """Publish a welcome; return its topic and its envelope."""
    key = CHANCE.randbytes(32)
    paid = publishes.paid(publishes.welcome(key), edge.node.node_id)
    return TopicKind.WELCOME.topic(key), edge.node.api.publish(paid)[0]


def open_files(pid: int) -> set[Path]:
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        # The process opens and closes others meanwhile.
        with suppress(FileNotFoundError):
            found.add(each.readlink())
    return found


def test_publish__through_envoy__is_read_by_queries_and_by_streams(edge: EdgeNetwork) -> None:
    topic, envelope = published(edge)

    assert edge.node.api.query(topics=[topic]) == [envelope]
    assert edge.node.api.subscribe(topics=[topic], cursor={}).take(1) == [envelope]


def test_subscribe__before_anything_is_there__has_headers_and_a_frame_and_then_what_comes(
    edge: EdgeNetwork,
) -> None:
    key = CHANCE.randbytes(32)
    stream = edge.node.api.subscribe(topics=[TopicKind.WELCOME.topic(key)], cursor={})
    assert stream.call.initial_metadata() is not None
    assert stream.first_frame() == b""

    paid = publishes.paid(publishes.welcome(key), edge.node.node_id)
    assert edge.node.api.publish(paid) == stream.take(1)
    stream.close()


def test_refusal__of_a_method__has_code_words_and_the_same_status_in_details(
    edge: EdgeNetwork,
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        edge.node.api.publish(b"no envelope")

    error = caught.value
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    [details] = [v for k, v in error.trailing_metadata() if k == "grpc-status-details-bin"]
    status = status_pb2.Status.FromString(details)
    assert (status.code, status.message) == (error.code().value[0], error.details())


def test_call__of_no_method__is_unimplemented(edge: EdgeNetwork) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        edge.node.api.call("Nothing", b"")

    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_stream__deadline_passes_or_reader_goes__is_no_open_stream_any_more(
    edge: EdgeNetwork,
) -> None:
    # The peer's stream. Those of readers that have gone count until their next heartbeat.
    before = 1
    until(lambda: edge.node.metric("streams_open") == before)
    query = message_api_pb2.EnvelopesQuery(originator_node_ids=[0])
    request = message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString()
    with closing(Api(edge.url, is_own_connection=True)) as api:
        subscribe = api.channel.unary_stream(f"/{REPLICATION}/SubscribeEnvelopes")
        late = subscribe(request, timeout=1.0)
        with pytest.raises(grpc.RpcError) as caught:
            list(late)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: edge.node.metric("streams_open") == before)

        patient, gone = (subscribe(request, timeout=60.0) for _ in range(2))
        assert next(patient) == next(gone) == b""
        assert edge.node.metric("streams_open") == before + 2
        gone.cancel()
        # The heartbeat comes to the one, and finds that the other has gone.
        assert next(patient) == b""
        until(lambda: edge.node.metric("streams_open") == before + 1)
        patient.cancel()


def test_streams__hundreds_without_news__leave_the_processor_alone(edge: EdgeNetwork) -> None:
    # A loop that asks for the caller's going never sleeps: it takes all of a core that it gets.
    share = asyncio.run(_share_of_a_core(edge))

    assert share < 0.5
    until(lambda: edge.node.metric("streams_open") == 1)


async def _share_of_a_core(edge: EdgeNetwork) -> float:
    async with open_streams(edge.port, _STREAMS):
        until(lambda: edge.node.metric("streams_open") >= _STREAMS)
        spent, began = process_cpu_seconds(edge.node.pid), time.monotonic()
        await asyncio.sleep(_LOOK_SECONDS)
        spent = process_cpu_seconds(edge.node.pid) - spent
    return spent / (time.monotonic() - began)


def test_health_and_reflection__through_envoy__answer(edge: EdgeNetwork) -> None:
    channel = edge.node.api.channel
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    request = health_pb2.HealthCheckRequest(service=REPLICATION).SerializeToString()
    answer = health_pb2.HealthCheckResponse.FromString(check(request, timeout=SECONDS))
    assert answer.status == health_pb2.HealthCheckResponse.SERVING

    information = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    listing = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()
    answers = channel.stream_stream(information)(iter([listing, listing]), timeout=SECONDS)
    for each in answers:
        response = reflection_pb2.ServerReflectionResponse.FromString(each)
        names = {service.name for service in response.list_services_response.service}
        assert REPLICATION in names


def test_peer__behind_tls_at_envoy__replicates_and_is_replicated(edge: EdgeNetwork) -> None:
    node, peer = edge.node, edge.peer
    [ours], [theirs] = node.publish(1), peer.publish(1)

    until(lambda: ours in peer.holds(node.node_id) and theirs in node.holds(peer.node_id))


def test_node_sdk__gateway_and_node_behind_envoy__talk_in_a_group(
    edge: EdgeNetwork, tmp_path: Path
) -> None:
    ann, ben = (
        NodeSdkClient.register(edge.gateway_url, tmp_path / name, new_person())
        for name in ("ann", "ben")
    )
    with closing(ann), closing(ben):
        group = ann.create_group([ben.account])
        ann.send(group, "hello, ben")
        assert ben.join() == [group]
        ben.send(group, "hello, ann")
        assert ann.read(group) == ben.read(group) == ["hello, ben", "hello, ann"]


def test_certificate__replaced_while_envoy_runs__is_shown_to_new_connections(
    edge: EdgeNetwork,
) -> None:
    peer, first = edge.peer, tuple(path.read_bytes() for path in edge.files)
    second = make_pair()

    def connects(trusted: bytes) -> bool:
        with closing(Api(f"https://localhost:{peer.gate.target}", True, trusted)) as api:
            return api.newest() == []

    assert connects(first[0])
    write_pair(edge.files, second)
    assert becomes(lambda: connects(second[0]))
    assert peer.events("certificate_replaced") == 1
    write_pair(edge.files, (second[0], first[1]))
    until(lambda: peer.events("certificate_refused") == 1)
    assert connects(second[0])
    write_pair(edge.files, (first[0], first[1]))
    assert becomes(lambda: connects(first[0]))


def test_sigterm__streams_are_open__ends_them_in_order_with_code_0_and_starts_again(
    edge: EdgeNetwork,
) -> None:
    peer = edge.peer
    stream = peer.api.subscribe(originators=[0], cursor={})
    assert stream.first_frame() == b""
    assert peer.service is not None

    assert peer.service.stop() == 0

    with pytest.raises(grpc.RpcError) as caught:
        list(stream.call)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert caught.value.details() == "server: expected to go on, got its end"
    peer.restart()
    peer.originates()
    until(lambda: edge.node.peer_streams() == 1)


def test_kill__at_once_and_started_again__has_all_and_replicates(edge: EdgeNetwork) -> None:
    peer = edge.peer
    [before] = peer.publish(1)
    [folder] = [each for each in open_files(peer.pid) if each.name.startswith(PREFIX)]

    peer.kill()
    assert folder.exists()
    [missed] = edge.node.publish(1)
    peer.restart()
    peer.originates()

    assert not folder.exists()
    assert before in peer.holds(peer.node_id)
    until(lambda: missed in peer.holds(edge.node.node_id))
