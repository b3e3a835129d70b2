"""One story of a seed: messages, crashes, partitions, backups, reorgs of the chain, and a lie."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from chainkit.service.refusals import NotReady
from chainkit_node.replicating.repairer import ROUND_SECONDS
from support.network.originator import MemoryLog
from support.network.simulation.chain import BLOCK_SECONDS, MOST_LAG_SECONDS, SimulatedChain
from support.network.simulation.lies import ChainLie, Liar, Lie
from support.network.simulation.loop import run
from support.network.simulation.node import Accusation, SimulatedNode, registry_entry
from support.network.simulation.world import World

NODE_IDS = (100, 200, 300, 400)
HEALING_SECONDS = 240.0
LIVE_SECONDS = 5.0
MOST_DRIFT_SECONDS = 120.0
MOST_ROUNDS = 15
"""Comparisons with nodes at random, until each has met one that holds what it lacks."""

WATCHED = 0.5
"""The share of stories whose nodes run watchdogs: without them, comparisons find what differs."""

POSTED = 0.1
"""The share of blocks before which a client posts a payload to the chain."""

LATEST_BLOCK = 30
"""A node that is not in the registry from the first block on is added in this one at the latest."""

REORGANISED = 0.04
"""The share of blocks that a reorg brings."""


@dataclass
class Story:
    """The events of a story, and its end."""

    world: World
    acknowledged: set[bytes] = field(default_factory=set)
    is_mending: bool = False
    is_live: bool = False
    """Once all was mended, each message reached all honest nodes within LIVE_SECONDS."""
    silent: set[tuple[int, int]] = field(default_factory=set)
    """Honest nodes with others whose own streams they have not open in the end."""

    @property
    def honest(self) -> list[SimulatedNode]:
        return [each for each in self.world.nodes.values() if each.liar is None]

    @property
    def accusations(self) -> list[Accusation]:
        """Those of honest nodes."""
        return [each for node in self.honest for each in node.accusations]


def played(
    seed: int, lie: Lie | ChainLie | None = None, steps: int = 30, compares: bool = True
) -> Story:
    """Play a seed's story to its end, with everything mended in the end.

    ``compares`` says whether the liar answers comparisons of logs.
    """
    story: Story = run(_play(seed, lie, steps, compares))
    return story


async def _play(seed: int, lie: Lie | ChainLie | None, steps: int, compares: bool) -> Story:
    story = Story(_world(random.Random(seed)))
    world, chance = story.world, story.world.chance
    if lie is not None:
        victims = chance.sample(NODE_IDS[:-1], chance.randint(1, len(NODE_IDS) - 2))
        world.nodes[NODE_IDS[-1]].liar = Liar(lie, chance.randint(2, 5), victims, compares=compares)
    is_watched = isinstance(lie, ChainLie) or chance.random() < WATCHED
    for node in world.nodes.values():
        node.watches = is_watched
        node.start()
    mining = asyncio.ensure_future(_mine(story))
    backups: dict[int, dict[int, MemoryLog]] = {}
    for _ in range(steps):
        await asyncio.sleep(chance.expovariate(1 / 5))
        await _step(story, backups)
    await _mend(story)
    story.silent = _silent(story.honest)
    for node in world.nodes.values():
        await node.crash()
    mining.cancel()
    return story


def _world(chance: random.Random) -> World:
    """Return nodes that do not run yet; one of them may be registered later than the others."""
    late_id = chance.choice((*NODE_IDS[1:3], None, None))
    registered = [registry_entry(each) for each in NODE_IDS if each != late_id]
    world = World(chance, SimulatedChain(random.Random(chance.random()), registered))
    for node_id in NODE_IDS:
        ahead = chance.uniform(-MOST_DRIFT_SECONDS, MOST_DRIFT_SECONDS)
        lag = chance.uniform(0.0, MOST_LAG_SECONDS)
        world.nodes[node_id] = SimulatedNode(world, node_id, ahead, lag)
    if late_id is not None:
        world.chain.add(registry_entry(late_id), chance.randint(1, LATEST_BLOCK))
    return world


async def _mine(story: Story) -> None:
    """Have the chain grow, and reorganise until all is to be mended."""
    world, chance = story.world, story.world.chance
    while True:
        await asyncio.sleep(BLOCK_SECONDS)
        is_posted, is_reorganised = chance.random() < POSTED, chance.random() < REORGANISED
        if is_posted and not story.is_mending:
            world.chain.post()
        if is_reorganised and not story.is_mending:
            _reorganise(story)
        else:
            world.chain.mine(world.seconds())


def _reorganise(story: Story) -> None:
    chain = story.world.chain
    old, new = chain.head, chain.reorganise(story.world.seconds())
    is_other = old.payloads != new.payloads[: len(old.payloads)]
    for node in story.world.nodes.values():
        if node.liar is not None and node.liar.fork is None and is_other:
            node.liar.fork = old


async def _step(story: Story, backups: dict[int, dict[int, MemoryLog]]) -> None:
    world, chance = story.world, story.world.chance
    node = world.nodes[chance.choice(NODE_IDS)]
    action = chance.random()
    if action < 0.6:
        _publish(story, node)
    elif action < 0.7:
        if node.is_up:
            await node.crash()
        else:
            node.start()
    elif action < 0.76:
        world.partition(set(chance.sample(NODE_IDS, chance.randint(1, 2))))
    elif action < 0.84:
        world.heal()
    elif action < 0.88:
        if chance.random() < 0.5:
            node.port += 1
        world.chain.change(node.entry(is_enabled=chance.random() < 0.5))
    elif action < 0.94:
        backups[node.node_id] = node.copied_logs()
    elif node.node_id in backups and node.liar is None:
        await _restore(story, node, backups[node.node_id])


async def _restore(story: Story, node: SimulatedNode, backup: dict[int, MemoryLog]) -> None:
    """Restore an older copy, unless what is newer may be lost or signed a second time."""
    newer = _held(node.logs) - _held(backup)
    if newer - set[bytes]().union(*(_held(each.logs) for each in story.honest if each != node)):
        return
    if not _learns_its_own(story, node):
        return
    await node.crash()
    node.restore(backup)
    node.start()
    # Nothing may be originated before it is known what was originated.
    for _ in range(3):
        _publish(story, node)
        await asyncio.sleep(story.world.chance.uniform(0.0, 1.0))


def _learns_its_own(story: Story, node: SimulatedNode) -> bool:
    """Tell whether one of the first nodes that answer a restored one holds all of its log.

    A node believes the first ones that answer.
    """
    world, own_id, listed = story.world, node.node_id, node.listing().nodes
    return node.knows_enabled(own_id) and any(
        each.is_up
        and not world.is_cut(own_id, each.node_id)
        and listed.get(each.node_id) in (each.entry(), each.entry(is_enabled=False))
        and each.knows_enabled(own_id)
        and each.last_id(own_id) >= node.last_id(own_id)
        for each in story.honest
        if each != node
    )


def _held(logs: dict[int, MemoryLog]) -> set[bytes]:
    return {envelope for log in logs.values() for envelope in log.envelopes()}


def _publish(story: Story, node: SimulatedNode) -> None:
    if not node.is_up:
        return
    with suppress(NotReady):
        envelope = node.publish()
        if node.liar is None:
            story.acknowledged.add(envelope)


def _hold_all(story: Story) -> bool:
    """Tell whether each honest node holds what each of them has originated."""
    newest = [node.log(node.node_id).last() for node in story.honest]
    return all(
        node.last_id(other.node_id) >= (last.sequence_id if last else 0)
        for node in story.honest
        for other, last in zip(story.honest, newest, strict=True)
    )


def _hold_the_same_ids(story: Story) -> bool:
    """Tell whether the honest nodes lack nothing that one of them holds."""
    held = [[node.log(each).ids() for each in NODE_IDS] for node in story.honest]
    return held == [held[0]] * len(held)


def _silent(nodes: Sequence[SimulatedNode]) -> set[tuple[int, int]]:
    """Return nodes with those of the others whose own streams they have not open."""
    wanted = {(one.node_id, other.node_id) for one in nodes for other in nodes if one != other}
    return wanted - {
        (node.node_id, each.peer_id)
        for node in nodes
        for each, state in node.replicator.streams().items()
        if each.is_direct and state.is_open
    }


async def _mend(story: Story) -> None:
    world = story.world
    world.heal()
    story.is_mending = True
    while not world.chain.is_settled:
        await asyncio.sleep(BLOCK_SECONDS)
    for node in world.nodes.values():
        world.chain.change(node.entry())
        if not node.is_up:
            node.start()
    await asyncio.sleep(HEALING_SECONDS / 2)
    for node in story.honest:
        _publish(story, node)
    await asyncio.sleep(LIVE_SECONDS)
    story.is_live = _hold_all(story)
    # So many that each lie was told, and something came after it.
    for _ in range(8):
        for node in world.nodes.values():
            _publish(story, node)
        await asyncio.sleep(world.chance.uniform(0.1, 2.0))
    # Each round of comparisons picks one of the others, who may lack the same.
    liars = [node.liar for node in world.nodes.values() if node.liar]
    is_slow = any(liar.lie is Lie.DEPENDS_ON_NOTHING for liar in liars)
    await asyncio.sleep(HEALING_SECONDS if is_slow else HEALING_SECONDS / 2)
    for _ in range(MOST_ROUNDS):
        if _hold_the_same_ids(story):
            break
        await asyncio.sleep(ROUND_SECONDS)
