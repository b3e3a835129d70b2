"""Several processes of one node on PostgreSQL: one originates, others read, behind one port."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import grpc
import pytest
from grpc_health.v1 import health_pb2

from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.log_ranges import LogRange, envelope_digest
from chainkit.protocol.originated_envelope import parse_originated, recover_originator
from chainkit.protocol.proto.message_api_pb2 import QueryEnvelopesRequest
from chainkit.protocol.topic_heads import Chain, entry_of, read_topic_head
from chainkit.terminal.keystore import load_signing_key
from chainkit.types import TopicKind
from chainkit_node.peers.tokens import PeerTokens
from chainkit_node.reader_service import LOOK_SECONDS
from localnet.accounts import COUNCIL, write_keystore
from localnet.anvil import Anvil
from localnet.commands import Background, CommandFailed, Settings, run
from localnet.network import Network, StartedNode, start_node, start_service, wait_for_entry
from localnet.postgres import Postgres
from support import mls, publishes
from support.network.api import REPLICATION, Api, cursor_in, query
from support.network.tcp_proxy import Mode, TcpProxy
from support.reporting import slow

from .conftest import PASSWORD, monitor_in

SECONDS = 30.0
ROUNDS = 20
EVENTS = {
    *("node_listening", "database_failed", "database_unavailable", "recovered"),
    *("writer_unavailable", "writer_answers"),
}
CHANCE = random.Random(9)


@dataclass(frozen=True)
class Readers:
    """A node, and two processes that read and have a port in common."""

    postgres: Postgres
    database: str
    writer: StartedNode
    processes: list[Background]
    url: str

    def connections(self, count: int) -> list[Api]:
        """Connections that the system gives to either process."""
        return [Api(self.url, is_own_connection=True) for _ in range(count)]

    def welcome(self, key: bytes) -> bytes:
        return publishes.paid(publishes.welcome(key), self.writer.node_id)


@pytest.fixture(scope="module")
def readers(
    settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Readers]:
    # After the network's own node, whose id other tests know.
    assert network.node_id == publishes.NODE_ID
    folder = tmp_path_factory.mktemp("readers")
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    with ExitStack() as stack:
        postgres = stack.enter_context(Postgres(fsync="off"))
        database = postgres.new_database()
        writer = start_node(stack, settings, folder, owner, database)
        arguments = ("node", "serve", "--database", database, "--writer", writer.url)
        first = Background(
            settings,
            folder / "first.log",
            *(*arguments, "--grpc", "127.0.0.1:0", "--share-port", "--log-format", "json"),
        )
        port = start_service(stack, first, "node_listening")
        second = Background(
            settings,
            folder / "second.log",
            *(*arguments, "--grpc", f"127.0.0.1:{port}", "--share-port", "--log-format", "json"),
        )
        start_service(stack, second, "node_listening")
        url = f"http://127.0.0.1:{port}"
        yield Readers(postgres, database, writer, [first, second], url)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_serving(api: Api) -> bool:
    try:
        answer = api.call("Check", b"", "grpc.health.v1.Health")
    except grpc.RpcError:
        return False
    return health_pb2.HealthCheckResponse.FromString(answer).status == 1


@pytest.mark.conforms("N24")
def test_readers__publish_through_any_of_them__streams_of_all_get_it_at_once(
    readers: Readers,
) -> None:
    apis = readers.connections(8)
    key = CHANCE.randbytes(32)
    topic = b"\1" + key
    for each in apis:
        until(lambda each=each: is_serving(each))  # type: ignore[misc]
    streams = [each.subscribe(topics=[topic]) for each in apis]
    for stream in streams:
        stream.first_frame()

    answered = [api.publish(readers.welcome(key))[0] for api in apis for _ in range(3)]

    ids = [parse_originated(each).envelope.sequence_id for each in answered]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    for stream in streams:
        assert stream.take(len(answered)) == answered
        stream.close()
    for api in apis:
        assert api.query(topics=[topic]) == answered
        api.close()


@pytest.mark.conforms("N24")
def test_readers__one_publish_after_the_other__is_notified_and_not_looked_for(
    readers: Readers,
) -> None:
    assert ROUNDS * LOOK_SECONDS > 2 * SECONDS
    apis = readers.connections(6)
    key = CHANCE.randbytes(32)
    streams = [each.subscribe(topics=[b"\1" + key]) for each in apis]

    # The streams end before as many looks as there are rounds.
    for _ in range(ROUNDS):
        answered = apis[0].publish(readers.welcome(key))
        for stream in streams:
            assert stream.take(1) == answered

    for api in apis:
        api.close()


def test_readers__ranges_of_a_log__are_those_of_the_writer(readers: Readers) -> None:
    apis = [Api(readers.writer.url), *readers.connections(6)]
    published = apis[1].publish(readers.welcome(CHANCE.randbytes(32)))[0]
    node_id, sequence_id = readers.writer.node_id, parse_originated(published).envelope.sequence_id
    asked = LogRange(0, (sequence_id - 1) // 64)

    answers = [each.ranges(node_id, asked) for each in apis]

    highest, [content] = answers[0]
    assert highest == sequence_id
    assert content.digests.endswith(envelope_digest(published))
    assert answers == [answers[0]] * len(apis)
    for each in apis:
        each.close()


def test_readers__heads_of_a_topic__are_signed_by_the_writer(readers: Readers) -> None:
    apis = [Api(readers.writer.url), *readers.connections(6)]
    key = CHANCE.randbytes(32)
    published = apis[1].publish(readers.welcome(key))[0]

    answers = [each.heads(b"\1" + key) for each in apis]

    [head] = answers[0]
    signer = recover_originator(parse_originated(published))
    assert read_topic_head(head, signer).chain == Chain().extended([entry_of(published)])
    assert answers == [answers[0]] * len(apis)
    for each in apis:
        each.close()


def test_readers__refusal_of_the_writer__is_passed_on_with_its_details(readers: Readers) -> None:
    [api] = readers.connections(1)
    early = publishes.group_message(seen={0: 10**6}, target=readers.writer.node_id)

    with pytest.raises(grpc.RpcError) as caught:
        api.publish(publishes.paid(early, readers.writer.node_id))

    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert 0 in cursor_in(caught.value)
    api.close()


@pytest.mark.conforms("N38")
def test_readers__token_of_another_node__is_taken_if_it_is_for_this_one(
    readers: Readers, network: Network, settings: Settings
) -> None:
    keystore = settings.record_path.parent / "node.keystore"
    key, now = load_signing_key(keystore, settings.password_path), time.time()
    tokens = PeerTokens(lambda: network.node_id, key, lambda: now)
    apis = readers.connections(4)

    for api in apis:
        call = api.channel.unary_unary(f"/{REPLICATION}/QueryEnvelopes")
        request = QueryEnvelopesRequest(query=query(originators=[0])).SerializeToString()
        metadata = tokens.metadata(readers.writer.node_id)
        call(request, timeout=SECONDS, metadata=metadata)
        with pytest.raises(grpc.RpcError) as caught:
            call(request, timeout=SECONDS, metadata=tokens.metadata(network.node_id))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        api.close()


@pytest.mark.conforms("N25")
def test_readers__reorg__streams_of_every_process_end_with_the_ancestor(
    readers: Readers, network: Network, chain: Anvil
) -> None:
    apis, gateway = readers.connections(6), Api(network.gateway_url)
    group_id = CHANCE.randbytes(16)
    topic = TopicKind.GROUP_MESSAGE.topic(group_id)
    streams = [api.subscribe(topics=[topic]) for api in apis]
    for stream in streams:
        stream.first_frame()
    commit = mls.private_message(group_id, mls.COMMIT, 1)
    gateway.publish_for_clients(publishes.group_message(commit, group_id))
    sent = [stream.take(1) for stream in streams]
    assert sent == [sent[0]] * len(sent)

    chain.request("anvil_reorg", 1, [])

    last = parse_originator_envelope(sent[0][0]).sequence_id
    for stream in streams:
        with pytest.raises(grpc.RpcError) as caught:
            stream.take(2)
        assert caught.value.code() is grpc.StatusCode.ABORTED
        assert cursor_in(caught.value)[0] < last
    for api in (*apis, gateway):
        api.close()


@pytest.mark.conforms("N51", "N52")
def test_readers__report_of_a_client__is_passed_on_and_answered_by_all(readers: Readers) -> None:
    apis = readers.connections(4)
    report = slow(CHANCE.getrandbits(32), readers.writer.node_id)

    apis[0].submit_report(report)

    for api in apis:
        assert report in [each.unsigned_misbehavior_report for each in api.query_reports()]
    with pytest.raises(grpc.RpcError) as caught:
        apis[1].submit_report(slow(1, 10**6))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    for api in apis:
        api.close()


def test_readers__database_cuts_all_sessions__streams_go_on(readers: Readers) -> None:
    apis = readers.connections(6)
    key = CHANCE.randbytes(32)
    topic = b"\1" + key
    streams = [each.subscribe(topics=[topic]) for each in apis]
    for stream in streams:
        stream.first_frame()
    [first] = apis[0].publish(readers.welcome(key))

    assert readers.postgres.kill_connections() > 0
    published: list[bytes] = []

    def publishes_again() -> bool:
        try:
            published.extend(apis[0].publish(readers.welcome(key)))
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE, error
            # The database's address and role concern no stranger.
            assert "the node's log has more" in error.details(), error
        return bool(published)

    until(publishes_again)
    for stream in streams:
        assert stream.take(2) == [first, *published]
        stream.close()
    lines = [line for each in readers.processes for line in each.log_lines()]
    assert {json.loads(line)["event"] for line in lines} <= EVENTS
    for api in apis:
        api.close()


def test_readers__one_is_killed__the_other_serves_all(readers: Readers) -> None:
    os.kill(readers.processes[0].pid, signal.SIGKILL)
    readers.processes[0].stop()

    for api in readers.connections(6):
        key = CHANCE.randbytes(32)
        answered = api.publish(readers.welcome(key))
        assert api.query(topics=[b"\1" + key]) == answered
        api.close()


@pytest.mark.conforms("N23")
@pytest.mark.conforms("N25")
def test_readers__one_that_never_reads__holds_up_nobody_and_gets_all_once_it_reads(
    readers: Readers,
) -> None:
    key = b"never reads".ljust(32, b"\0")
    topic, large = TopicKind.WELCOME.topic(key), bytes(100_000)
    # More than both sides' windows of HTTP/2 take, on a connection of its own.
    node, mute = (Api(readers.writer.url, is_own_connection=True) for _ in range(2))
    never, reader = mute.subscribe(topics=[topic]), node.subscribe(topics=[topic])
    for each in (never, reader):
        each.first_frame()

    published = []
    for _ in range(50):
        paid = publishes.paid(publishes.welcome(key, data=large), readers.writer.node_id)
        published += node.publish(paid)
        assert reader.take(1) == published[-1:]

    assert never.take(len(published)) == published
    for each in (never, reader):
        each.close()
    node.close()
    mute.close()


def test_serve__writer_away_and_back__says_so_before_a_payer_comes_and_counts_refusals(
    readers: Readers, settings: Settings, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        gate = stack.enter_context(TcpProxy()).gate()
        gate.set(Mode.CUT)
        serve = Background(
            settings,
            tmp_path / "serve.log",
            *("node", "serve", "--database", readers.database, "--writer", gate.url),
            *("--grpc", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--log-format", "json"),
        )
        port = start_service(stack, serve, "node_listening")
        wait_for_entry(serve, lambda each: each.get("event") == "writer_unavailable")
        api = Api(f"http://127.0.0.1:{port}", is_own_connection=True)
        stack.callback(api.close)
        with pytest.raises(grpc.RpcError) as caught:
            api.publish(readers.welcome(CHANCE.randbytes(32)))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

        gate.target = int(readers.writer.url.rpartition(":")[2])
        gate.set(Mode.OPEN)
        until(lambda: publishes_through(api, readers))

        wait_for_entry(serve, lambda each: each.get("event") == "writer_answers")
        with urlopen(f"{monitor_in(tmp_path / 'serve.log')}/metrics") as answer:
            text = answer.read().decode()
        assert 'chainkit_node_publishes_total{outcome="stored"} 1.0' in text
        assert 'chainkit_node_publishes_total{outcome="unavailable"} 0.0' not in text


def publishes_through(api: Api, readers: Readers) -> bool:
    try:
        return bool(api.publish(readers.welcome(CHANCE.randbytes(32))))
    except grpc.RpcError:
        return False


@pytest.mark.parametrize("address", ["127.0.0.1:5051", "0.0.0.0:5051"])
def test_serve__its_own_address_as_writer__is_refused(settings: Settings, address: str) -> None:
    arguments = ("--writer", "http://127.0.0.1:5051", "--grpc", address, "--plain-text")
    with pytest.raises(CommandFailed, match="--writer: expected the address of `node run`"):
        run(
            settings, "node", "serve", "--database", "postgresql://nobody@127.0.0.1:1/x", *arguments
        )


def test_serve__file_of_sqlite__says_what_it_needs(settings: Settings) -> None:
    with pytest.raises(CommandFailed, match="expected postgresql"):
        run(settings, "node", "serve", "--database", "node.db", "--writer", "http://127.0.0.1:1")
