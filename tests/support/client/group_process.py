"""A client in a process of its own, which ends itself at a chosen step: ``kill -9`` from within.

Steps are the beginning, the middle and the end of each transaction, and both sides of each call of
the network. The network is files in a folder: what was written before the process ended is there.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from chainkit.protocol.proto import envelopes_pb2
from chainkit_client.groups.building import Outgoing
from chainkit_client.groups.groups import Groups, OutgoingWelcome
from chainkit_client.groups.joining import WelcomePayload
from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.publishing import Answer, PublishOutcome, advance
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers
from chainkit_client.mls.engine import Member
from chainkit_client.storage.store import Store
from support.client.group_network import (
    BEGIN_NS,
    CHAIN,
    GROUP_ID,
    NODE,
    payload_hash_of,
    taken_apart,
)
from support.client.toy_engine import ToyEngine
from support.warm_parent import WarmParent


class Countdown:
    """Kills this process at a step; 0 for never."""

    def __init__(self, at: int) -> None:
        self._left = at

    def step(self) -> None:
        """Count a step."""
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(Store):
    """A store whose process may end before and after each transaction, and within it."""

    countdown: Countdown

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        self.countdown.step()
        with super().writing() as connection:
            yield connection
            self.countdown.step()
        self.countdown.step()


class FileNetwork:
    """Logs in files: one for each payload, named by its log and its id."""

    def __init__(self, folder: Path, countdown: Countdown) -> None:
        self._folder = folder
        self._countdown = countdown
        self.groups: Groups | None = None

    def payloads(self) -> list[tuple[int, int, bytes]]:
        """Originator, sequence id and ClientEnvelope of each payload."""
        found = sorted(self._folder.glob("payload-*"))
        places = [tuple(map(int, each.name.split("-")[1:])) for each in found]
        return [(*place, each.read_bytes()) for place, each in zip(places, found, strict=True)]

    def welcomes(self, installation: bytes) -> list[bytes]:
        """The welcomes of an installation."""
        return [
            each.read_bytes()
            for each in sorted(self._folder.glob(f"welcome-{installation.hex()}*"))
        ]

    async def authenticated_data(self, group_id: bytes, is_commit: bool) -> bytes:
        assert self.groups is not None
        data = envelopes_pb2.AuthenticatedData(target_topic=group_topic(group_id))
        seen = self.groups.cursor(group_topic(group_id))
        data.last_seen.node_id_to_sequence_id.update(seen)
        return data.SerializeToString(deterministic=True)

    async def fetch_key_packages(self, installations: Sequence[bytes]) -> Mapping[bytes, bytes]:
        self._countdown.step()
        return {each: (self._folder / f"offer-{each.hex()}").read_bytes() for each in installations}

    async def revoked(self, members: Sequence[Member]) -> frozenset[bytes]:
        return frozenset()

    async def publish(self, outgoing: Outgoing) -> Answer:
        self._countdown.step()
        self.add(CHAIN if outgoing.is_commit else NODE, outgoing.client_envelope)
        self._countdown.step()
        return Answer(PublishOutcome.TAKEN)

    async def is_absent(self, outgoing: Outgoing) -> bool:
        self._countdown.step()
        held = [payload_hash_of(data) for _, _, data in self.payloads()]
        return outgoing.payload_hash not in held

    async def send_welcome(self, welcome: OutgoingWelcome) -> bool:
        self._countdown.step()
        name = f"welcome-{welcome.installation.hex()}-{len(list(self._folder.iterdir())):06}"
        (self._folder / name).write_bytes(welcome.data)
        self._countdown.step()
        return True

    def add(self, originator_id: int, data: bytes) -> None:
        """Put a payload into a log; several processes may do so at once."""
        number = 0
        while True:
            number += 1
            path = self._folder / f"payload-{originator_id:03}-{number:06}"
            try:
                with path.open("xb") as file:
                    file.write(data)
                return
            except FileExistsError:
                continue


def open_client(
    database: Path, folder: Path, countdown: Countdown
) -> tuple[MortalStore, Groups, FileNetwork]:
    """Open a client's database, and its network."""
    store = MortalStore.open(database, "password", 2)
    store.countdown = countdown
    network = FileNetwork(folder, countdown)
    groups = Groups(store, ToyEngine())
    network.groups = groups
    return store, groups, network


def read(groups: Groups, network: FileNetwork) -> None:
    """Read welcomes, and what is new in the group's topic, chain first."""
    for number, data in enumerate(network.welcomes(groups.welcome_topic[1:]), 1):
        groups.take_welcome(WelcomePayload(NODE, number, BEGIN_NS + number, data))
    if not groups.groups():
        return
    cursor = groups.cursor(group_topic(GROUP_ID))
    for originator_id, sequence_id, data in network.payloads():
        if sequence_id > cursor.get(originator_id, 0):
            payload = taken_apart(data, originator_id, sequence_id, BEGIN_NS + sequence_id)
            groups.apply(GROUP_ID, [payload])


def run(groups: Groups, network: FileNetwork) -> None:
    """Act until nothing is left to do."""
    for _ in range(2):
        read(groups, network)
        if groups.groups():
            asyncio.run(advance(groups, network, GROUP_ID, BEGIN_NS))
    read(groups, network)


def queue(groups: Groups, action: str, installation: bytes) -> None:
    """Queue the intent of an action, unless an earlier life did."""
    arguments: dict[str, Any] = {
        "add": AddMembers((installation,)),
        "remove": RemoveMembers((installation,)),
        "update": KeyUpdate(),
    }
    if len(groups.intents(GROUP_ID)) > 1:
        return
    if action == "send":
        groups.send(GROUP_ID, b"words", BEGIN_NS)
    else:
        groups.queue(GROUP_ID, arguments[action])


def live(database: str, folder: str, action: str, installation: str, step: int) -> None:
    """Live once, to the end or to a step."""
    store, groups, network = open_client(Path(database), Path(folder), Countdown(step))
    queue(groups, action, bytes.fromhex(installation))
    run(groups, network)
    store.close()


class Lives(WarmParent):
    """A parent to fork from."""

    def __init__(self) -> None:
        super().__init__("support.client.group_process", environment=os.environ)

    def begin(self, *lives: tuple[str, str, str, str, int]) -> None:
        """Begin lives side by side; the arguments are those of ``live``."""
        self.ask(lives)

    def end(self) -> list[int]:
        """Wait for the lives that were begun; return exit codes, or minus the signals."""
        codes: list[int] = self.answer()
        return codes


def _child(arguments: list[Any]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        # The parent's answers are not the child's.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        live(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    """Fork for each life of a line of standard input, and answer how they ended."""
    for line in sys.stdin:
        children = [_child(arguments) for arguments in json.loads(line)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main()
