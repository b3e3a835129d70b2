"""A story: clients of one group on three nodes and a chain, faults, and perhaps one lie.

Time jumps from one event to the next, and one seed tells the same story again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import envelopes_pb2
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers
from chainkit_client.mls.engine import MlsEngine
from support.client.group_network import BEGIN_NS, CHAIN, GROUP_ID, SECOND_NS, payload_hash_of
from support.client.simulation.checks import check_end, unfinished
from support.client.stories.gateway import Gateway
from support.client.stories.link import FAULTS
from support.client.stories.nodes import PROVABLE, SimulatedNode
from support.client.stories.person import Person
from support.client.stories.story_chain import BLOCK_SECONDS, Block, SeenChain, StoryChain
from support.client.toy_engine import ToyEngine
from support.network.simulation.loop import run

NAMES = ("alice", "bob", "carol")
NODE_IDS = (100, 200, 300)
LIAR = 300
FAULTY_SECONDS = 60.0
CALM_SECONDS = 400.0
"""After which all must be over."""
NIGHT_SECONDS = 3600.0
"""Longer than the time for which an envelope's time counts as now."""
CUT_SECONDS = 4.0
"""For how long at most no node is reached: less than a client waits before it gives up."""
QUIET = 0.1
"""The share of wishes that a quiet story has."""
STORM = 0.15
"""The share of steps at which a stormy story has a reorg more."""
LOSS = 0.05
_STEP_SECONDS = 0.5

MakeEngine = Callable[["Story"], MlsEngine]


def toy_engine(story: Story) -> MlsEngine:
    """An engine without cryptography, which refuses to use one key twice."""
    return ToyEngine(story.random, story.used)


class Story:
    """One network and its clients."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        lie: str | None = None,
        make_engine: MakeEngine = toy_engine,
        seconds: float = FAULTY_SECONDS,
    ) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.lie = lie
        self.seconds = seconds
        self.is_calm = True
        self.is_busy = self.random.random() < 0.5
        """Whether there are many wishes: later commits hide what became of earlier payloads."""
        self.is_stormy = self.random.random() < 0.5
        """Whether the chain has many reorgs."""
        self.counts: Counter[str] = Counter()
        self.key_packages: dict[bytes, bytes] = {}
        self.used: dict[tuple[str, int, int], bytes] = {}
        self.sent: set[bytes] = set()
        self.seen_by_author: dict[bytes, list[tuple[int, int]]] = {}
        """Places that the author of a payload had seen, by the payload's hash."""
        self.chain = StoryChain(self.random)
        self._served: dict[tuple[int, int], list[bytes]] = {}
        self.strange: set[tuple[int, int]] = set()
        """Places of payloads that readers of protobuf differ on."""
        self.nodes: list[SimulatedNode] = []
        for node_id in NODE_IDS:
            self.nodes.append(SimulatedNode(self, node_id, SeenChain(self.chain, ())))
        registered = [each.entry for each in self.nodes]
        folder.mkdir()
        self.loses_answers = False
        """Whether no answer of a gateway, and none to one, arrives."""
        self.cut_until = 0.0
        """Until when no client reaches a node."""
        self._late: set[asyncio.Task[None]] = set()
        self.gateway = Gateway(self, folder / "journal.db")
        self.people = [
            Person(self, folder / name, name, make_engine(self), registered) for name in NAMES
        ]

    # The world that all share.

    @property
    def now(self) -> float:
        """Seconds since the story began."""
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    @property
    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        return BEGIN_NS + int(self.now * SECOND_NS)

    @property
    def loss(self) -> float:
        """The share of answers that are lost."""
        return 0.0 if self.is_calm else LOSS

    def coin(self, place: tuple[int, int]) -> float:
        """A number from 0 to 1 that a place always has."""
        digest = hashlib.sha256(f"{self.seed} {place}".encode()).digest()
        return digest[0] / 256

    def served(self, block: Block, node: SimulatedNode) -> list[bytes]:
        """A block's envelopes as a node vouches for them."""
        key = block.identity, node.node_id
        if key not in self._served:
            self._served[key] = block.served(node.key)
        return self._served[key]

    def note_author(self, client_envelope: bytes) -> None:
        """Remember what the author of a payload of the group had seen."""
        envelope = envelopes_pb2.ClientEnvelope.FromString(client_envelope)
        seen = envelope.aad.last_seen.node_id_to_sequence_id.items()
        places = [(each, number) for each, number in seen if number]
        self.seen_by_author[payload_hash_of(client_envelope)] = places

    def hashes_at(self, place: tuple[int, int]) -> set[bytes]:
        """The hashes of all payloads that a place ever had."""
        originator_id, number = place
        if originator_id == CHAIN:
            return {
                payload_hash_of(block.payloads[number - block.first_id])
                for block in self.chain.all_mined
                if 0 <= number - block.first_id < len(block.payloads)
            }
        [node] = [each for each in self.nodes if each.node_id == originator_id]
        return {node.log[number - 1].payload_hash} if number <= len(node.log) else set()

    def is_signed_twice(self, place: tuple[int, int]) -> bool:
        """Return whether a reader may have another envelope in a place, with the proof of it."""
        return self.lie == "equivocates" and place[0] == LIAR

    def delay(self) -> float:
        """Seconds that a request or an answer takes."""
        is_slow = not self.is_calm and self.random.random() < 0.2
        return self.random.random() * (8.0 if is_slow else 0.5)

    def keep(self, program: Coroutine[Any, Any, None]) -> None:
        """Let a program go on of which nobody waits for the end."""
        task = asyncio.ensure_future(program)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def fault(self) -> str:
        """The fault of a call; nothing for none."""
        if self.is_calm:
            return ""
        [fault] = self.random.choices(list(FAULTS), list(FAULTS.values()))
        self.counts[fault or "answered"] += 1
        return fault

    # The story.

    def play(self) -> None:
        """Play the story to its end, and check everything."""
        run(self._play())
        check_end(self.people, self.sent, self.counts, self.is_signed_twice)
        self._check_breaches()

    def close(self) -> None:
        """Close all databases."""
        for person in self.people:
            person.store.close()
        self.gateway.shut()

    async def _play(self) -> None:
        founder, *invited = self.people
        founder.groups.create(GROUP_ID, BEGIN_NS)
        founder.groups.queue(GROUP_ID, AddMembers(tuple(each.key for each in invited)))
        for person in self.people:
            person.start()
        next_block = BLOCK_SECONDS
        self.loses_answers = True
        while not all(each.is_active for each in self.people):
            assert self.now < CALM_SECONDS, "the group does not begin"
            next_block = await self._pass_time(next_block)
        self.loses_answers = False
        next_block = await self._sleep(next_block)
        # The group's first commit on the chain meets messages that cannot know it.
        founder.groups.queue(GROUP_ID, KeyUpdate())
        for person in invited:
            self._send(person)
        self.is_calm = False
        self.nodes[-1].lie = self.lie
        end = self.now + self.seconds
        while self.now < end:
            next_block = await self._pass_time(next_block)
            await self._do_something()
        self.is_calm = True
        for node in self.nodes:
            node.is_down, node.chain.lag = False, 0
        for person in self.people:
            person.chain.lag = 0
            if not person.tasks:
                person.start()
        end = self.now + CALM_SECONDS
        while not self._is_over():
            assert self.now < end, f"not over: {unfinished(self.people)}"
            next_block = await self._pass_time(next_block)
        # All read the last messages.
        for _ in range(60):
            next_block = await self._pass_time(next_block)
        for person in self.people:
            await person.kill()

    async def _sleep(self, next_block: float) -> float:
        """Pause everything for a night; pending work waits for the morning."""
        for person in self.people:
            await person.kill()
        await asyncio.sleep(NIGHT_SECONDS)
        for person in self.people:
            person.start()
        return next_block + NIGHT_SECONDS

    async def _pass_time(self, next_block: float) -> float:
        await asyncio.sleep(_STEP_SECONDS)
        for person in self.people:
            person.check_alive()
        if self.now < next_block:
            return next_block
        self.chain.mine(self.now, everything=self.is_calm)
        return self.now + BLOCK_SECONDS

    async def _do_something(self) -> None:
        if self.is_stormy and self.random.random() < STORM:
            self.chain.reorg(self.now)
        chance = self.random.random()
        person, node = self.random.choice(self.people), self.random.choice(self.nodes)
        if chance < 0.25:
            if self.is_busy or self.is_stormy or self.random.random() < QUIET:
                self._act(person)
        elif chance < 0.31:
            self.chain.reorg(self.now)
        elif chance < 0.35:
            self.counts["kills"] += bool(person.tasks)
            await person.kill()
        elif chance < 0.45:
            if len(person.tasks) < 2:
                person.start()
        elif chance < 0.49:
            # One node at a time, and never for longer than the others wait.
            was_down = node.is_down
            for each in self.nodes:
                each.is_down = False
            node.is_down = not was_down
        elif chance < 0.54:
            node.delay = self.random.random() * 5
            node.chain.lag = self.random.randint(0, 2)
        elif chance < 0.58:
            person.chain.lag = self.random.randint(0, 2)
        elif chance < 0.6:
            node.take_from_a_stranger()
        elif chance < 0.62:
            self.cut_until = self.now + self.random.random() * CUT_SECONDS

    def _act(self, person: Person) -> None:
        if not person.is_active:
            return
        others = [each.key for each in self.people if each is not person]
        choice = self.random.randrange(10)
        if choice < 5:
            self._send(person)
        elif choice < 6:
            person.groups.queue(GROUP_ID, AddMembers((self.random.choice(others),)))
        elif choice < 9:
            person.groups.queue(GROUP_ID, KeyUpdate())
        else:
            person.groups.queue(GROUP_ID, RemoveMembers((self.random.choice(others),)))

    def _send(self, person: Person) -> None:
        words = b"%d of %s" % (len(self.sent), person.name.encode())
        person.groups.send(GROUP_ID, words, person.now_ns)
        self.sent.add(words)

    def _is_over(self) -> bool:
        return not self.chain.pool and not unfinished(self.people)

    # The rules that must hold.

    def _check_breaches(self) -> None:
        liar = self.nodes[-1]
        for person in self.people:
            for breach in person.breaches():
                if breach.node_id == LIAR and self.lie is not None:
                    continue
                # A transaction that a reorg took back comes again, maybe too late for those who
                # wait for what it posted: such a report is a claim.
                is_claim = breach.misbehavior in (None, Misbehavior.CAUSAL_ORDERING)
                assert is_claim and "which nobody" in breach.reason, (
                    f"an honest node is accused: {breach.node_id} {breach.reason}"
                )
                self.counts["claims"] += 1
        if self.lie in PROVABLE and liar.told:
            found = {
                breach.misbehavior
                for each in self.people
                for breach in each.breaches()
                if breach.node_id == LIAR
            }
            assert PROVABLE[self.lie] & found, f"the lie is not reported: {found}"
            self.counts["lies reported"] += 1
