"""Alice and Bob on a private network of two nodes, and the events that a person may cause."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.contracts.deployment import read_deployment_record
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.signatures import SigningKey
from chainkit.terminal.keystore import open_keystore
from chainkit_client.cli.conversation import Conversation
from chainkit_client.messenger import Messenger
from chainkit_client.mls.node_engine import NodeEngine
from chainkit_client.network.chain import Chain
from localnet.accounts import COUNCIL, development_account, write_keystore
from localnet.anvil import Anvil
from localnet.chat_phone import Phone, Services, new_device
from localnet.commands import Settings
from localnet.deployment import deploy
from localnet.network import StartedNode, start_gateway, start_node, wait_for_entry, welcome
from localnet.ports import free_port
from localnet.private_file import write_private
from localnet.storage import start_storage
from scripts._mining import replace_blocks

PASSWORD: Final = "localnet"
NAMES: Final = ("Alice", "Bob")
_ACCOUNTS: Final = (8, 9)


@dataclass(frozen=True, slots=True)
class Stage:
    """Two people in one group, and their network."""

    anvil: Anvil
    folder: Path
    nodes: dict[int, StartedNode]
    people: tuple[Conversation, Conversation]
    phone: Phone

    async def reorganise(self) -> str:
        """Let Alice commit new keys, and let the chain take the commit's block back."""
        alice = self.people[0]
        alice.messenger.update_keys(alice.group_id)
        await alice.messenger.settle()
        await asyncio.to_thread(replace_blocks, self.anvil.endpoint, 1, [])
        return "Alice has changed her keys, and the chain took the block with her commit back"

    async def lie(self) -> str:
        """Let the node of the last message replace it by another one, and deny the first."""
        alice = self.people[0]
        places = [each.place for each in alice.messenger.messages(alice.group_id)]
        own = [each for each in places if each is not None and each[0] in self.nodes]
        if not own:
            return "no node has a message yet: write one first"
        node_id, sequence_id = own[-1]
        await asyncio.to_thread(self._replace, node_id, sequence_id)
        return f"node {node_id} has replaced message {sequence_id}, and denies the first one"

    def _replace(self, node_id: int, sequence_id: int) -> None:
        node, folder = self.nodes[node_id], node_folder(self.folder, self.nodes, node_id)
        node.service.stop()
        key = open_keystore(folder / "node.keystore", PASSWORD)
        forged = _another_message(node_id, sequence_id, key)
        with closing(sqlite3.connect(folder / "node.db")) as connection, connection:
            connection.execute(
                "UPDATE envelopes SET envelope = ? WHERE originator_id = ? AND sequence_id = ?",
                (forged, node_id, sequence_id),
            )
        node.service.start()
        for event in ("node_listening", "own_log_known"):
            wait_for_entry(node.service, lambda entry: entry.get("event") == event)  # noqa: B023


def _another_message(node_id: int, sequence_id: int, key: SigningKey) -> bytes:
    """Return another envelope under an id that its node has already given to one."""
    paid = sign_payer_envelope(welcome(bytes(32)), node_id, SigningKey(b"\7" * 32))
    stated = OriginatedEnvelope(node_id, sequence_id, time.time_ns(), paid)
    return sign_originated(unsigned_originated(stated), key)


def node_folder(folder: Path, nodes: dict[int, StartedNode], node_id: int) -> Path:
    """Return the folder of a node: nodes are numbered in the order of their start."""
    return folder / f"node-{sorted(nodes).index(node_id)}"


@asynccontextmanager
async def stage(folder: Path, tell: Callable[[str], None]) -> AsyncIterator[Stage]:
    """Start everything in an empty folder, and end it with the block; ``tell`` gets each step."""
    with ExitStack() as services:
        anvil, settings, nodes, gateway_url, storage_url = await asyncio.to_thread(
            _start, services, folder, tell
        )
        async with AsyncExitStack() as clients:
            engine = clients.enter_context(NodeEngine())
            record = read_deployment_record(settings.record_path)
            chain = Chain(anvil.endpoint, record, frozenset({0}))
            used = Services(folder, engine, chain, gateway_url, storage_url, PASSWORD)
            devices, wallets = [], []
            for name, number in zip(NAMES, _ACCOUNTS, strict=True):
                tell(f"{name} registers …")
                wallets.append(SigningKey(bytes(development_account(number).key)))
                devices.append(await new_device(clients, used, name.lower(), wallets[-1]))
            tell("Alice makes a group with Bob …")
            people = await _meet(*(each.messenger for each in devices))
            phone = Phone(clients, used, devices[0], wallets[0])
            yield Stage(anvil, folder, nodes, people, phone)


async def _meet(alice: Messenger, bob: Messenger) -> tuple[Conversation, Conversation]:
    group_id = await alice.create_group([bob.inbox_id.hex()])
    await alice.settle()
    while not bob.groups():
        await bob.sync()
    bob.accept(group_id)
    alice_sees, bob_sees = Conversation(alice, group_id), Conversation(bob, group_id)
    await alice_sees.follow()
    await bob_sees.follow()
    return alice_sees, bob_sees


def _start(
    services: ExitStack, folder: Path, tell: Callable[[str], None]
) -> tuple[Anvil, Settings, dict[int, StartedNode], str, str]:
    tell("a chain and its contracts …")
    anvil = services.enter_context(Anvil())
    settings = Settings(anvil.url, folder / "deployment.json", folder / "password")
    write_private(settings.password_path, PASSWORD + "\n")
    deploy(anvil.url, settings.record_path)
    owner = folder / "owner.keystore"
    write_keystore(owner, PASSWORD, COUNCIL)
    nodes = {}
    for number in range(2):
        tell(f"node {number + 1} of 2 …")
        own = folder / f"node-{number}"
        own.mkdir()
        # A fixed port: the registry has this port, and the node is started again on it.
        address = f"127.0.0.1:{free_port()}"
        node = start_node(services, settings, own, owner, own / "node.db", "--grpc", address)
        nodes[node.node_id] = node
    tell("a storage service and a gateway …")
    storage = start_storage(services, settings, folder)
    gateway_url = start_gateway(services, settings, folder, PASSWORD, *storage.gateway_options)
    return anvil, settings, nodes, gateway_url, storage.url
