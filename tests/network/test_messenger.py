"""The product's own client on a real network: two people register, meet, talk, and part."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import read_deployment_record
from chainkit.signatures import SigningKey
from chainkit_client.messenger import Messenger
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from chainkit_client.nodes.gateway import Gateway
from chainkit_client.storage.schema import IntentState, MembershipState, MessageKind
from chainkit_client.storage.store import Store
from localnet.commands import Settings
from localnet.network import Network

from .conftest import new_person

SECONDS = 120


@pytest.fixture(scope="module")
def engine() -> Iterator[NodeEngine]:
    with NodeEngine() as running:
        yield running


class People:
    """Makes messengers, each with a wallet and a database of its own."""

    def __init__(
        self,
        stack: AsyncExitStack,
        chain: Chain,
        network: Network,
        engine: NodeEngine,
        folder: Path,
    ) -> None:
        self._stack = stack
        self._chain = chain
        self._network = network
        self._engine = engine
        self._folder = folder

    async def register(self, name: str) -> tuple[Messenger, str]:
        """A messenger that is registered, and the address of its wallet."""
        account = new_person()
        messenger = await self.open(name)
        await messenger.register(SigningKey(bytes(account.key)))
        return messenger, account.address

    async def open(self, name: str) -> Messenger:
        """A messenger on a database, as after a restart."""
        store = Store.open(self._folder / f"{name}.db", "password", cost=2)
        self._stack.callback(store.close)
        messenger = Messenger(store, self._engine, self._chain, Gateway(self._network.gateway_url))
        return await self._stack.enter_async_context(messenger)


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


def texts(messenger: Messenger, group_id: bytes) -> list[str]:
    return [
        each.content.decode()
        for each in messenger.messages(group_id)
        if each.kind is MessageKind.APPLICATION
    ]


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
