"""A network of two logs in memory, and devices on it: what groups need, and no more.

The chain orders commits; one originator orders messages. A payload that a device publishes is
there at once, unless the test holds it back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chainkit.protocol.authenticated_data import aad_hash
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import keccak256
from chainkit_client.groups.building import Outgoing
from chainkit_client.groups.groups import Groups, OutgoingWelcome
from chainkit_client.groups.history import Epoch, read_epochs
from chainkit_client.groups.joining import WelcomePayload
from chainkit_client.groups.payload import Outcome, Payload, group_topic
from chainkit_client.groups.publishing import Answer, PublishOutcome, advance
from chainkit_client.intents.arguments import AddMembers, KeyUpdate
from chainkit_client.intents.rows import Intent
from chainkit_client.mls.engine import Member, MlsEngine
from chainkit_client.storage.own import insert_installation, insert_key_package
from chainkit_client.storage.schema import IntentState, MessageKind
from chainkit_client.storage.store import Store
from support.client.toy_engine import ToyEngine
from support.network.simulation.loop import run

CHAIN, NODE = 0, 100
GROUP_ID = b"g" * 16
SECOND_NS = 1_000_000_000
BEGIN_NS = 1_735_689_600 * SECOND_NS
TAKEN = Answer(PublishOutcome.TAKEN)


def taken_apart(
    client_envelope: bytes, originator_id: int, sequence_id: int, originator_ns: int
) -> Payload:
    """A payload as a reader of a log decodes it."""
    envelope = envelopes_pb2.ClientEnvelope.FromString(client_envelope)
    return Payload(
        envelope.aad.target_topic[1:],
        originator_id,
        sequence_id,
        originator_ns,
        envelope.group_message.v1.data,
        aad_hash(client_envelope),
    )


@dataclass
class Logs:
    """Everything that was published."""

    payloads: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Originator, sequence id and ClientEnvelope, in the order in which they came."""
    welcomes: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Installation and data."""
    key_packages: dict[bytes, bytes] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)

    def add(self, originator_id: int, client_envelope: bytes) -> None:
        """Publish to a log; equal bytes published twice are there twice."""
        sequence_id = self.last.get(originator_id, 0) + 1
        self.last[originator_id] = sequence_id
        self.payloads.append((originator_id, sequence_id, client_envelope))

    def reorg(self, after: int, new: Sequence[bytes]) -> None:
        """Replace the chain's payloads behind an id by others."""
        self.payloads = [each for each in self.payloads if each[0] != CHAIN or each[1] <= after]
        self.last[CHAIN] = after
        for client_envelope in new:
            self.add(CHAIN, client_envelope)

    def chain(self, after: int = 0) -> list[bytes]:
        """The chain's payloads behind an id."""
        found = sorted(each for each in self.payloads if each[0] == CHAIN and each[1] > after)
        return [client_envelope for _, _, client_envelope in found]

    def has(self, payload_hash: bytes) -> bool:
        """Return whether a payload stands in a log."""
        return any(
            taken_apart(data, CHAIN, 1, 0).payload_hash == payload_hash
            for _, _, data in self.payloads
        )


@dataclass
class DeviceNetwork:
    """The network for one device."""

    logs: Logs
    device: Device
    answers: list[Answer] = field(default_factory=list)
    """The next answers; those that are TAKEN or UNKNOWN are of payloads that arrive."""
    lost: bool = False
    """Nothing arrives."""
    published: list[Outgoing] = field(default_factory=list)
    gone: frozenset[bytes] = frozenset()
    """Installations that their inboxes revoked."""

    async def authenticated_data(self, group_id: bytes, is_commit: bool) -> bytes:
        data = envelopes_pb2.AuthenticatedData(target_topic=group_topic(group_id))
        seen = self.device.groups.cursor(group_topic(group_id))
        data.last_seen.node_id_to_sequence_id.update(seen)
        return data.SerializeToString(deterministic=True)

    async def fetch_key_packages(self, installations: Sequence[bytes]) -> Mapping[bytes, bytes]:
        offers = self.logs.key_packages
        return {each: offers[each] for each in installations if each in offers}

    async def revoked(self, members: Sequence[Member]) -> frozenset[bytes]:
        return self.gone & {each.public_key for each in members}

    async def publish(self, outgoing: Outgoing) -> Answer:
        self.published.append(outgoing)
        answer = self.answers.pop(0) if self.answers else TAKEN
        arrives = answer.outcome in (PublishOutcome.TAKEN, PublishOutcome.UNKNOWN) and not self.lost
        if arrives:
            self.logs.add(CHAIN if outgoing.is_commit else NODE, outgoing.client_envelope)
        return answer

    async def is_absent(self, outgoing: Outgoing) -> bool:
        return not self.logs.has(outgoing.payload_hash)

    async def send_welcome(self, welcome: OutgoingWelcome) -> bool:
        self.logs.welcomes.append((welcome.installation, welcome.data))
        return True


class Device:
    """An installation with its database."""

    def __init__(self, logs: Logs, path: Path, name: str, engine: MlsEngine | None = None) -> None:
        self.logs = logs
        self.path = path
        self.name = name
        self.engine: MlsEngine = engine or ToyEngine()
        self.store = Store.open(path, "password", 2)
        self.installation = self.engine.new_installation(name.encode())
        with self.store.writing() as connection:
            insert_installation(connection, self.store.seal, self.installation)
        self.groups = Groups(self.store, self.engine)
        self.network = DeviceNetwork(logs, self)
        self.now_ns = BEGIN_NS
        self.welcomes_read = 0
        self.offer()

    @property
    def key(self) -> bytes:
        """The device's public key."""
        return self.installation.public_key

    def offer(self) -> None:
        """Publish a new key package."""
        offer = self.engine.new_key_package(self.installation)
        with self.store.writing() as connection:
            insert_key_package(connection, self.store.seal, offer, len(self.logs.key_packages))
        self.logs.key_packages[self.key] = offer.public

    def restart(self) -> None:
        """Lose all that is not in the database."""
        self.store.close()
        self.store = Store.open(self.path, "password", 2)
        self.groups = Groups(self.store, self.engine)
        self.network.published.clear()

    def read(self, group_id: bytes = GROUP_ID) -> list[Outcome]:
        """Read welcomes, and what is new in the group's topic, in the order of the log."""
        self.read_welcomes()
        if group_id not in {each.id for each in self.groups.groups()}:
            return []
        cursor = self.groups.cursor(group_topic(group_id))
        new = [
            taken_apart(data, originator_id, sequence_id, BEGIN_NS + sequence_id * SECOND_NS)
            for originator_id, sequence_id, data in self.logs.payloads
            if sequence_id > cursor.get(originator_id, 0)
        ]
        return self.groups.apply(group_id, new)

    def read_welcomes(self) -> None:
        """Take the welcomes that are new."""
        for number, (installation, data) in enumerate(self.logs.welcomes, 1):
            if installation == self.key and number > self.welcomes_read:
                payload = WelcomePayload(NODE, number, BEGIN_NS + number, data)
                self.groups.take_welcome(payload)
        self.welcomes_read = len(self.logs.welcomes)

    def advance(self, group_id: bytes = GROUP_ID) -> None:
        """Advance its intents as far as possible."""
        self.now_ns += SECOND_NS
        run(advance(self.groups, self.network, group_id, self.now_ns))

    def states(self, group_id: bytes = GROUP_ID) -> list[IntentState]:
        """The states of its intents."""
        return [each.state for each in self.groups.intents(group_id)]

    def intent(self, group_id: bytes = GROUP_ID) -> Intent:
        """Its newest intent."""
        return self.groups.intents(group_id)[-1]

    def words(self, group_id: bytes = GROUP_ID) -> list[bytes]:
        """The messages of its transcript."""
        return [
            each.content
            for each in self.groups.messages(group_id)
            if each.kind is MessageKind.APPLICATION
        ]

    def members(self, group_id: bytes = GROUP_ID) -> set[str]:
        """The names of the members."""
        return {each.credential.decode() for each in self.groups.view(group_id).members}

    def authenticators(self, group_id: bytes = GROUP_ID) -> dict[int, bytes]:
        """Its history."""
        return {each.number: each.authenticator for each in epochs_of(self.groups, group_id)}

    def close(self) -> None:
        """Close the database."""
        self.store.close()


def epochs_of(groups: Groups, group_id: bytes = GROUP_ID) -> list[Epoch]:
    """The epochs of a group, the last one first."""
    with groups._store.reading() as connection:
        return read_epochs(connection, group_id)


def payload_hash_of(client_envelope: bytes) -> bytes:
    """The hash by which an own payload is known."""
    envelope = envelopes_pb2.ClientEnvelope.FromString(client_envelope)
    return keccak256(envelope.group_message.v1.data)


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder whose files cost no disk, where there is such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


class Party:
    """Devices on one network; the first one made a group and added the others."""

    def __init__(self, folder: Path, *names: str, others: Sequence[str] = ()) -> None:
        self.logs = Logs()
        self.used: dict[tuple[str, int, int], bytes] = {}
        self.devices = {
            name: Device(self.logs, folder / f"{name}.db", name, ToyEngine(used=self.used))
            for name in (*names, *others)
        }
        founder, *invited = (self.devices[name] for name in names)
        founder.groups.create(GROUP_ID, BEGIN_NS)
        if invited:
            founder.groups.queue(GROUP_ID, AddMembers(tuple(each.key for each in invited)))
            founder.advance()
        for each in invited:
            each.read()

    def __getitem__(self, name: str) -> Device:
        return self.devices[name]

    def read(self) -> None:
        """Let all devices read what there is."""
        for each in self.devices.values():
            each.read()

    def settle(self) -> None:
        """Let all devices read and act until nothing is left to do."""
        for _ in range(12):
            self.read()
            before = len(self.logs.payloads), len(self.logs.welcomes)
            for each in self.devices.values():
                if GROUP_ID in {one.id for one in each.groups.groups()}:
                    each.advance()
            if before == (len(self.logs.payloads), len(self.logs.welcomes)):
                return
        raise AssertionError("it goes on and on")

    def reorg(self, after: int, new: Sequence[bytes]) -> None:
        """Replace the chain's payloads behind an id, and tell all devices."""
        self.logs.reorg(after, new)
        for each in self.devices.values():
            if GROUP_ID in {one.id for one in each.groups.groups()}:
                each.groups.retract(GROUP_ID, after)

    def close(self) -> None:
        """Close all databases."""
        for each in self.devices.values():
            each.close()


def update(device: Device) -> None:
    """Commit a new key of a device."""
    device.groups.queue(GROUP_ID, KeyUpdate())
    device.advance()


def histories(party: Party, *names: str) -> set[tuple[tuple[int, bytes], ...]]:
    """The histories of devices from epoch 1 on."""
    return {
        tuple(sorted((one, each) for one, each in party[name].authenticators().items() if one))
        for name in names
    }
