"""A simulated client: its database lasts, and its processes may end at each await."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.nodes.preference import in_order_of_preference
from chainkit.types import Node
from chainkit_client.groups.groups import Groups
from chainkit_client.groups.joining import WelcomePayload
from chainkit_client.groups.payload import Outcome, Payload
from chainkit_client.groups.publishing import advance
from chainkit_client.mls.engine import MlsEngine
from chainkit_client.network.group_network import GroupNetwork
from chainkit_client.network.group_sync import GroupSync
from chainkit_client.network.payloads import received_welcome
from chainkit_client.network.session import NetworkSession
from chainkit_client.network.topic_reader import NodesSilent
from chainkit_client.storage.evidence import KeptBreach, read_breaches
from chainkit_client.storage.own import insert_installation, insert_key_package
from chainkit_client.topics.following import Topic
from support.client.group_network import GROUP_ID, SECOND_NS
from support.client.simulation.checks import Member
from support.client.simulation.databases import new_store
from support.client.stories.nodes import SimulatedNode
from support.client.stories.story_chain import SeenChain

if TYPE_CHECKING:
    from support.client.stories.story import Story

_PASSING = (NodesSilent, NodeLost, NodeUnreached)
"""A round that ends with one of these is followed by another."""


class _Nodes:
    """As ``nodes.pool.Nodes``."""

    def __init__(self, nodes: Sequence[SimulatedNode]) -> None:
        self._nodes = {each.node_id: each for each in nodes}

    async def update(self, entries: Mapping[int, Any]) -> None:
        """Entries stay the same."""

    def for_topic(self, topic: bytes) -> list[SimulatedNode]:
        return [self._nodes[each] for each in in_order_of_preference(topic, self._nodes)]

    def node(self, node_id: int) -> SimulatedNode | None:
        return self._nodes.get(node_id)


class _Network(GroupNetwork):
    """The product's, but for key packages: the toy's are none that a node would take."""

    def __init__(self, story: Story, *given: Any) -> None:
        super().__init__(*given)
        self._story = story

    async def fetch_key_packages(self, installations: Sequence[bytes]) -> Mapping[bytes, bytes]:
        await asyncio.sleep(self._story.random.random())
        return {each: self._story.key_packages[each] for each in installations}


class CheckedGroups(Groups):
    """The product's, but it is an error to apply a payload before what its author had seen."""

    def __init__(self, person: Person) -> None:
        super().__init__(person.store, person.engine)
        self._person = person

    def apply(self, group_id: bytes, received: Iterable[Payload]) -> list[Outcome]:
        payloads = list(received)
        story, applied = self._person.story, self._person.applied
        for payload in payloads:
            for place in story.seen_by_author.get(payload.payload_hash, ()):
                is_void = place in story.strange or story.is_signed_twice(place)
                is_known = applied & story.hashes_at(place) or is_void
                assert is_known or payload.warning, f"{payload.place} is applied before {place}"
            applied.add(payload.payload_hash)
        return super().apply(group_id, payloads)


class Process:
    """One process of a client: all that is not in the database."""

    def __init__(self, person: Person) -> None:
        story = person.story
        clock = asyncio.get_running_loop().time
        self._person = person
        self.session = NetworkSession(
            cast(Any, person.chain),
            cast(Any, story.gateway),
            person.store,
            lambda: person.now_ns,
            clock,
        )
        self.session.nodes = cast(Any, _Nodes(story.nodes))
        self.groups = CheckedGroups(person)
        self._network = _Network(
            story, self.session, person.engine, lambda group_id: self._sync_of().topic
        )
        self._sync: GroupSync | None = None
        self._welcomes = Topic(self.groups.welcome_topic)

    def _sync_of(self) -> GroupSync:
        if self._sync is None:
            person = self._person
            self._sync = GroupSync(self.session, person.store, self.groups, GROUP_ID)
        return self._sync

    async def round(self) -> None:
        """As ``Messenger.sync``."""
        await self.session.refresh()
        found = await self.session.read(self.session.reader(self._welcomes))
        await self.session.ask_for_promised()
        for each in found.applied:
            data = received_welcome(each.envelope.client.client_envelope)
            place, time_ns = each.envelope.place, each.envelope.originator_ns
            self.groups.take_welcome(WelcomePayload(*place, time_ns, data))
        if self.groups.groups():
            done = await self._sync_of().sync()
            self._person.story.counts["reorgs seen"] += done.reorgs
            await advance(self.groups, self._network, GROUP_ID, self._person.now_ns)

    async def live(self) -> None:
        """Do one round after the other."""
        story = self._person.story
        while True:
            try:
                await self.round()
            except _PASSING:
                story.counts["rounds without an answer"] += 1
            await asyncio.sleep(0.5 + story.random.random() * 3)


class Person(Member):
    """One installation."""

    def __init__(
        self, story: Story, path: Path, name: str, engine: MlsEngine, nodes: Sequence[Node]
    ) -> None:
        self.story = story
        self.name = name
        self.engine = engine
        self.store = new_store(path)
        self.chain = SeenChain(story.chain, nodes)
        self.skew_ns = story.random.randint(-60, 60) * SECOND_NS
        self.installation = engine.new_installation(name.encode())
        offer = engine.new_key_package(self.installation)
        with self.store.writing() as connection:
            insert_installation(connection, self.store.seal, self.installation)
            insert_key_package(connection, self.store.seal, offer, 1)
        story.key_packages[self.key] = offer.public
        self.groups = Groups(self.store, engine)
        self.applied: set[bytes] = set()
        """Hashes of the payloads that the client's processes have handed to the group."""
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def now_ns(self) -> int:
        """The client's clock."""
        return self.story.now_ns + self.skew_ns

    def start(self) -> None:
        """Start a process; another one may run already."""
        self.tasks.append(asyncio.ensure_future(Process(self).live()))

    async def kill(self) -> None:
        """End all processes where they are."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()

    def check_alive(self) -> None:
        """Raise what ended a process."""
        for task in self.tasks:
            if task.done():
                task.result()

    def breaches(self) -> list[KeptBreach]:
        """The nodes' breaches of rules that the client saw."""
        with self.store.reading() as connection:
            return read_breaches(connection)
