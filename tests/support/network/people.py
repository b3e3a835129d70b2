"""People with a client each on a real network; one person may have several clients."""

from __future__ import annotations

from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

from eth_account import Account
from eth_account.signers.local import LocalAccount

from chainkit.nodes.gateway import Gateway
from chainkit.signatures import SigningKey
from chainkit_client.messenger import Messenger
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from chainkit_client.storage.schema import MessageKind
from chainkit_client.storage.store import Store
from localnet.network import Network

_NUMBERS = count(1)


def new_person() -> LocalAccount:
    """Return a wallet that nobody has used."""
    account: LocalAccount = Account.from_key(next(_NUMBERS).to_bytes(32, "big"))
    return account


def texts(messenger: Messenger, group_id: bytes) -> list[str]:
    """Return the words of a group's messages, in the transcript's order."""
    return [
        each.content.decode()
        for each in messenger.messages(group_id)
        if each.kind is MessageKind.APPLICATION
    ]


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
        self.folder = folder
        self._open: dict[str, AsyncExitStack] = {}

    async def register(self, name: str) -> tuple[Messenger, str]:
        """A messenger that is registered, and the address of its wallet."""
        account = new_person()
        messenger = await self.open(name)
        await messenger.register(SigningKey(bytes(account.key)))
        return messenger, account.address

    async def two_in_a_group(self) -> tuple[Messenger, Messenger, bytes]:
        """Ann and ben, and a group that ann has made; ben has not read it."""
        ann, _ = await self.register("ann")
        ben, ben_address = await self.register("ben")
        group_id = await ann.create_group([ben_address])
        await ann.settle()
        return ann, ben, group_id

    def database(self, name: str) -> Path:
        """The file of a person's client."""
        return self.folder / f"{name}.db"

    async def open(self, name: str) -> Messenger:
        """A messenger on a database, as after a restart."""
        own = self._open[name] = await self._stack.enter_async_context(AsyncExitStack())
        store = Store.open(self.database(name), "password", cost=2)
        own.callback(store.close)
        messenger = Messenger(store, self._engine, self._chain, Gateway(self._network.gateway_url))
        return await own.enter_async_context(messenger)

    async def restart(self, name: str) -> Messenger:
        """Close a person's last messenger, and open another one."""
        await self._open[name].aclose()
        return await self.open(name)
