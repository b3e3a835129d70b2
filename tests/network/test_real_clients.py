"""Today's native clients, as they are, against our node, our gateway and our contracts."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from chainkit.types import TopicKind
from localnet.commands import Background, Settings
from localnet.native_client import NativeClient
from localnet.network import Network, start_service
from support.network.node_sdk import NodeSdkClient, NodeSdkFailed
from support.network.people import new_person

_Answer = TypeVar("_Answer")
SECONDS = 60


@pytest.fixture
def backups_url(settings: Settings, tmp_path: Path) -> Iterator[str]:
    """A storage service of ours."""
    words = ("backups", "serve", "--folder", tmp_path / "backups", "--http", "127.0.0.1:0")
    service = Background(settings, tmp_path / "log", *words, "--log-format", "json")
    with ExitStack() as stack:
        yield f"http://127.0.0.1:{start_service(stack, service, 'backups_listening')}"


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


async def within(answer: Awaitable[_Answer]) -> _Answer:
    return await asyncio.wait_for(answer, SECONDS)


@pytest.mark.conforms("N2", "N16", "N22")
def test_native_clients__two_people__talk_in_a_group(network: Network, tmp_path: Path) -> None:
    async def talk() -> tuple[list[str], list[str]]:
        ann = await NativeClient.register(network.gateway_url, tmp_path / "ann", new_person())
        ben = await NativeClient.register(network.gateway_url, tmp_path / "ben", new_person())
        group = await ann.create_group([ben.account])
        await ann.send(group, "hello, ben")
        assert await ben.join() == [group]
        await ben.send(group, "hello, ann")
        return await ann.read(group), await ben.read(group)

    ann_read, ben_read = asyncio.run(within(talk()))

    assert ann_read == ben_read == ["hello, ben", "hello, ann"]


def test_can_add__key_package_that_the_node_does_not_have__says_no(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def asks() -> list[bool]:
        ann, ben = [
            await NativeClient.register(network.gateway_url, tmp_path / name, new_person())
            for name in ("ann", "ben")
        ]
        found = [await ann.can_add(ben)]
        with monkeypatch.context() as patched:
            patched.setattr(NativeClient, "installation_id", bytes(31) + b"1")
            found.append(await ann.can_add(ben))
        return found

    assert asyncio.run(within(asks())) == [True, False]


def test_create_group__key_package_of_the_other_has_expired__the_other_joins(
    network: Network, settings: Settings, tmp_path: Path
) -> None:
    database = settings.record_path.parent / "node.db"

    def set_expiry(topic: bytes, expires_at: int) -> int:
        """Set the expiry of the one key package on a topic; return what it was."""
        where = "FROM envelopes WHERE topic = ? AND originator_id = ?"
        with closing(sqlite3.connect(database)) as connection, connection:
            arguments = (topic, network.node_id)
            [(before,)] = connection.execute(f"SELECT expires_at {where}", arguments).fetchall()
            change = f"UPDATE envelopes SET expires_at = ? {where.removeprefix('FROM envelopes ')}"
            connection.execute(change, (expires_at, *arguments))
        return int(before)

    async def talk() -> tuple[bytes, list[bytes]]:
        ann, ben = [
            await NativeClient.register(network.gateway_url, tmp_path / name, new_person())
            for name in ("ann", "ben")
        ]
        topic = TopicKind.KEY_PACKAGE.topic(ben.installation_id)
        # As if ben had been away for 90 days.
        before = set_expiry(topic, 1)
        group = await ann.create_group([ben.account])
        # Once it is not the newest any more, other nodes would miss it.
        set_expiry(topic, before)
        return group, await ben.join()

    group, joined = asyncio.run(within(talk()))

    assert joined == [group]


def test_native_client__missed_a_commit__its_message_arrives_all_the_same(
    network: Network, tmp_path: Path
) -> None:
    async def talk() -> list[str]:
        ann, ben, cleo = [
            await NativeClient.register(network.gateway_url, tmp_path / name, new_person())
            for name in ("ann", "ben", "cleo")
        ]
        group = await ann.create_group([ben.account])
        assert await ben.join() == [group]
        await ben.add(group, cleo.account)
        await ann.send(group, "before I know of cleo")
        return await ben.read(group)

    assert asyncio.run(within(talk())) == ["before I know of cleo"]


def test_node_sdk__with_a_native_client__talks_in_a_group(network: Network, tmp_path: Path) -> None:
    person = new_person()

    async def talk(cleo: NodeSdkClient) -> tuple[list[str], list[str]]:
        dan = await NativeClient.register(network.gateway_url, tmp_path / "dan", person)
        group = cleo.create_group([person])
        cleo.send(group, "hello, dan")
        assert await dan.join() == [group]
        await dan.send(group, "hello, cleo")
        return cleo.read(group), await dan.read(group)

    cleo = NodeSdkClient.register(network.gateway_url, tmp_path / "cleo", new_person())
    try:
        cleo_read, dan_read = asyncio.run(within(talk(cleo)))
    finally:
        cleo.close()

    assert cleo_read == dan_read == ["hello, dan", "hello, cleo"]


def has_archive(taker: NodeSdkClient, pin: str, devices: Sequence[NodeSdkClient]) -> bool:
    """Sync a person's devices; return whether one of them could import an archive."""
    for each in devices:
        each.sync_devices()
    try:
        taker.take_archive(pin)
    except NodeSdkFailed as error:
        assert "MissingPayload" in str(error)
        return False
    return True


def test_node_sdk__second_device__gets_past_archive_and_consent_through_our_services(
    network: Network, backups_url: str, tmp_path: Path
) -> None:
    person, ben = new_person(), new_person()
    uploads = tmp_path / "backups" / "open"

    async def begin(first: NodeSdkClient) -> tuple[bytes, NativeClient]:
        other = await NativeClient.register(network.gateway_url, tmp_path / "ben", ben)
        group = first.create_group([ben])
        first.send(group, "before the second device")
        assert await other.join() == [group]
        return group, other

    with ExitStack() as stack:
        first, second = NodeSdkClient(person), NodeSdkClient(person)
        for client in (first, second):
            stack.callback(client.close)
        first.connect(network.gateway_url, tmp_path / "first", syncs_devices=True)
        group, _ = asyncio.run(within(begin(first)))
        second.connect(network.gateway_url, tmp_path / "second", syncs_devices=True)
        second.sync_devices()
        assert group not in second.join() or second.read(group) == []
        second.request_history(backups_url)

        def has_past() -> bool:
            first.sync_devices()
            second.sync_devices()
            return group in second.join() and second.read(group) == ["before the second device"]

        wait_until(has_past)
        # It came through the service, as today's clients upload.
        assert len(list(uploads.iterdir())) == 1

        first.deny(group)
        wait_until(lambda: second.is_denied(group))

        # The first one sends an archive that nobody asked for; a PIN names it.
        first.send_archive("4711", backups_url)
        assert len(list(uploads.iterdir())) == 2

        wait_until(lambda: has_archive(second, "4711", (first, second)))
        with pytest.raises(NodeSdkFailed, match="MissingPayload"):
            second.take_archive("0815")


def test_node_sdk__third_device__gets_the_past_and_an_archive_of_an_older_device(
    network: Network, backups_url: str, tmp_path: Path
) -> None:
    person, uploads = new_person(), tmp_path / "backups" / "open"
    with ExitStack() as stack:
        first, second, third = devices = [NodeSdkClient(person) for _ in range(3)]
        for number, each in enumerate(devices):
            stack.callback(each.close)
            each.connect(network.gateway_url, tmp_path / str(number), syncs_devices=True)
            if each is first:
                group = first.create_group([])
                first.send(group, "before the others")
        third.request_history(backups_url)

        def has_past() -> bool:
            for each in devices:
                each.sync_devices()
            # Both have answered, so both know the group of devices that the third one made.
            is_answered = uploads.exists() and len(list(uploads.iterdir())) == 2
            return is_answered and group in third.join() and third.read(group) != []

        wait_until(has_past)
        assert third.read(group) == ["before the others"]

        first.send_archive("4711", backups_url)

        for each in (second, third):
            wait_until(partial(has_archive, each, "4711", devices))
