"""A backup account file, as its person types: made, restored, converted, and stolen."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from chainkit_client.accounts.account_file import BackupAccount, open_account, read_sealed_account
from chainkit_client.accounts.restoring import receive, temporary_client
from chainkit_client.home import HomeFolder, connect_chain
from localnet.commands import Settings
from localnet.network import Network
from support.network.own_gateway import OwnGateway
from support.network.storage_service import StorageService
from support.network.typing_people import TypingPerson as Person
from support.network.typing_people import people_at

PASSPHRASE = "a long walk in the rain"
SAID = ["before the backup", "after the backup", "and an answer"]


@dataclass
class World:
    """Ann, and Ben, whose laptop makes a backup and is then lost; his phone comes later."""

    ann: Person
    laptop: Person
    phone: Person
    wallet: Path
    file: Path
    passphrase: Path
    storage_url: str
    group: str

    @property
    def opening(self) -> tuple[str | Path, ...]:
        return self.file, "--passphrase-file", self.passphrase

    @cached_property
    def account(self) -> BackupAccount:
        with self.file.open("rb") as file:
            return open_account(read_sealed_account(file), PASSPHRASE)


@pytest.fixture(scope="module")
def world(
    settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("accounts")
    key, passphrase = folder / "grant.key", folder / "passphrase.txt"
    key.write_text(bytes(range(32)).hex())
    passphrase.write_text(f"{PASSPHRASE}\n")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        storage = StorageService(folder / "storage", "--grant-key", str(key))
        stack.callback(storage.stop)
        storage.start()
        storage_url = f"http://127.0.0.1:{storage.port}"
        options = ("--backups-url", storage_url, "--grant-key", str(key))
        gateway = OwnGateway(settings, folder, (network.node_id, network.node_url), *options)
        stack.callback(gateway.stop)
        ann, laptop = people_at(settings, gateway.start_at(), folder, patch)
        ann.do(*ann.init)
        address = laptop.do(*laptop.init, "--storage", storage_url)["address"]
        wallet = folder / "wallet.keystore"
        shutil.copy(laptop.home / wallet.name, wallet)
        group = ann.do("group", "new", address)["group"]
        ann.do("send", group, "before the backup")
        laptop.say("accept", group)
        phone = replace(laptop, home=folder / "phone")
        file = folder / "backup.account"
        found = World(ann, laptop, phone, wallet, file, passphrase, storage_url, group)
        lose_the_laptop(found)
        yield found


def lose_the_laptop(world: World) -> None:
    """A backup is made, people talk on, and the phone is all that Ben has."""
    laptop, phone = world.laptop, world.phone
    made = laptop.do("history", "account", "create", *world.opening)
    assert (made["groups"], made["is_new"]) == (1, True)
    again = laptop.do("history", "account", "create", *world.opening)
    assert again == {**made, "is_new": False}
    world.ann.do("send", world.group, "after the backup")
    laptop.do("send", world.group, "and an answer")
    shutil.rmtree(laptop.home)
    phone.do(*phone.init, "--wallet", world.wallet, "--storage", world.storage_url)


def words(person: Person, group: str) -> list[str]:
    lines = map(json.loads, person.say("read", group, "--json").splitlines())
    return [each["text"] for each in lines if each["kind"] == "text"]


def devices(person: Person, group: str) -> dict[str, dict[str, Any]]:
    return {each["installation"]: each for each in person.do("group", "show", group)["members"]}


@pytest.mark.conforms("H27")
def test_restore__all_devices_are_lost__reads_what_the_file_and_the_nodes_have(
    world: World,
) -> None:
    phone, key = world.phone, world.account.installation.public_key.hex()
    assert devices(world.ann, world.group)[key]["is_backup"]

    killed_in_restore(world)
    loaded = phone.do("history", "account", "restore", *world.opening)

    assert loaded["device"] == key
    assert words(phone, world.group)[:3] == SAID
    [covered] = phone.do("history", "check")
    assert (covered["invented"], covered["disputed"], covered["omitted"]) == (0, 0, 0)
    assert covered["proven"] >= 3
    assert not list(phone.home.glob("restoring-*"))


KILLED = """
import os, signal
from chainkit.cli.main import main
from chainkit_client.accounts import restoring
restoring._handed_over = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main()
"""


def killed_in_restore(world: World) -> None:
    """A restore that received all, and whose home then has nothing in the clear."""
    words = world.phone.words("history", "account", "restore", *world.opening)
    killed = subprocess.run([sys.executable, "-c", KILLED, *words], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    [left] = world.phone.home.glob("restoring-*")
    assert left.joinpath("client.db").stat().st_size > 0
    held = b"".join(each.read_bytes() for each in world.phone.home.rglob("*") if each.is_file())
    own, [package] = world.account.installation, world.account.key_packages
    for each in (own.secret, package.secret, b"after the backup", PASSPHRASE.encode()):
        assert each not in held


@pytest.mark.conforms("H28")
def test_convert__another_device_asks__answers_it_and_keeps_nothing(world: World) -> None:
    phone = world.phone
    tablet = replace(phone, home=phone.home.parent / "tablet")
    asked = tablet.do(*tablet.init, "--wallet", world.wallet, "--storage", world.storage_url)
    requests = {each["device"]: each["id"] for each in asked["history"]["requests"]}
    key = world.account.installation.public_key.hex()
    convert = ("history", "account", "convert", world.file)
    opening = ("--passphrase-file", world.passphrase)

    pin = asked["history"]["pin"]
    phone.say(*convert, requests[key][:8], *opening, typed=f"{pin}\n")

    # It was answered: a client of the account that begins again says nothing twice.
    others = {each["id"] for each in phone.do(*convert, *opening)}
    assert others
    assert requests[key] not in others
    loaded = tablet.do("history", "apply")
    assert loaded["device"] == key
    assert words(tablet, world.group)[:3] == SAID
    assert not list(phone.home.glob("restoring-*"))


@pytest.mark.conforms("H25")
def test_account__stolen_with_its_passphrase__neither_speaks_nor_changes_a_group(
    world: World,
) -> None:
    asyncio.run(speak_and_commit(world))

    said = words(world.ann, world.group)
    assert "lies" not in said
    assert said[:3] == SAID
    # The thief's commit ended no epoch: people go on.
    world.ann.do("send", world.group, "still here")
    assert words(world.ann, world.group)[-1] == "still here"


async def speak_and_commit(world: World) -> None:
    """A thief's client sends a message and new keys, whatever the account's own client does."""
    home = HomeFolder(world.phone.home)
    settings, found = home.read_settings(), world.account
    group = bytes.fromhex(world.group)
    with world.file.open("rb") as past:
        read_sealed_account(past)
        chain = await asyncio.to_thread(connect_chain, settings)
        async with temporary_client(chain, settings, home.home_path, found, past) as thief:
            await receive(thief.messenger)
            thief.messenger.accept(group)
            thief.messenger.send(group, "lies")
            await thief.messenger.settle()
            assert words_of(thief, group)[-1] == "lies"
            thief.messenger.update_keys(group)
            await thief.messenger.settle()


def words_of(client: Any, group: bytes) -> list[str]:
    return [each.content.decode("utf-8", "replace") for each in client.messenger.messages(group)]
