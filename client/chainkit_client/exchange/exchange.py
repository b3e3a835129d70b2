"""History between a person's devices: the requester, the provider, and their messages.

::

    async with opened(HomeFolder(Path("phone")), password) as client:
        [request, *_] = await client.history.requester.request()
        …           # on the laptop, once the PIN was typed: provider.approve(request.id, pin)
        await client.history.sync()
        await client.history.requester.apply(request.id)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import MalformedData
from chainkit.nodes.gateway import Gateway
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.service.refusals import PassedOn
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.exchange.control import HistoryRequest, HistoryResponse, parse_control
from chainkit_client.exchange.errors import HistoryOff, NetworkError
from chainkit_client.exchange.origin import origin_of
from chainkit_client.exchange.own_devices import OwnDevices
from chainkit_client.exchange.provider import Provider
from chainkit_client.exchange.requester import Requester
from chainkit_client.exchange.storage_service import StorageService
from chainkit_client.groups.overview import read_groups
from chainkit_client.messenger import Messenger
from chainkit_client.storage import exchange_rows as rows
from chainkit_client.storage.exchange_schema import RequestStatus
from chainkit_client.storage.sealing import Seal
from chainkit_client.storage.store import Store
from chainkit_client.storage.sync_groups import (
    ControlMessage,
    count_control,
    delete_control,
    forget_group,
    hide_group,
    read_control,
    read_kept_groups,
)

_GRANT_SECONDS: Final = 30.0
_KEPT_NS: Final = 86_400 * NANOSECONDS_PER_SECOND


class HistoryExchange:
    """The requests of a device to others, and of others to it."""

    def __init__(
        self,
        messenger: Messenger,
        store: Store,
        gateway: Gateway,
        storage_url: str | None,
        folder: Path,
        end_engine: Callable[[], None],
    ) -> None:
        """Take the messenger with its database, the gateway, and a folder for nameless files.

        ``end_engine`` ends the child of the messenger's MLS engine until the engine's next call.

        ``storage_url`` names the storage service that the person trusts; without one nothing is
        asked for and nothing is given (H18). Raises ConfigurationError for another text than a URL.
        """
        self._store = store
        self._gateway = gateway
        self._devices = OwnDevices(messenger, store, end_engine)
        self._parts: tuple[Requester, Provider] | None = None
        if storage_url is not None:
            storage = StorageService(origin_of(storage_url, "storage service"))
            requester = Requester(store, self._devices, storage, self._grant, folder, time.time_ns)
            provider = Provider(store, self._devices, storage, folder, time.time_ns)
            self._parts = requester, provider

    @property
    def is_on(self) -> bool:
        """Whether the person has named a storage service."""
        return self._parts is not None

    @property
    def requester(self) -> Requester:
        """The side that asks. Raises HistoryOff."""
        return self._both()[0]

    @property
    def provider(self) -> Provider:
        """The side that is asked. Raises HistoryOff."""
        return self._both()[1]

    async def sync(self) -> None:
        """Read what is new, and go on with what was interrupted. Raises the network's errors."""
        await self._devices.sync()
        await take_messages(self._store, self._devices, self._parts)
        if self._parts is not None:
            requester, provider = self._parts
            is_asked, is_answered = await requester.resume(), provider.resume()
            if is_asked or is_answered:
                await self._devices.settle()
                provider.resume()
        forget_finished(self._store, time.time_ns())

    def is_asked(self) -> bool:
        """Return whether another device asks, and its person has not decided; it asks nobody."""
        if self._parts is None:
            return False
        with self._store.reading() as connection:
            if count_control(connection):
                return True
        return any(each.response is None for each in self.provider.asks())

    def _both(self) -> tuple[Requester, Provider]:
        if self._parts is None:
            expected = "a storage service: `chainkit client history storage URL`"
            raise HistoryOff("history", expected, "none")
        return self._parts

    async def _grant(self) -> str:
        try:
            return await self._gateway.grant_upload(_GRANT_SECONDS)
        except (NodeLost, NodeUnreached, PassedOn) as error:
            raise NetworkError("gateway", "an upload URL", error) from error


async def take_messages(
    store: Store, devices: OwnDevices, parts: tuple[Requester, Provider] | None
) -> None:
    """Take the messages for the program of devices that are in the inbox; ignore all others.

    A backup only answers: what else it sends is ignored (H25). Where history is off, what came is
    deleted unread. Raises the network's errors.
    """
    with store.reading() as connection:
        waiting = read_control(connection, store.seal)
    if not waiting:
        return
    installations = await devices.installations()
    backups = {each.group_id: devices.backups(each.group_id) for each in waiting}
    with store.writing() as connection:
        for message in waiting:
            if message.sender not in installations:
                continue
            hide_group(connection, message.group_id)
            parsed = _parsed(message)
            if parts is None:
                continue
            is_backup = message.sender in backups[message.group_id]
            if isinstance(parsed, HistoryRequest) and not is_backup:
                parts[1].take(connection, message, parsed)
            if isinstance(parsed, HistoryResponse):
                parts[1].forget_answered(connection, message, parsed)
                parts[0].take(connection, message, parsed)
        delete_control(connection, waiting[-1].id)


def forget_finished(store: Store, now_ns: int) -> None:
    """Delete what sync groups hold in which this device waits for nothing any more.

    A group of another device's requests stays for a day: one of them may be to this device. A group
    with an answer to give is deleted with the answer.
    """
    with store.writing() as connection:
        finished = _finished_groups(connection, store.seal, now_ns)
        for group_id in finished:
            forget_group(connection, group_id)
    if finished:
        store.forget_deleted()


def _finished_groups(connection: Connection, seal: Seal, now_ns: int) -> list[bytes]:
    requests = rows.read_requests(connection, seal)
    pending = {each.group_id for each in requests if each.status is RequestStatus.PENDING}
    waiting = pending | {each.group_id for each in rows.read_asks(connection, seal)}
    waiting |= {each.group_id for each in read_control(connection, seal)}
    kept = set(read_kept_groups(connection)) - waiting
    own = {each.group_id for each in requests}
    created = {each.id: each.created_at_ns for each in read_groups(connection)}
    return [
        each
        for each in sorted(kept)
        if each in own or created.get(each, now_ns) < now_ns - _KEPT_NS
    ]


def _parsed(message: ControlMessage) -> HistoryRequest | HistoryResponse | None:
    try:
        return parse_control(message.content)
    except MalformedData:
        return None
