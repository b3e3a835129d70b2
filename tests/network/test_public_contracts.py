"""A node, a gateway and clients on a chain with contracts as the network's public ones.

Messages come under any sequence ids (ADR 50); identity updates are counted, under originator 1.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from chainkit.contracts.deployment import read_deployment_record
from chainkit.misbehavior.report import safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import stated_place
from chainkit.protocol.proto import message_api_pb2
from chainkit.terminal.keystore import load_signing_key
from chainkit.text.hexadecimal import hex0x
from chainkit.types import TopicKind
from chainkit_client.home import chain_of
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from localnet.accounts import COUNCIL, write_keystore
from localnet.anvil import Anvil
from localnet.commands import Settings, run_json
from localnet.native_client import NativeClient
from localnet.network import Network, start_gateway, start_node
from support import mls, publishes
from support.chains.chain import Deployment
from support.chains.followed_records import INDEXED_MESSAGE, INDEXED_UPDATE
from support.chains.mined import GAS_LIMIT, MinedChain
from support.chains.other_chain import OtherChain, commit, compiled_codes
from support.network.api import Api, cursor_in
from support.network.people import People, new_person, texts
from support.network.typing_people import check_proofs, people_at
from support.originated import NOW_NS, signed

from .conftest import PASSWORD, deployed

SECONDS = 60


@dataclass(frozen=True)
class Public:
    """The contracts, and a network on them."""

    chain: OtherChain
    settings: Settings
    network: Network
    keystore: Path
    """The node's key."""


@pytest.fixture(scope="module")
def public(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Public]:
    folder = tmp_path_factory.mktemp("public")
    with (
        Anvil("--gas-limit", str(10 * GAS_LIMIT), caps_gas=False) as anvil,
        ExitStack() as stack,
    ):
        own = deployed(anvil, local_deployment, folder)
        chain = public_contracts(anvil, own.record_path, folder)
        settings = replace(own, record_path=chain.record_path)
        write_keystore(owner := folder / "owner.keystore", PASSWORD, COUNCIL)
        record = ("--deployment", str(chain.record_path))
        node = start_node(stack, own, folder, owner, folder / "node.db", *record)
        gateway_url = start_gateway(stack, settings, folder, PASSWORD)
        network = Network(node.node_id, node.url, gateway_url)
        yield Public(chain, settings, network, folder / "node.keystore")


def public_contracts(anvil: Anvil, own_record: Path, folder: Path) -> OtherChain:
    """Deploy them beside our own, of which the node registry is used, and write their record."""
    mined, codes = MinedChain(anvil), compiled_codes()
    kinds = {"messages": "BootstrappedPayloads", "updates": "CountingIdentityUpdates"}
    places = {
        name: {"block": mined.height() + 1, "address": mined.deploy(codes[code])}
        for name, code in kinds.items()
    }
    messages = {"name": "messages", "originator_id": 0, "event": INDEXED_MESSAGE}
    updates = {"name": "updates", "originator_id": 1, "event": INDEXED_UPDATE}
    own = read_deployment_record(own_record)
    registry = {"address": hex0x(own.node_registry.address), "block": own.node_registry.block}
    record = {
        "format": 1,
        "chain_id": own.chain_id,
        "genesis_hash": hex0x(own.genesis_hash),
        "payload_contracts": [
            messages | places["messages"] | {"sequence_ids": "sparse"},
            updates | places["updates"],
        ],
        "counters": {"0": None, "1": places["updates"] | {"function": "sequenceId()"}},
        "node_registry": registry,
    }
    path = folder / "public.json"
    path.write_text(json.dumps(record))
    addresses = [str(place["address"]) for place in places.values()]
    return OtherChain(mined, anvil.endpoint, *addresses, record_path=path)


@pytest.fixture(scope="module")
def engine() -> Iterator[NodeEngine]:
    with NodeEngine() as running:
        yield running


@pytest.fixture
def node(public: Public) -> Iterator[Api]:
    with closing(Api(public.network.node_url)) as api:
        yield api


def ids_of(envelopes: list[bytes]) -> list[int]:
    return [sequence_id for _, sequence_id in map(stated_place, envelopes)]


def connected(public: Public) -> Chain:
    return chain_of(public.settings.rpc_url, public.settings.record_path)


def strange_commit(group_id: bytes, epoch: int) -> bytes:
    """Return a payload that names a group and no epoch in which its members can read it."""
    message = mls.private_message(group_id, mls.COMMIT, epoch, authenticated_data=b"")
    return publishes.group_message(message, identifier=group_id)


def read_ids(database: Path) -> set[int]:
    """Return the ids of the chain's messages that a client has applied or refused."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT sequence_id FROM payload_results WHERE originator_id = 0")
        return {row[0] for row in rows}


def sent_on(call: Any, count: int) -> list[int]:
    """Return the ids of the first envelopes that SubscribeTopics sends."""
    found: list[int] = []
    for frame in call:
        answer = message_api_pb2.SubscribeTopicsResponse.FromString(frame)
        found += ids_of([each.SerializeToString() for each in answer.envelopes.envelopes])
        if len(found) >= count:
            break
    return found


def test_native_clients__two_people__talk_in_a_group(
    public: Public, node: Api, tmp_path: Path
) -> None:
    async def talk() -> tuple[str, list[str], list[str]]:
        url = public.network.gateway_url
        ann = await NativeClient.register(url, tmp_path / "ann", new_person())
        ben = await NativeClient.register(url, tmp_path / "ben", new_person())
        group = await ann.create_group([ben.account])
        await ann.send(group, "hello, ben")
        assert await ben.join() == [group]
        await ben.send(group, "hello, ann")
        return ann.inbox_id, await ann.read(group), await ben.read(group)

    inbox_id, ann_read, ben_read = asyncio.run(asyncio.wait_for(talk(), SECONDS))

    assert ann_read == ben_read == ["hello, ben", "hello, ann"]
    [update] = node.query(topics=[TopicKind.IDENTITY_UPDATE.topic(bytes.fromhex(inbox_id))])
    assert stated_place(update)[0] == 1


def test_node__payloads_come_below_others__readers_get_them(public: Public, node: Api) -> None:
    group = b"\x31" * 16
    topic = TopicKind.GROUP_MESSAGE.topic(group)
    ids = {1000: commit(1, group)}
    first, second = node.subscribe(topics=[topic]), node.subscribe_topics({topic: {}})
    assert first.first_frame() == b""

    public.chain.mined.mine([public.chain.bootstrapped(ids, group=group)])
    assert ids_of(first.take(1)) == [1000]
    third = node.subscribe(topics=[topic], cursor={0: 1000})
    assert third.first_frame() == b""
    late = {17: commit(2, group), 400: commit(3, group)}
    public.chain.mined.mine([public.chain.bootstrapped(late, group=group)])

    for stream in (first, third):
        with pytest.raises(grpc.RpcError) as ended:
            stream.take(1)
        assert cursor_in(ended.value) == {0: 16}
    assert ids_of(node.query(topics=[topic], cursor={0: 16})) == [17, 400, 1000]
    assert ids_of(node.query(topics=[topic])) == [17, 400, 1000]
    assert sent_on(second, 4) == [1000, 17, 400, 1000]


def test_messenger__payload_comes_below_what_both_have_read__both_get_it_and_talk_on(
    public: Public, engine: NodeEngine, tmp_path: Path
) -> None:
    mined, chain = public.chain.mined, connected(public)
    # Ids of the gateway's payloads are above these.
    mined.mine([public.chain.bootstrapped({5000: commit(5)})])

    async def talk() -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(SECONDS):
            people = People(stack, chain, public.network, engine, tmp_path)
            ann, ben, group_id = await people.two_in_a_group()
            ann.send(group_id, "before")
            await ann.settle()
            await ben.sync()
            ben.accept(group_id)
            late = {4017: strange_commit(group_id, 0), 4400: strange_commit(group_id, 2)}
            mined.mine([public.chain.bootstrapped(late, group=group_id)])
            ben.send(group_id, "after")
            await ben.settle()
            await ann.sync()

            for name, each in (("ann", ann), ("ben", ben)):
                assert texts(each, group_id) == ["before", "after"]
                assert {4017, 4400} <= read_ids(tmp_path / f"{name}.db")
                assert each.breaches() == []

    asyncio.run(talk())


def test_client_prove__a_message_and_a_commit_of_the_chain__others_verify_both(
    public: Public, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, ben = people_at(public.settings, public.network.gateway_url, tmp_path, monkeypatch)
    _, address = [each.do(*each.init)["address"] for each in (ann, ben)]
    group = ann.do("group", "new", address)["group"]
    ann.do("send", group, "hello, Ben")
    ann.say("group", "remove", group, address)
    lines = [json.loads(line) for line in ann.say("read", group, "--json").splitlines()]

    check_proofs(ann, lines, public.settings, tmp_path)


def test_watch__honest_node_with_sparse_ids__is_well_until_two_of_its_envelopes_contradict(
    public: Public, node: Api, tmp_path: Path
) -> None:
    group, node_id = b"\x32" * 16, public.network.node_id
    topic = TopicKind.GROUP_MESSAGE.topic(group)
    stream = node.subscribe(topics=[topic])
    public.chain.mined.mine([public.chain.bootstrapped({9000: commit(1, group)}, group=group)])
    assert ids_of(stream.take(1)) == [9000]
    look = ("node", "watch", "--once", "--patience", "60")

    well = run_json(public.settings, *look)
    keys = load_signing_key(public.keystore, public.settings.password_path)
    pair = [signed(node_id, 10**6, time_ns=time_ns, key=keys) for time_ns in (NOW_NS, NOW_NS + 1)]
    kind = Misbehavior.DUPLICATE_SEQUENCE_ID
    node.submit_report(safety_report(node_id, kind, pair, NOW_NS, is_from_node=False))
    accused = run_json(public.settings, *look, expected=(1,))
    run_json(public.settings, "council", "gather", tmp_path / "evidence")
    triage = ("council", "triage", tmp_path / "evidence")
    triaged = run_json(public.settings, *triage, expected=(1,))

    assert (well["attention"], well["accusations"]) == ([], [])
    [answer] = well["nodes"]
    # No difference of ids tells how many sparse ones a node lacks.
    assert answer["held"]["0"] == well["highest"]["0"] >= 9000
    assert answer["lag"] == {"0": None, "1": 0, str(node_id): 0}
    [reason] = accused["attention"]
    assert (reason["reason"], reason["node_id"]) == ("node_accused", node_id)
    assert triaged["disable"] == [node_id]
