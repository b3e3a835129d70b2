"""History that a person's second device asks the first one for, as it is typed."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from chainkit_client.exchange.errors import NetworkError
from chainkit_client.exchange.origin import origin_of
from chainkit_client.exchange.storage_service import StorageService as Asked
from localnet.commands import Settings
from localnet.network import Network
from support.command_line import run
from support.network import lying_storage
from support.network.lying_storage import LyingStorage
from support.network.own_gateway import OwnGateway
from support.network.storage_service import StorageService
from support.network.typing_people import TypingPerson as Person
from support.network.typing_people import people_at


@dataclass
class World:
    """Ann, Ben at his laptop, and his phone, which joined after the messages."""

    ann: Person
    laptop: Person
    phone: Person
    storage: LyingStorage
    group: str

    def uploads(self) -> int:
        return self.storage.requests.count("POST")


@pytest.fixture(scope="module")
def world(
    settings: Settings, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("history")
    key = folder / "grant.key"
    key.write_text(bytes(range(32)).hex())
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        liar = stack.enter_context(LyingStorage().running())
        real = StorageService(folder / "storage", "--grant-key", str(key), "--url", liar.url)
        stack.callback(real.stop)
        real.start()
        liar.real_port = real.port
        options = ("--backups-url", liar.url, "--grant-key", str(key))
        gateway = OwnGateway(settings, folder, (network.node_id, network.node_url), *options)
        stack.callback(gateway.stop)
        ann, laptop = people_at(settings, gateway.start_at(), folder, patch)
        ann.do(*ann.init, "--storage", liar.url)
        address = laptop.do(*laptop.init, "--storage", liar.url)["address"]
        group = ann.do("group", "new", address)["group"]
        ann.do("send", group, "before there was a phone")
        laptop.say("accept", group)
        laptop.do("send", group, "and my answer")
        phone = replace(laptop, home=folder / "phone")
        wallet = ("--wallet", laptop.home / "wallet.keystore")
        said = phone.say(*phone.init, *wallet)
        assert "history         your other devices have it: chainkit client history storage" in said
        yield World(ann, laptop, phone, liar, group)


def transcript(person: Person, group: str) -> list[dict[str, Any]]:
    lines = person.say("read", group, "--json").splitlines()
    return [each for each in map(json.loads, lines) if each["kind"] == "text"]


def rows_of(home: Path, *tables: str) -> dict[str, int]:
    with sqlite3.connect(home / "client.db") as connection:
        counted = {
            each: connection.execute(f"SELECT count(*) FROM {each}").fetchone()[0]
            for each in tables
        }
    connection.close()
    return counted


def sealed_in(home: Path) -> list[bytes]:
    """All sealed secrets of requests that the database has now."""
    query = """SELECT secret FROM history_requests WHERE secret IS NOT NULL
        UNION ALL SELECT response FROM history_requests WHERE response IS NOT NULL
        UNION ALL SELECT request FROM history_asks
        UNION ALL SELECT sealed_message FROM group_messages
            WHERE group_id IN (SELECT group_id FROM sync_groups)
        UNION ALL SELECT state FROM group_states
            WHERE group_id IN (SELECT group_id FROM sync_groups)"""
    with sqlite3.connect(home / "client.db") as connection:
        found = [row[0] for row in connection.execute(query)]
    connection.close()
    return found


def bytes_of(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.iterdir() if path.is_file())


@pytest.mark.conforms("H14")
def test_request__of_a_second_device__brings_the_past_once_its_person_typed_the_pin(
    world: World,
) -> None:
    laptop, phone = world.laptop, world.phone

    # Once it has a storage service, it asks by itself.
    wallet = ("--wallet", laptop.home / "wallet.keystore")
    made = phone.do(*phone.init, *wallet, "--storage", world.storage.url)
    assert made["other_devices"] == 1
    [asked] = made["history"]["requests"]
    pin = made["history"]["pin"]
    assert asked["device"] == laptop.do("whoami")["installation"]
    [status] = phone.do("history", "status")
    assert (status["status"], status["pin"], status["is_answered"]) == ("pending", pin, False)
    assert "a response of another device, got none; 1 wait" in phone.fail("history", "apply")

    # Until the laptop is asked to, it takes nothing, and shows no group.
    assert [each["id"] for each in laptop.do("group", "list")] == [world.group]
    assert "another device of yours asks" in run(*laptop.words("group", "list")).err
    [ask] = laptop.do("history", "list")
    assert ask["id"] == asked["id"]
    assert world.ann.do("history", "list") == []
    secrets = [*sealed_in(laptop.home), *sealed_in(phone.home)]
    wrong = f"{(int(pin) + 1) % 10000:04}"
    assert "2 more tries" in laptop.fail("history", "approve", ask["id"][:8], typed=f"{wrong}\n")
    assert world.uploads() == 0

    laptop.say("history", "approve", ask["id"][:8], typed=f"{pin}\n")
    assert world.uploads() == 1
    # Neither the file's writer nor its reader keeps the MLS engine's memory meanwhile.
    assert world.storage.engines == [0]
    assert laptop.do("history", "list") == []
    assert "none" in laptop.fail("history", "approve", ask["id"][:8], typed=f"{pin}\n")

    [status] = phone.do("history", "status")
    assert status["is_answered"]
    secrets += sealed_in(phone.home)
    loaded = phone.do("history", "apply")
    assert world.storage.engines == [0, 0]
    assert (loaded["device"], loaded["new"] > 0) == (asked["device"], True)
    read = transcript(phone, world.group)
    assert [each["text"] for each in read] == ["before there was a phone", "and my answer"]
    assert [each["from_device"] for each in read] == [asked["device"]] * 2
    [covered] = phone.do("history", "check")
    assert (covered["invented"], covered["disputed"], covered["omitted"]) == (0, 0, 0)
    assert covered["proven"] >= 2
    [status] = phone.do("history", "status")
    assert (status["status"], status["pin"]) == ("applied", None)
    assert "applied, without a response" in phone.fail("history", "apply", asked["id"])

    assert len(secrets) > 5
    for person in (laptop, phone):
        assert sealed_in(person.home) == []
        held = bytes_of(person.home)
        assert [each for each in secrets if each in held] == []
        names = {each.name.partition("-")[0] for each in person.home.iterdir()}
        assert names <= {"client.db", "settings.json", "wallet.keystore"}
    assert rows_of(laptop.home, "history_asks", "control_messages") == {
        "history_asks": 0,
        "control_messages": 0,
    }


KILLED = """
import os, signal
from chainkit.cli.main import main
from chainkit_client.exchange.own_devices import OwnDevices
OwnDevices.send = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main()
"""


def ask_again(world: World) -> tuple[str, str]:
    """The phone asks; return the request's id and its PIN."""
    world.phone.say("history", "storage", world.storage.url)
    asked = world.phone.do("history", "request")
    return asked["requests"][0]["id"], asked["pin"]


@pytest.mark.conforms("H6")
def test_apply__storage_lies_and_the_provider_was_killed__imports_nothing_that_is_not_right(
    world: World,
) -> None:
    laptop, phone = world.laptop, world.phone
    request_id, pin = ask_again(world)
    assert [each["id"] for each in laptop.do("history", "list")] == [request_id]
    words = laptop.words("history", "approve", request_id)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *words],
        input=f"{pin}\n".encode(),
        env=os.environ,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not [each for each in laptop.home.iterdir() if each.name.startswith("tmp")]
    # The person approved, and what was stored goes on with the next command.
    laptop.say("history", "list")
    before = rows_of(phone.home, "imported_messages")

    for lie, words_of_it in {
        lying_storage.redirecting: "expected status 200, got 302",
        lying_storage.truncated: "expected a file of",
        lying_storage.endless: "got more",
        lying_storage.altered: "the one of the response, got another hash",
    }.items():
        world.storage.alter = lie
        assert words_of_it in phone.fail("history", "apply")
    world.storage.alter = lying_storage.whole

    assert rows_of(phone.home, "imported_messages") == before
    [*_, status] = phone.do("history", "status")
    assert (status["id"], status["status"]) == (request_id, "failed")
    assert sealed_in(phone.home) == []


@pytest.mark.conforms("H10")
def test_request__denied_or_of_a_revoked_device__brings_nothing(world: World) -> None:
    laptop, phone = world.laptop, world.phone
    uploads = world.uploads()
    denied, _ = ask_again(world)
    laptop.say("history", "deny", denied[:8])
    assert laptop.do("history", "list") == []
    request_id, pin = ask_again(world)
    assert [each["id"] for each in laptop.do("history", "list")] == [request_id]

    laptop.say("device", "revoke", phone.do("whoami")["installation"], "--yes")

    refusal = laptop.fail("history", "approve", request_id, typed=f"{pin}\n")
    assert "devices that are in your inbox now" in refusal
    assert laptop.do("history", "list") == []
    assert world.uploads() == uploads
    states = [each["status"] for each in phone.do("history", "status")]
    assert states[-2:] == ["pending", "pending"]
    laptop.say("history", "storage", "--off")
    assert "a storage service" in laptop.fail("history", "list")


@pytest.mark.parametrize(
    "drips", [(b"",), (b"H", b"T"), (b"HTTP/1.1 200 OK\r\n\r\n", b"a", b"b")], ids=len
)
def test_download__service_that_is_slow_for_ever__ends(drips: tuple[bytes, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server, drips))
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        asked = Asked(origin_of(url, "storage"), patience=0.4)

        with pytest.raises(NetworkError), Path(os.devnull).open("wb") as file:
            asked.download(f"{url}/backups/a", file, 1000)

        thread.join()


def drip(server: socket.socket, drips: tuple[bytes, ...]) -> None:
    """Send the first bytes, then the last ones for as long as anybody reads."""
    connection, _ = server.accept()
    *first, last = drips
    with connection:
        try:
            for each in first:
                connection.sendall(each)
            connection.settimeout(0.1)
            while True:
                connection.sendall(last)
                try:
                    if not connection.recv(1000):
                        return
                except TimeoutError:
                    pass
        except OSError:
            # The reader hung up.
            return
