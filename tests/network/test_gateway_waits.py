"""A commit in a block is never answered as if it were not published, whatever becomes of nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest

from chainkit.errors import MalformedEnvelope
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.proto.payer_api_pb2 import PublishClientEnvelopesRequest
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import TopicKind
from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.native_client import NativeClient
from localnet.network import Network
from support import identity, mls, publishes
from support.network.api import PAYER, Api
from support.network.own_gateway import OwnGateway, wait_for_transaction
from support.network.people import new_person
from support.network.real_nodes import until
from support.network.tcp_proxy import Gate, Mode, TcpProxy

AWAY_SECONDS = 8.0
"""Longer than today's clients repeat a call that fails."""
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def gate(network: Network) -> Iterator[Gate]:
    """The only node's address."""
    with TcpProxy() as proxy:
        gate = proxy.gate()
        gate.target = int(network.node_url.rpartition(":")[2])
        yield gate


@pytest.fixture
def gateway(
    settings: Settings, network: Network, gate: Gate, tmp_path: Path
) -> Iterator[OwnGateway]:
    started = OwnGateway(settings, tmp_path, (network.node_id, gate.url))
    yield started
    gate.set(Mode.OPEN)
    started.stop()


def new_group() -> tuple[bytes, bytes]:
    """The id of a group that nobody has, and its topic."""
    group_id = b"waits".ljust(12, b"\0") + next(_NUMBERS).to_bytes(4, "big")
    return group_id, TopicKind.GROUP_MESSAGE.topic(group_id)


def new_commit() -> tuple[bytes, bytes]:
    """A commit of a group that nobody has, and its topic."""
    group_id, topic = new_group()
    return commit_of(group_id), topic


def new_inbox() -> tuple[bytes, bytes]:
    """The identity update that makes an inbox, and its topic."""
    wallet = identity.Wallet(f"waits {next(_NUMBERS)}")
    inbox_id = identity.inbox_of(wallet)
    envelope = publishes.written_update(
        inbox_id, identity.update(inbox_id, identity.create(wallet))
    )
    return envelope, TopicKind.IDENTITY_UPDATE.topic(inbox_id)


def message(group_id: bytes, content_type: int, epoch: int = 1) -> bytes:
    return publishes.group_message(mls.private_message(group_id, content_type, epoch), group_id)


def commit_of(group_id: bytes) -> bytes:
    return message(group_id, mls.COMMIT)


def publish(api: Api, envelopes: Sequence[bytes], seconds: float | None) -> list[bytes]:
    """Publish with a deadline of the caller's, or without one."""
    request = PublishClientEnvelopesRequest(envelopes=envelopes).SerializeToString()
    method = api.channel.unary_unary(f"/{PAYER}/PublishClientEnvelopes")
    return list(Envelopes.FromString(method(request, timeout=seconds)).envelopes)


def commits(node: Api, topic: bytes) -> int:
    """Return how many payloads of the chain a topic has."""
    found = 0
    for envelope in node.query(topics=[topic], limit=100):
        with suppress(MalformedEnvelope):
            parse_originator_envelope(envelope)
            found += 1
    return found


def while_node_is_away(
    chain: Anvil, gate: Gate, start: Callable[[], Any], meanwhile: Callable[[], None]
) -> Any:
    """Cut the node off between a transaction's sending and its mining; return the answer."""
    chain.request("evm_setAutomine", False)
    try:
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(start)
            wait_for_transaction(chain)
            gate.set(Mode.CUT)
            chain.request("evm_mine")
            chain.request("evm_setAutomine", True)
            meanwhile()
            gate.set(Mode.OPEN)
            return answer.result()
    finally:
        gate.set(Mode.OPEN)
        chain.request("evm_setAutomine", True)


def pass_away_seconds() -> None:
    """The length of the outage is what is tested: no condition ends it."""
    time.sleep(AWAY_SECONDS)


@pytest.mark.parametrize("new", [new_commit, new_inbox])
def test_publish__node_away_for_8_s__answers_all_callers_with_the_one_envelope(
    gateway: OwnGateway,
    node: Api,
    chain: Anvil,
    gate: Gate,
    new: Callable[[], tuple[bytes, bytes]],
) -> None:
    url = gateway.start_at()
    envelope, topic = new()
    callers = [Api(url, is_own_connection=True) for _ in range(2)]

    def publish_by_both() -> list[list[bytes]]:
        with ThreadPoolExecutor(2) as threads:
            # One names a deadline; the other one, as today's clients, names none.
            return list(threads.map(publish, callers, [[envelope]] * 2, [60.0, None]))

    answers = while_node_is_away(chain, gate, publish_by_both, pass_away_seconds)

    [stored] = node.query(topics=[topic])
    assert answers == [[stored], [stored]]


def test_publish__node_away_and_gateway_killed__answers_the_same_bytes_with_the_one_envelope(
    gateway: OwnGateway, node: Api, chain: Anvil, gate: Gate
) -> None:
    api = gateway.start()
    commit, topic = new_commit()

    def publish_until_answered() -> list[bytes]:
        with pytest.raises(grpc.RpcError):
            publish(api, [commit], 60.0)
        return publish(gateway.start(), [commit], 60.0)

    answer = while_node_is_away(chain, gate, publish_until_answered, gateway.kill)

    assert answer == node.query(topics=[topic])
    assert len(answer) == 1


def test_publish__node_away_beyond_the_deadline__names_the_place_on_the_chain(
    gateway: OwnGateway, node: Api, chain: Anvil, gate: Gate
) -> None:
    api = gateway.start()
    commit, topic = new_commit()
    answers: list[bytes] = []

    while_node_is_away(
        chain,
        gate,
        lambda: answers.extend(publish(api, [commit], 4.0)),
        lambda: until(lambda: bool(answers)),
    )

    [stored] = node.query(topics=[topic])
    told, served = (parse_originator_envelope(each) for each in (*answers, stored))
    assert told.unsigned_originator_envelope == served.unsigned_originator_envelope
    assert told.transaction_hash == served.transaction_hash
    assert told.node_signature == b""
    assert "served by no node yet" in gateway.log.read_text()
    assert publish(api, [commit], 30.0) == [stored]


def test_publish__not_mined_before_the_deadline__is_answered_as_under_way(
    gateway: OwnGateway, node: Api, chain: Anvil
) -> None:
    api = gateway.start()
    commit, topic = new_commit()
    chain.request("evm_setAutomine", False)
    try:
        with pytest.raises(grpc.RpcError) as caught:
            publish(api, [commit], 3.0)
    finally:
        chain.request("evm_setAutomine", True)

    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "was sent and is not mined" in caught.value.details()
    chain.request("evm_mine")
    assert publish(api, [commit], 30.0) == node.query(topics=[topic])


def test_publish__payloads_of_one_topic__come_in_the_order_of_the_request(
    gateway: OwnGateway, node: Api
) -> None:
    url = gateway.start_at()
    groups = [new_group() for _ in range(7)]
    requests = [
        [*(message(group_id, mls.PROPOSAL, epoch) for epoch in range(5)), commit_of(group_id)]
        for group_id, _ in groups
    ]
    callers = [Api(url, is_own_connection=True) for _ in groups]

    with ThreadPoolExecutor(len(groups)) as threads:
        answers = list(threads.map(publish, callers, requests, [60.0] * len(groups)))

    for (_, topic), answer in zip(groups, answers, strict=True):
        assert node.query(topics=[topic], limit=100) == answer


def test_native_client__node_away_for_8_s_during_a_rename__publishes_one_commit(
    gateway: OwnGateway, node: Api, chain: Anvil, gate: Gate, tmp_path: Path
) -> None:
    url = gateway.start_at()

    async def ready() -> tuple[NativeClient, NativeClient, bytes]:
        ann = await NativeClient.register(url, tmp_path / "ann", new_person())
        ben = await NativeClient.register(url, tmp_path / "ben", new_person())
        group = await ann.create_group([ben.account])
        assert await ben.join() == [group]
        return ann, ben, group

    async def rename(ann: NativeClient, group: bytes) -> None:
        await ann.rename(group, "a name that nobody loses")

    async def talk(ann: NativeClient, ben: NativeClient, group: bytes) -> list[str]:
        await ben.send(group, "a good name")
        return await ann.read(group)

    loop = asyncio.new_event_loop()
    try:
        ann, ben, group = loop.run_until_complete(ready())
        topic = TopicKind.GROUP_MESSAGE.topic(group)
        before = commits(node, topic)
        while_node_is_away(
            chain,
            gate,
            lambda: loop.run_until_complete(rename(ann, group)),
            pass_away_seconds,
        )
        assert commits(node, topic) == before + 1
        assert loop.run_until_complete(talk(ann, ben, group)) == ["a good name"]
        names = [loop.run_until_complete(each.name(group)) for each in (ann, ben)]
    finally:
        loop.close()
    assert names == ["a name that nobody loses"] * 2
