"""Alice's phone: it joins her inbox late, and asks her first device for what was said before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.nodes.gateway import Gateway
from chainkit.signatures import SigningKey
from chainkit_client.cli import pages
from chainkit_client.exchange.exchange import HistoryExchange
from chainkit_client.groups.transcript import Message
from chainkit_client.messenger import Messenger
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from chainkit_client.storage.imported_schema import Standing
from chainkit_client.storage.store import Store

COST: Final = 2
"""The databases live as long as the program, and their password is known."""


@dataclass(frozen=True, slots=True)
class Services:
    """The services that all devices use, and the folder of their databases."""

    folder: Path
    engine: NodeEngine
    chain: Chain
    gateway_url: str
    storage_url: str
    password: str


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a person, which can ask and answer the person's other devices."""

    messenger: Messenger
    history: HistoryExchange


async def new_device(
    clients: AsyncExitStack, services: Services, name: str, wallet: SigningKey
) -> Device:
    """Register a device for a wallet; it is closed with the stack."""
    store = Store.open(services.folder / f"{name}.db", services.password, cost=COST)
    clients.callback(store.close)
    gateway = Gateway(services.gateway_url)
    messenger = Messenger(store, services.engine, services.chain, gateway)
    await clients.enter_async_context(messenger)
    await messenger.register(wallet)
    url, folder = services.storage_url, services.folder
    return Device(
        messenger, HistoryExchange(messenger, store, gateway, url, folder, services.engine.close)
    )


class Phone:
    """The phone, as Alice uses it: it asks, she types its PIN at the laptop, and it reads."""

    def __init__(
        self, clients: AsyncExitStack, services: Services, laptop: Device, wallet: SigningKey
    ) -> None:
        """Take Alice's first device; nothing is asked yet."""
        self._clients = clients
        self._services = services
        self._laptop = laptop
        self._wallet = wallet
        self._phone: Device | None = None

    async def ask(self) -> str:
        """Ask the laptop, and return the PIN that the phone shows."""
        if self._phone is None:
            made = await new_device(self._clients, self._services, "alice-phone", self._wallet)
            self._phone = made
        requester = self._phone.history.requester
        [request] = await requester.request()
        return requester.pin(request)

    async def approve(self, pin: str) -> int:
        """Let Alice type the PIN at the laptop; return how many messages it sent.

        Raises WrongPin and RequestNotFound.
        """
        history = self._laptop.history
        await history.sync()
        waiting = [each.id for each in history.provider.asks()]
        return (await history.provider.approve(waiting[-1] if waiting else b"", pin)).messages

    async def read(self, group_id: bytes) -> tuple[str, list[str]]:
        """Let the phone fetch the file and compare it with the network.

        Return what the comparison found, and the lines of the group.
        """
        assert self._phone is not None
        history, messenger = self._phone.history, self._phone.messenger
        await history.sync()
        answered = [each for each in history.requester.requests() if each.response is not None]
        loaded = await history.requester.apply(answered[-1].id)
        # The chain is asked whether the senders are who they say.
        await messenger.sync()
        [covered] = [each for each in await messenger.check_history() if each.group_id == group_id]
        found = {
            "proven": covered.count(Standing.PROVEN),
            "invented": covered.count(Standing.INVENTED),
            "disputed": covered.count(Standing.DISPUTED),
            "omitted": covered.omitted,
        }
        shown = ", ".join(f"{count} {name}" for name, count in found.items())
        own, now_ns = messenger.inbox_id.hex(), time.time_ns()
        lines = [pages.message_line(each, own, now_ns) for each in self.messages(group_id)]
        return f"{loaded.new} messages came to the phone: {shown}", lines

    def messages(self, group_id: bytes) -> Sequence[Message]:
        """Return the group's messages on the phone."""
        assert self._phone is not None
        return self._phone.messenger.messages(group_id)
