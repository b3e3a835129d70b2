"""One scheduler over clients, chain and node; the same seed does the same again."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from chainkit.protocol.publish_rules.client_envelope import parse_client_envelope
from chainkit.protocol.publish_rules.judgement import NodeView, check_position
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.types import Cursor
from chainkit_client.groups.building import Outgoing, client_envelope
from chainkit_client.groups.publishing import PublishOutcome
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers
from chainkit_client.mls.engine import MlsEngine
from support import mls
from support.client.group_network import BEGIN_NS, CHAIN, GROUP_ID, NODE, payload_hash_of
from support.client.simulation.checks import check_end, unfinished
from support.client.simulation.client import SimulatedClient
from support.client.simulation.pooled_chain import PooledChain
from support.client.toy_engine import ToyEngine

NAMES = ("alice", "bob", "carol", "dave")
MOST_ROUNDS = 120
"""Rounds without faults after which all must be over."""
PATIENCE_ROUNDS = 10
"""Rounds without faults in which clients wait for what a message depends on."""


MakeEngine = Callable[["World"], MlsEngine]


def toy_engine(world: World) -> MlsEngine:
    """An engine without cryptography, which refuses to use one key twice."""
    return ToyEngine(world.random, world.used)


class World:
    """Clients and their common network."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        steps: int,
        wishes: int = 0,
        make_engine: MakeEngine = toy_engine,
    ) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.folder = folder
        self.most_steps = steps
        self.first_wishes = wishes
        """Wishes that are there before the first step."""
        self.steps = 0
        self.is_calm = False
        """Whether there are no faults any more."""
        self.chain = PooledChain(self.random)
        self.messages: list[bytes] = []
        self.welcomes: list[tuple[bytes, bytes]] = []
        self.key_packages: dict[bytes, bytes] = {}
        self.used: dict[tuple[str, int, int], bytes] = {}
        self.counts: Counter[str] = Counter()
        self.sent: set[bytes] = set()
        self.make_engine = make_engine
        folder.mkdir()
        self.clients = [SimulatedClient(self, folder / name, name) for name in NAMES]
        founder, *invited = self.clients[:3]
        founder.groups.create(GROUP_ID, BEGIN_NS)
        founder.groups.queue(GROUP_ID, AddMembers(tuple(each.key for each in invited)))
        self.is_calm = True
        founder.start()
        while founder.step():
            pass
        for each in invited:
            while each.read_welcome():
                pass
        self.is_calm = False

    def run(self) -> None:
        """Do random things, then let all come to an end, and check everything."""
        actions = [
            (self._act, 12),
            (self._step, 60),
            (self._start, 16),
            (self._read_chain, 24),
            (self._read_node, 20),
            (self._read_welcome, 6),
            (self._mine, 8),
            (self._reorg, 3),
            (self._kill, 3),
            (self._offer, 1),
            (self._garbage, 1),
        ]
        chosen, weights = zip(*actions, strict=True)
        for _ in range(self.first_wishes):
            self._act(self.random.choice(self.clients))
        for step in range(self.most_steps):
            self.steps = step
            [action] = self.random.choices(chosen, weights)
            action(self.random.choice(self.clients))
            if self.steps % 5 == 0:
                self.check_agreement()
        self._calm_down()
        check_end(self.clients, self.sent, self.counts)

    def close(self) -> None:
        """Close all databases."""
        for client in self.clients:
            client.close()
        shutil.rmtree(self.folder)

    # The network's chance.

    def outcome(self) -> tuple[PublishOutcome, bool]:
        """Return the answer to a publish, and whether the payload arrives."""
        if self.is_calm:
            return PublishOutcome.TAKEN, True
        possible = [
            ((PublishOutcome.TAKEN, True), 70),
            ((PublishOutcome.UNKNOWN, True), 8),
            ((PublishOutcome.UNKNOWN, False), 8),
            ((PublishOutcome.NOT_TAKEN, False), 5),
            ((PublishOutcome.REFUSED, False), 4),
            # This node lies.
            ((PublishOutcome.TAKEN, False), 3),
            ((PublishOutcome.REFUSED, True), 2),
        ]
        outcomes, weights = zip(*possible, strict=True)
        [(outcome, arrives)] = self.random.choices(outcomes, weights)
        self.counts[f"{outcome.name} {'arrives' if arrives else 'lost'}"] += 1
        return outcome, arrives

    def published(self, outgoing: Outgoing) -> tuple[PublishOutcome, bool]:
        """As ``outcome``, for a payload that the node judges as the product's nodes do."""
        outcome, arrives = self.outcome()
        if not arrives or outgoing.is_commit:
            return outcome, arrives
        latest = self.chain.blocks[-1].last_id
        cursor = Cursor({NODE: len(self.messages), CHAIN: latest})
        try:
            client = parse_client_envelope(outgoing.client_envelope)
            check_position(client, NodeView(NODE, cursor, latest, BEGIN_NS))
        except PublishRefused:
            self.counts["conflicts"] += 1
            is_answered = outcome is PublishOutcome.TAKEN
            return PublishOutcome.CONFLICT if is_answered else outcome, False
        return outcome, True

    def arrive(self, outgoing: Outgoing) -> None:
        """Deliver a payload to its log."""
        if outgoing.is_commit:
            self.chain.pool.append(outgoing.client_envelope)
        else:
            self.messages.append(outgoing.client_envelope)

    def is_absent(self, outgoing: Outgoing) -> bool:
        """Return whether a payload is nowhere."""
        if outgoing.is_commit:
            return not self.chain.holds(outgoing.payload_hash)
        return all(payload_hash_of(data) != outgoing.payload_hash for data in self.messages)

    # The scheduler's choices.

    def _act(self, client: SimulatedClient) -> None:
        if not client.is_active:
            return
        groups = client.groups
        others = [each.key for each in self.clients if each is not client]
        choice = self.random.randrange(10)
        if choice < 6:
            words = b"%d of %s" % (len(self.sent), client.name.encode())
            groups.send(GROUP_ID, words, client.now_ns)
            self.sent.add(words)
        elif choice < 8:
            groups.queue(GROUP_ID, AddMembers((self.random.choice(others),)))
        elif choice < 9:
            groups.queue(GROUP_ID, KeyUpdate())
        else:
            groups.queue(GROUP_ID, RemoveMembers((self.random.choice(others),)))

    def _step(self, client: SimulatedClient) -> None:
        for _ in range(self.random.randint(1, 8)):
            client.step()

    def _start(self, client: SimulatedClient) -> None:
        client.start()

    def _read_chain(self, client: SimulatedClient) -> None:
        client.read_chain()

    def _read_node(self, client: SimulatedClient) -> None:
        client.read_node(gives_up=self.random.random() < 0.1)

    def _read_welcome(self, client: SimulatedClient) -> None:
        client.read_welcome()

    def _mine(self, client: SimulatedClient) -> None:
        self.chain.mine()

    def _reorg(self, client: SimulatedClient) -> None:
        self.chain.reorg()

    def _kill(self, client: SimulatedClient) -> None:
        self.counts["kills"] += bool(client.processes)
        client.kill()

    def _offer(self, client: SimulatedClient) -> None:
        client.offer()

    def _garbage(self, client: SimulatedClient) -> None:
        """A stranger claims an epoch."""
        epoch = self.random.randrange(6)
        message = mls.private_message(GROUP_ID, mls.COMMIT, epoch, b"")
        message = message[:-4] + self.random.randbytes(4)
        self.chain.pool.append(client_envelope(b"\x12\x11\0" + GROUP_ID, message))

    # The end.

    def _calm_down(self) -> None:
        self.is_calm = True
        for calm_round in range(MOST_ROUNDS):
            self.steps += 1
            # A reorg can lose a commit for good, and messages depend on it.
            gives_up = calm_round >= PATIENCE_ROUNDS
            for client in self.clients:
                if unfinished([client]):
                    client.start()
                while client.step():
                    pass
            self.chain.mine(everything=True)
            for client in self.clients:
                while client.read_welcome() or client.read_chain() or client.read_node(gives_up):
                    pass
            if self._is_over():
                return
        raise AssertionError(f"not over: {unfinished(self.clients)}")

    def _is_over(self) -> bool:
        return not self.chain.pool and not unfinished(self.clients) and self.chain.mined > 0

    # Invariants.

    def check_agreement(self) -> None:
        """Clients that read the same blocks are in the same epoch with the same history."""
        seen: dict[tuple[int, int], tuple[str, dict[int, bytes]]] = {}
        for client in self.clients:
            if not client.is_active:
                continue
            history = client.history
            place = client.read_blocks[-1].identity, max(history)
            name, other = seen.setdefault(place, (client.name, history))
            common = history.keys() & other.keys()
            assert all(history[each] == other[each] for each in common), (client.name, name)
