"""A gateway of its own, killed and started again on its journal, in front of the real network."""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

from chainkit.protocol.methods import BACKUP_API
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.proto.gateway_api_pb2 import GrantUploadResponse
from chainkit.protocol.proto.payer_api_pb2 import PublishClientEnvelopesRequest
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import TopicKind
from chainkit_gateway.cli.costs import costs_command
from chainkit_gateway.journal import Journal
from localnet.anvil import Anvil
from localnet.commands import CHAINKIT, Settings
from localnet.network import Network
from support import identity, mls, publishes
from support.network.api import PAYER, Api, cursor_in
from support.network.own_gateway import PAYER_ADDRESS, SECONDS, OwnGateway, wait_for_transaction
from support.network.real_nodes import until
from support.network.storage_service import StorageService
from support.network.tcp_proxy import Mode, TcpProxy

_NUMBERS = count(1)


@pytest.fixture
def gateway(settings: Settings, network: Network, tmp_path: Path) -> Iterator[OwnGateway]:
    started = OwnGateway(settings, tmp_path, (network.node_id, network.node_url))
    yield started
    started.stop()


def new_welcome() -> tuple[bytes, bytes]:
    """A welcome for an installation that nobody has, and its topic."""
    key = b"gateway".ljust(28, b"\0") + next(_NUMBERS).to_bytes(4, "big")
    return publishes.welcome(key), TopicKind.WELCOME.topic(key)


def new_commit() -> tuple[bytes, bytes]:
    """A commit of a group that nobody has, and its topic."""
    group_id = b"gateway".ljust(12, b"\0") + next(_NUMBERS).to_bytes(4, "big")
    message = mls.private_message(group_id, mls.COMMIT)
    return publishes.group_message(message, group_id), TopicKind.GROUP_MESSAGE.topic(group_id)


@pytest.mark.conforms("N2", "N16")
@pytest.mark.parametrize("new", [new_welcome, new_commit])
def test_publish__same_bytes_again_also_after_a_kill__are_on_the_topic_once(
    gateway: OwnGateway, node: Api, new: Callable[[], tuple[bytes, bytes]]
) -> None:
    api = gateway.start()
    envelope, topic = new()
    [first] = api.publish_for_clients(envelope)
    assert api.publish_for_clients(envelope, envelope) == [first, first]
    gateway.kill()

    assert gateway.start().publish_for_clients(envelope) == [first]
    assert node.query(topics=[topic]) == [first]


@pytest.mark.parametrize("new", [new_welcome, new_commit])
def test_publish__disk_of_the_gateway_is_full__is_refused_and_published_once_there_is_room(
    gateway: OwnGateway, node: Api, new: Callable[[], tuple[bytes, bytes]]
) -> None:
    api = gateway.start()
    envelope, topic = new()
    # Neither journal nor log can be written, as on a disk without room.
    resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    with pytest.raises(grpc.RpcError) as refused:
        api.publish_for_clients(envelope)

    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert node.query(topics=[topic]) == []
    room = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, room)
    [stored] = api.publish_for_clients(envelope)
    assert node.query(topics=[topic]) == [stored]


def test_publish__endpoint_of_the_chain_is_away__welcomes_go_on_and_a_commit_is_published_later(
    settings: Settings, network: Network, node: Api, tmp_path: Path
) -> None:
    with TcpProxy() as proxy:
        gate = proxy.gate()
        gate.target = int(settings.rpc_url.rpartition(":")[2])
        through = replace(settings, rpc_url=gate.url)
        gateway = OwnGateway(through, tmp_path, (network.node_id, network.node_url))
        try:
            api = gateway.start()
            gate.set(Mode.CUT)
            welcome, of_welcome = new_welcome()
            commit, of_commit = new_commit()

            [stored] = api.publish_for_clients(welcome)
            with pytest.raises(grpc.RpcError) as refused:
                api.publish_for_clients(commit)

            assert node.query(topics=[of_welcome]) == [stored]
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            gate.set(Mode.OPEN)
            until(lambda: bool(api.publish_for_clients(commit)))
            assert len(node.query(topics=[of_commit])) == 1
        finally:
            gateway.stop()


def test_publish__welcome_stored_and_gateway_killed__is_found_at_the_node(
    gateway: OwnGateway, node: Api
) -> None:
    api = gateway.start()
    envelope, topic = new_welcome()
    stream = node.subscribe(topics=[topic])
    stream.first_frame()
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(api.publish_for_clients, envelope)
        stored = stream.take(1)
        gateway.kill()
        # It may have been answered before the kill.
        assert answer.exception() is None or isinstance(answer.exception(), grpc.RpcError)
    stream.close()

    assert gateway.start().publish_for_clients(envelope) == stored
    assert node.query(topics=[topic]) == stored


def test_publish__commit_waits_to_be_mined_and_gateway_killed__is_mined_once(
    gateway: OwnGateway, node: Api, chain: Anvil
) -> None:
    api = gateway.start()
    envelope, topic = new_commit()
    chain.request("evm_setAutomine", False)
    try:
        with ThreadPoolExecutor() as threads:
            answer = threads.submit(api.publish_for_clients, envelope)
            wait_for_transaction(chain)
            gateway.kill()
            assert isinstance(answer.exception(), grpc.RpcError)
            again = threads.submit(gateway.start().publish_for_clients, envelope)
            chain.request("evm_mine")
            [stored] = again.result()
    finally:
        chain.request("evm_setAutomine", True)

    chain.request("evm_mine")
    assert node.query(topics=[topic]) == [stored]


def test_publish__node_refuses__reaches_the_client_with_words_and_cursor(
    network: Network, node: Api
) -> None:
    api = Api(network.gateway_url)
    group_id = b"refused".ljust(16, b"\0")
    message = mls.private_message(group_id, mls.COMMIT)
    api.publish_for_clients(publishes.group_message(message, group_id))
    late = publishes.group_message(identifier=group_id)
    refusals = []
    for call in (
        lambda: node.publish(publishes.paid(late, network.node_id)),
        lambda: api.publish_for_clients(late),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        refusals.append(caught.value)
    api.close()

    first, second = refusals
    assert second.code() is first.code() is grpc.StatusCode.ABORTED
    assert second.details() == first.details()
    assert cursor_in(second)[0] == cursor_in(first)[0] > 0


def test_publish__one_of_two_revocations_is_already_done__goes_on_with_the_other(
    gateway: OwnGateway,
) -> None:
    owner, first, second = (identity.Wallet(f"gateway {each}") for each in range(3))
    inbox_id = identity.inbox_of(owner)
    api = gateway.start()

    def publish(*steps: identity.Step) -> None:
        update = identity.update(inbox_id, *steps)
        api.publish_for_clients(publishes.written_update(inbox_id, update))

    publish(identity.create(owner), identity.add(first, owner), identity.add(second, owner))
    publish(identity.revoke(first, owner))
    with pytest.raises(grpc.RpcError, match="revoked identifier is no member") as caught:
        publish(identity.revoke(first, owner), identity.revoke(second, owner))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    publish(identity.revoke(second, owner))


def test_costs__commits_published__are_what_the_account_paid(
    gateway: OwnGateway, chain: Anvil, tmp_path: Path
) -> None:
    def balance() -> int:
        return int(chain.request("eth_getBalance", PAYER_ADDRESS, "latest"), 16)

    before = balance()
    gateway.start().publish_for_clients(new_commit()[0], new_commit()[0], new_welcome()[0])

    arguments = ["--journal", str(tmp_path / "gateway.db"), "--json"]
    told = json.loads(CliRunner().invoke(costs_command, arguments).output)

    assert told["paid_wei"] == before - balance() > 0
    assert told["reserved_wei"] == 0
    assert [(each["client"], each["published"]) for each in told["days"]] == [("127.0.0.1", 2)]


def test_run__journal_of_a_newer_chainkit__is_refused_and_stays_as_it_was(
    gateway: OwnGateway, tmp_path: Path
) -> None:
    path = tmp_path / "gateway.db"
    Journal.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()

    command = [CHAINKIT, *gateway.command]
    ended = subprocess.run(
        command, env=gateway.environment, capture_output=True, text=True, timeout=SECONDS
    )

    got = "version 99, which a newer chainkit made"
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"error: journal {path}: expected version 3, got {got}\n" in ended.stderr
    assert path.read_bytes() == before


def test_run__payer_lets_a_contract_act_for_it__warns_and_names_the_contract(
    gateway: OwnGateway, chain: Anvil
) -> None:
    delegate = "0x" + 20 * "11"
    chain.request("anvil_setCode", PAYER_ADDRESS, "0xef0100" + delegate[2:])
    try:
        gateway.start()
    finally:
        chain.request("anvil_setCode", PAYER_ADDRESS, "0x")

    entries = map(json.loads, gateway.log.read_text().splitlines())
    [warned] = [each for each in entries if each["event"] == "payer_delegated"]
    assert (warned["level"], warned["delegate"]) == ("warning", delegate)


def days_kept(api: Api, days: int | None) -> float:
    """Let the shop publish a welcome; return for how many days the node keeps it."""
    request = PublishClientEnvelopesRequest(envelopes=[new_welcome()[0]], retention_days=days)
    publish = api.channel.unary_unary(f"/{PAYER}/PublishClientEnvelopes")
    metadata = [("authorization", "Bearer a-token-of-the-shop")]
    answer = publish(request.SerializeToString(), timeout=SECONDS, metadata=metadata)
    [envelope] = Envelopes.FromString(answer).envelopes
    stored = parse_originated(envelope).envelope
    assert stored.expiry_unixtime is not None
    return (stored.expiry_unixtime - stored.originator_ns // 10**9) / 86_400


@pytest.mark.conforms("N1", "T1", "T3", "T4")
def test_publish__tokens_and_terms_are_kept__refuses_strangers_and_other_days(
    settings: Settings, network: Network, tmp_path: Path
) -> None:
    tokens, terms = tmp_path / "tokens", tmp_path / "retention.json"
    tokens.write_text("shop a-token-of-the-shop\n")
    terms.write_text('{"clients": {"shop": {"welcome": {"days": 10, "least": 2, "most": 20}}}}')
    options = ("--tokens", str(tokens), "--retention", str(terms), "--listen", "127.0.0.1:0")
    gateway = OwnGateway(settings, tmp_path, (network.node_id, network.node_url), *options)
    try:
        api = gateway.start()
        envelope, _ = new_welcome()
        with pytest.raises(grpc.RpcError) as caught:
            api.publish_for_clients(envelope)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED  # type: ignore[attr-defined]
        assert [days_kept(api, days) for days in (None, 2, 20)] == [10, 2, 20]
        for days in (0, 1, 21):
            with pytest.raises(grpc.RpcError) as caught:
                days_kept(api, days)
            assert "expected 2 to 20 for a welcome" in caught.value.details()  # type: ignore[attr-defined]
        counts = gateway.metrics()
        assert 'publications_total{destination="node",outcome="published"} 3.0' in counts
        refused = 'refusals_total{code="%s",method="PublishClientEnvelopes"} %s'
        assert refused % ("UNAUTHENTICATED", 1.0) in counts
        assert refused % ("INVALID_ARGUMENT", 3.0) in counts
    finally:
        gateway.stop()


def test_grant_upload__gateway_of_a_storage_service__gives_urls_for_one_file_each(
    settings: Settings, network: Network, tmp_path: Path
) -> None:
    key = tmp_path / "grant.key"
    key.write_text(bytes(range(32)).hex())
    storage = StorageService(tmp_path / "storage", "--grant-key", str(key), "--open-total-mib", "0")
    place = (network.node_id, network.node_url)
    with ExitStack() as stack:
        stack.callback(storage.stop)
        storage.start()
        options = ("--backups-url", f"http://127.0.0.1:{storage.port}", "--grant-key", str(key))
        gateway = OwnGateway(settings, tmp_path, place, *options)
        stack.callback(gateway.stop)
        answer = gateway.start().call("GrantUpload", b"", BACKUP_API)
        url = GrantUploadResponse.FromString(answer).upload_url
        path = url.removeprefix(f"http://127.0.0.1:{storage.port}")

        assert [storage.upload(b"history", path).status for _ in range(2)] == [200, 409]
        assert storage.upload(b"history").status == 403
