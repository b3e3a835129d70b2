"""The product's own client on a real network: two people register, meet, talk, and part."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import read_deployment_record
from chainkit.misbehavior.types import Misbehavior
from chainkit.nodes.gateway import Gateway
from chainkit.terminal.keystore import open_keystore
from chainkit_client.cli.names import NAME
from chainkit_client.cli.pages import NOT_PROVED, message_line
from chainkit_client.groups.payload import group_topic
from chainkit_client.intents.arguments import AddMembers
from chainkit_client.intents.machine import UNFINISHED
from chainkit_client.mls.engine import Encrypted, EngineFailed
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network import group_network
from chainkit_client.network.chain import Chain
from chainkit_client.network.members import NoSuchMember
from chainkit_client.storage.schema import IntentState, MembershipState, MessageKind
from localnet.anvil import Anvil
from localnet.commands import Settings
from localnet.network import Network
from support.network.people import People, texts
from support.network.two_histories import TwoHistories

from .conftest import PASSWORD

SECONDS = 120


@pytest.fixture(scope="module")
def engine() -> Iterator[NodeEngine]:
    with NodeEngine() as running:
        yield running


class Stage:
    def __init__(
        self, settings: Settings, network: Network, engine: NodeEngine, folder: Path
    ) -> None:
        record = read_deployment_record(settings.record_path)
        self._chain = Chain(Endpoint.connect(settings.rpc_url), record, frozenset({0}))
        self._rest = network, engine, folder

    def play(self, play: Callable[[People], Awaitable[None]]) -> None:
        async def run() -> None:
            async with AsyncExitStack() as stack, asyncio.timeout(SECONDS):
                await play(People(stack, self._chain, *self._rest))

        asyncio.run(run())


@pytest.fixture
def stage(settings: Settings, network: Network, engine: NodeEngine, tmp_path: Path) -> Stage:
    return Stage(settings, network, engine, tmp_path)


def test_messenger__two_people__talk_in_a_group(stage: Stage) -> None:
    async def play(people: People) -> None:
        ann, _ = await people.register("ann")
        ben, ben_address = await people.register("ben")
        group_id = await ann.create_group([ben_address])
        ann.send(group_id, "hello, ben")
        await ann.settle()

        await ben.sync()
        [invited] = ben.groups()
        assert (invited.id, invited.membership) == (group_id, MembershipState.PENDING)
        ben.accept(group_id)
        ben.send(group_id, "hello, ann")
        await ben.settle()
        await ann.settle()

        assert texts(ann, group_id) == texts(ben, group_id) == ["hello, ben", "hello, ann"]
        assert {each.state for each in ann.intents(group_id)} == {IntentState.PROCESSED}
        assert ann.breaches() == ben.breaches() == []

    stage.play(play)


class Failing:
    """The engine, but it ends at one text."""

    def __init__(self, engine: NodeEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def encrypt(self, state: bytes, plaintext: bytes, authenticated_data: bytes) -> Encrypted:
        if b"poison" in plaintext:
            raise EngineFailed("engine", "an answer", "none")
        return self._engine.encrypt(state, plaintext, authenticated_data)


def test_messenger__one_group_fails_each_time__the_others_go_on(
    settings: Settings, network: Network, engine: NodeEngine, tmp_path: Path
) -> None:
    async def play(people: People) -> None:
        ann, _ = await people.register("ann")
        _, ben_address = await people.register("ben")
        failing, other = [await ann.create_group([ben_address]) for _ in range(2)]
        await ann.settle()
        ann.send(failing, "poison")
        ann.send(other, "hello")

        while any(each.state in UNFINISHED for each in ann.intents(other)):
            with pytest.raises(EngineFailed):
                await ann.sync()

        assert texts(ann, other) == ["hello"]

    Stage(settings, network, cast(NodeEngine, Failing(engine)), tmp_path).play(play)


def test_messenger__three_people_come_and_go__all_agree(stage: Stage) -> None:
    async def play(people: People) -> None:
        ann, _ = await people.register("ann")
        ben, ben_address = await people.register("ben")
        cat, cat_address = await people.register("cat")
        group_id = await ann.create_group([ben_address])
        await ann.settle()
        await ben.sync()
        # Both commit at once: the chain takes one first, and the other one is built again.
        await ann.add(group_id, [cat_address])
        ben.update_keys(group_id)
        await asyncio.gather(ann.settle(), ben.settle())
        await cat.settle()
        cat.send(group_id, "I am here")
        await cat.settle()
        await ann.remove(group_id, [ben_address])
        await ann.settle()
        ann.send(group_id, "without ben")
        await ann.settle()
        await asyncio.gather(ben.sync(), cat.sync())

        [gone] = ben.groups()
        assert not gone.is_member
        assert texts(cat, group_id) == texts(ann, group_id) == ["I am here", "without ben"]
        assert texts(ben, group_id) == ["I am here"]
        views = [{each.public_key for each in one.members(group_id)} for one in (ann, cat)]
        assert views == [{ann.installation.public_key, cat.installation.public_key}] * 2
        assert [each.epoch for each in ann.groups()] == [each.epoch for each in cat.groups()]

    stage.play(play)


def test_messenger__commit_is_mined_while_a_message_is_on_its_way__message_arrives(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(people: People) -> None:
        ann, ben, group_id = await people.two_in_a_group()
        await ben.sync()
        gateway, is_first = ben.session.gateway, [True]

        async def publish(
            client_envelopes: Sequence[bytes], seconds: float, retention_days: int | None
        ) -> Sequence[bytes]:
            if is_first.pop():
                ann.update_keys(group_id)
                await ann.settle()
            is_first.append(False)
            return await Gateway.publish(gateway, client_envelopes, seconds, retention_days)

        monkeypatch.setattr(gateway, "publish", publish)
        ben.send(group_id, "on its way")
        await ben.settle(30)
        await ann.sync()

        assert texts(ann, group_id) == texts(ben, group_id) == ["on its way"]
        assert ann.breaches() == ben.breaches() == []

    stage.play(play)


def test_messenger__somebody_takes_anothers_name__is_not_added_and_told_where_another_adds_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(people: People) -> None:
        ann, ben, group_id = await people.two_in_a_group()
        assert await ann.impostors(group_id) == []

        # Somebody makes an installation that calls itself ben's, and ann puts it into the group.
        mallory = await people.open("mallory")
        installation = mallory._own_installation(ben.inbox_id)
        await mallory.session.refresh()
        await mallory._key_packages.offer(installation)
        ann._opened.queue(group_id, AddMembers((installation.public_key,)))
        await ann.settle()

        refused = ann.intents(group_id)[-1]
        assert (refused.state, await ann.impostors(group_id)) == (IntentState.ERROR, [])
        assert "a valid one that names its own inbox" in refused.reason

        # A client of another make adds it all the same.
        async def trusting(session: object, member: object) -> bool:
            return True

        with monkeypatch.context() as patch:
            patch.setattr(group_network, "is_genuine", trusting)
            ann._opened.queue(group_id, AddMembers((installation.public_key,)))
            await ann.settle()

        assert [each.public_key for each in await ann.impostors(group_id)] == [
            installation.public_key
        ]
        await mallory.sync()
        mallory.accept(group_id)
        mallory.send(group_id, "I am ben")
        await mallory.settle()
        await ben.sync()
        ben.accept(group_id)
        ben.send(group_id, "no, I am")
        await ben.settle()
        await ann.sync()

        # Each of mallory's words is marked, for ann and for ben, and nobody else's.
        for reader in (ann, ben):
            rows = [
                each for each in reader.messages(group_id) if each.kind is MessageKind.APPLICATION
            ]
            assert [each.is_proved for each in rows] == [False, True]
            false, true = (message_line(each, ben.inbox_id.hex(), time.time_ns()) for each in rows)
            assert f"  ?{ben.inbox_id.hex()[:NAME]}  " in false
            assert NOT_PROVED in false
            assert "  you  " in true
        added = [each for each in ann.messages(group_id) if each.kind is MessageKind.MEMBER_ADDED]
        assert [each.is_changed_proved for each in added] == [True, False]

        await ann.remove(group_id, [installation.public_key.hex()])
        await ann.settle()
        with pytest.raises(NoSuchMember):
            await ann.remove(group_id, [(await people.register("carol"))[1]])
        assert [each.public_key for each in ann.members(group_id)] == [
            ann.installation.public_key,
            ben.installation.public_key,
        ]

    stage.play(play)


def test_messenger__a_node_shows_another_message_than_its_head_has__reads_the_true_one(
    stage: Stage, settings: Settings
) -> None:
    async def play(people: People) -> None:
        key = open_keystore(settings.record_path.parent / "node.keystore", PASSWORD)
        ann, ben, group_id = await people.two_in_a_group()
        await ben.sync()
        ben.accept(group_id)
        ann.send(group_id, "true words")
        await ann.settle()
        honest = ben.session.nodes_for
        cast(Any, ben.session).nodes_for = lambda topic: [
            TwoHistories(each, key) if topic == group_topic(group_id) else each
            for each in honest(topic)
        ]
        await ben.sync()

        assert texts(ben, group_id) == ["true words"]
        kinds = {each.misbehavior for each in ben.breaches()}
        assert kinds == {Misbehavior.DUPLICATE_SEQUENCE_ID, Misbehavior.OUT_OF_ORDER}

    stage.play(play)


def test_messenger__opened_again__reads_nothing_twice_and_loses_nothing(stage: Stage) -> None:
    async def play(people: People) -> None:
        ann, _ = await people.register("ann")
        ben, ben_address = await people.register("ben")
        group_id = await ann.create_group([ben_address])
        ann.send(group_id, "before")
        await ann.settle()
        await ben.settle()

        again = await people.open("ben")
        ann.send(group_id, "after")
        await ann.settle()
        await again.settle()

        assert texts(again, group_id) == ["before", "after"]
        assert again.installation == ben.installation

    stage.play(play)


def test_messenger__chain_reorganises__both_follow_and_nobody_forks(
    stage: Stage, chain: Anvil
) -> None:
    async def play(people: People) -> None:
        ann, ben, group_id = await people.two_in_a_group()
        await ben.settle()
        ann.update_keys(group_id)
        await ann.settle()
        await ben.settle()
        epochs = [one.groups()[0].epoch for one in (ann, ben)]

        # The commit of the last block is taken back; the gateway sends it again.
        chain.request("anvil_reorg", 1, [])
        ben.send(group_id, "after the reorg")
        rounds = await ann.sync()
        await ben.settle()
        await ann.settle()
        ann.send(group_id, "still here")
        await ann.settle()
        await ben.settle()

        assert rounds[group_id].reorgs == 1
        assert texts(ann, group_id) == texts(ben, group_id) == ["after the reorg", "still here"]
        assert [one.groups()[0].epoch for one in (ann, ben)] == epochs
        assert [one.groups()[0].forked_at_epoch for one in (ann, ben)] == [None, None]

    stage.play(play)
