"""A simulated client: a database, processes that may die at each await, and what it has read."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainkit.protocol.authenticated_data import aad_hash
from chainkit.protocol.proto import envelopes_pb2
from chainkit_client.groups.building import Outgoing
from chainkit_client.groups.groups import Groups, OutgoingWelcome
from chainkit_client.groups.joining import WelcomePayload
from chainkit_client.groups.payload import Payload, group_topic
from chainkit_client.groups.publishing import Answer, PublishOutcome, advance
from chainkit_client.mls.engine import Member as GroupMember
from chainkit_client.storage.own import insert_installation, insert_key_package
from support.client.group_network import BEGIN_NS, CHAIN, GROUP_ID, NODE
from support.client.simulation.checks import Member
from support.client.simulation.databases import new_store
from support.client.simulation.pooled_chain import FINALITY, Block

if TYPE_CHECKING:
    from support.client.simulation.world import World


class _Pause:
    """An await at which the scheduler lets others go on, or the process die."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class SimulatedNetwork:
    """The network as one client sees it: late, lossy, and with answers that get lost."""

    def __init__(self, world: World, client: SimulatedClient) -> None:
        self._world = world
        self._client = client

    async def authenticated_data(self, group_id: bytes, is_commit: bool) -> bytes:
        await _Pause()
        data = envelopes_pb2.AuthenticatedData(target_topic=group_topic(group_id))
        seen = self._client.groups.cursor(group_topic(group_id))
        data.last_seen.node_id_to_sequence_id.update(seen)
        return data.SerializeToString(deterministic=True)

    async def fetch_key_packages(self, installations: Sequence[bytes]) -> Mapping[bytes, bytes]:
        await _Pause()
        offers = self._world.key_packages
        return {each: offers[each] for each in installations}

    async def revoked(self, members: Sequence[GroupMember]) -> frozenset[bytes]:
        return frozenset()

    async def publish(self, outgoing: Outgoing) -> Answer:
        await _Pause()
        outcome, arrives = self._world.published(outgoing)
        if arrives:
            self._world.arrive(outgoing)
        await _Pause()
        return Answer(outcome, "refused by chance")

    async def is_absent(self, outgoing: Outgoing) -> bool:
        await _Pause()
        return self._world.is_absent(outgoing)

    async def send_welcome(self, welcome: OutgoingWelcome) -> bool:
        await _Pause()
        outcome, arrives = self._world.outcome()
        if arrives or outcome is PublishOutcome.TAKEN:
            # Nobody reads a welcome back: its node's signature is all that its sender has.
            self._world.welcomes.append((welcome.installation, welcome.data))
        return outcome is PublishOutcome.TAKEN


class SimulatedClient(Member):
    """One installation."""

    def __init__(self, world: World, path: Path, name: str) -> None:
        self._world = world
        self.name = name
        self.engine = world.make_engine(world)
        self.store = new_store(path)
        self.installation = self.engine.new_installation(name.encode())
        with self.store.writing() as connection:
            insert_installation(connection, self.store.seal, self.installation)
        self.groups = Groups(self.store, self.engine)
        self.network = SimulatedNetwork(world, self)
        self.read_blocks: list[Block] = world.chain.blocks[:1]
        """The chain as it was read, block by block."""
        self.read_welcomes = 0
        self.skew_ns = world.random.randint(-(10**12), 10**12)
        self.processes: list[Coroutine[Any, Any, None]] = []
        self.offers = 0
        self.offer()

    @property
    def now_ns(self) -> int:
        """Its clock."""
        return BEGIN_NS + self._world.steps * 10**9 + self.skew_ns

    def offer(self) -> None:
        """Publish a new key package."""
        offer = self.engine.new_key_package(self.installation)
        self.offers += 1
        with self.store.writing() as connection:
            insert_key_package(connection, self.store.seal, offer, self.offers)
        self._world.key_packages[self.key] = offer.public

    def start(self) -> None:
        """Start a process that acts for its intents; others may run beside it."""
        if self.knows_group and len(self.processes) < 3:
            self.processes.append(advance(self.groups, self.network, GROUP_ID, self.now_ns))

    def step(self) -> bool:
        """Let one process go on to its next await; return whether there was one."""
        if not self.processes:
            return False
        process = self._world.random.choice(self.processes)
        try:
            process.send(None)
        except StopIteration:
            self.processes.remove(process)
        return True

    def kill(self) -> None:
        """End all processes where they are; the database stays as it is."""
        for process in self.processes:
            process.close()
        self.processes.clear()
        self.groups = Groups(self.store, self.engine)

    def read_chain(self) -> bool:
        """Read the next block, or go back to the fork; return whether anything was new."""
        if not self.knows_group:
            # A newcomer reads the topic from its beginning.
            return False
        chain = self._world.chain.blocks
        both = zip(self.read_blocks, chain, strict=False)
        common = sum(1 for ours, theirs in both if ours is theirs)
        if common < len(self.read_blocks):
            self.groups.retract(GROUP_ID, chain[common - 1].last_id)
            del self.read_blocks[common:]
            return True
        if common == len(chain):
            return False
        block = chain[common]
        cursor = self.groups.cursor(group_topic(GROUP_ID)).get(NODE, 0)
        if any(_needs(data, NODE) > cursor for data in block.payloads) and self.read_node():
            # Messages that an author had seen come before what it wrote.
            return True
        self.groups.apply(GROUP_ID, block.read())
        self.read_blocks.append(block)
        final = len(self.read_blocks) - 1 - FINALITY
        if final > 0 and self._world.random.random() < 0.5:
            self.groups.finalize(GROUP_ID, self.read_blocks[final].last_id)
        return True

    def read_node(self, gives_up: bool = False) -> bool:
        """Read the next message of the node; one that depends on unread commits waits."""
        if not self.knows_group:
            return False
        cursor = self.groups.cursor(group_topic(GROUP_ID))
        sequence_id = cursor.get(NODE, 0) + 1
        if sequence_id > len(self._world.messages):
            return False
        data = self._world.messages[sequence_id - 1]
        if _needs(data, CHAIN) > cursor.get(CHAIN, 0) and not gives_up:
            return False
        payload = Payload(
            GROUP_ID, NODE, sequence_id, BEGIN_NS + sequence_id, _message(data), aad_hash(data)
        )
        self.groups.apply(GROUP_ID, [payload])
        return True

    def read_welcome(self) -> bool:
        """Read the next welcome."""
        if self.read_welcomes == len(self._world.welcomes):
            return False
        installation, data = self._world.welcomes[self.read_welcomes]
        number = self.read_welcomes + 1
        if installation == self.key:
            self.groups.take_welcome(WelcomePayload(NODE, number, BEGIN_NS + number, data))
        self.read_welcomes = number
        return True

    def close(self) -> None:
        """Close the database."""
        self.kill()
        self.store.close()


def _needs(client_envelope: bytes, originator_id: int) -> int:
    envelope = envelopes_pb2.ClientEnvelope.FromString(client_envelope)
    found: int = envelope.aad.last_seen.node_id_to_sequence_id.get(originator_id, 0)
    return found


def _message(client_envelope: bytes) -> bytes:
    found: bytes = envelopes_pb2.ClientEnvelope.FromString(client_envelope).group_message.v1.data
    return found
