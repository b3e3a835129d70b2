"""Two devices of one person that ask each other for history, without MLS and without a network."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from unittest import mock

from sqlalchemy import Connection, select

from chainkit_client.exchange.exchange import forget_finished, take_messages
from chainkit_client.exchange.origin import origin_of
from chainkit_client.exchange.own_devices import OwnDevices
from chainkit_client.exchange.provider import Provider
from chainkit_client.exchange.requester import Requester
from chainkit_client.exchange.storage_service import StorageService
from chainkit_client.mls.engine import Member
from chainkit_client.storage import schema
from chainkit_client.storage.exchange_rows import OwnRequest
from chainkit_client.storage.sync_groups import forget_group, keep_control
from support.client.history_devices import BEGIN_NS, INBOX, HistoryDevice, insert_joined

STORAGE_URL = "https://backups.example"


@dataclass(frozen=True, slots=True)
class FolderStorage(StorageService):
    """A storage service whose files are in a folder, also for a process that was killed."""

    folder: Path = Path()

    def upload(self, url: str, file: BinaryIO, length: int) -> str:
        data = file.read()
        assert len(data) == length
        name = secrets.token_hex(16)
        (self.folder / name).write_bytes(data)
        return f"{STORAGE_URL}/backups/{name}"

    def download(self, url: str, file: BinaryIO, length: int) -> bytes:
        data = (self.folder / url.rpartition("/")[2]).read_bytes()
        file.write(data)
        return hashlib.sha256(data).digest()

    @property
    def uploads(self) -> int:
        return len(list(self.folder.iterdir()))


class FakeDevices:
    """The devices of the inbox, which deliver to each other at once."""

    def __init__(self, device: HistoryDevice, person: Person) -> None:
        self.itself = device.key
        self.inbox_id = INBOX
        self._store = device.store
        self._person = person
        self.sent = 0
        self.rests = 0

    async def installations(self) -> frozenset[bytes]:
        return frozenset(self._person.inbox)

    def members(self, group_id: bytes) -> Sequence[Member]:
        return [Member(leaf, b"", key) for leaf, key in enumerate(sorted(self._person.readers))]

    def backups(self, group_id: bytes) -> frozenset[bytes]:
        return frozenset(self._person.backups)

    async def make_group(self, group_id: bytes) -> None:
        if not self.has_group(group_id):
            with self._store.writing() as connection:
                insert_joined(connection, group_id)

    def has_group(self, group_id: bytes) -> bool:
        with self._store.reading() as connection:
            is_it = schema.groups.c.id == group_id
            return connection.scalar(select(schema.groups.c.id).where(is_it)) is not None

    def send(self, group_id: bytes, content: bytes) -> None:
        self.sent += 1
        for other in self._person.devices:
            if other.key != self.itself:
                deliver(other, group_id, self.itself, content)

    def is_busy(self, group_id: bytes) -> bool:
        return False

    async def settle(self) -> None:
        pass

    def rest(self) -> None:
        self.rests += 1

    @staticmethod
    def forget(connection: Connection, group_id: bytes) -> None:
        forget_group(connection, group_id)


def deliver(device: HistoryDevice, group_id: bytes, sender: bytes, content: bytes) -> None:
    """A message for the program has come."""
    with device.store.writing() as connection:
        keep_control(connection, device.store.seal, group_id, sender, content)


class Person:
    """A laptop, which has messages, and a phone; each in a home folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.now_ns = BEGIN_NS
        (folder / "storage").mkdir()
        self.storage = FolderStorage(origin_of(STORAGE_URL, "storage"), folder=folder / "storage")
        self.homes = [folder / "laptop", folder / "phone"]
        for each in self.homes:
            each.mkdir()
        self.laptop, self.phone = (
            HistoryDevice(home, number) for number, home in enumerate(self.homes, 1)
        )
        self.devices = [self.laptop, self.phone]
        self.inbox = {each.key for each in self.devices}
        self.readers = set(self.inbox)
        self.backups: set[bytes] = set()
        self.sides = [self._parts(*each) for each in zip(self.devices, self.homes, strict=True)]
        self.provider = self.sides[0][1]
        self.requester = self.sides[1][0]
        self.laptop_devices, self.phone_devices = (each[2] for each in self.sides)

    def take(self) -> None:
        """Both devices take what came."""
        for device, (requester, provider, devices) in zip(self.devices, self.sides, strict=True):
            own = cast(OwnDevices, devices)
            asyncio.run(take_messages(device.store, own, (requester, provider)))

    def ask(self) -> OwnRequest:
        """The phone asks the laptop."""
        [found] = asyncio.run(self.requester.request())
        self.take()
        return found

    def approve(self, request: OwnRequest, pin: str | None = None) -> None:
        """The person approves at the laptop."""
        given = self.requester.pin(request) if pin is None else pin
        asyncio.run(self.provider.approve(request.id, given))
        self.take()

    def resume(self) -> None:
        """Both devices go on."""
        asyncio.run(self.requester.resume())
        self.provider.resume()
        self.take()
        for each in self.devices:
            forget_finished(each.store, self.now_ns)

    def _parts(self, device: HistoryDevice, home: Path) -> tuple[Requester, Provider, FakeDevices]:
        devices = FakeDevices(device, self)
        own = cast(OwnDevices, devices)

        async def grant() -> str:
            return f"{STORAGE_URL}/backups?grant={secrets.token_hex(16)}"

        requester = Requester(device.store, own, self.storage, grant, home, lambda: self.now_ns)
        provider = Provider(device.store, own, self.storage, home, lambda: self.now_ns)
        return requester, provider, devices


def killed_after(owner: Any, name: str, do: Callable[[], object]) -> None:
    """Do something in a process of its own, which is killed once it called a function."""
    child = os.fork()
    if child == 0:
        original = getattr(owner, name)

        def die(*given: Any, **named: Any) -> None:
            original(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        try:
            with mock.patch.object(owner, name, die):
                do()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def held_bytes(home: Path) -> bytes:
    """All bytes of a home folder: the database, its log, and whatever else is there."""
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def sealed_secrets(devices: Iterable[HistoryDevice]) -> list[bytes]:
    """The sealed requests, keys and responses that databases have."""
    query = """SELECT secret FROM history_requests UNION ALL SELECT response FROM history_requests
        UNION ALL SELECT request FROM history_asks UNION ALL SELECT response FROM history_asks
        UNION ALL SELECT content FROM control_messages"""
    found: list[bytes] = []
    for device in devices:
        with device.store.reading() as connection:
            rows = connection.exec_driver_sql(query)
            found += [row[0] for row in rows if row[0] is not None]
    return found
