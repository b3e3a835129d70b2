"""One story of a seed: messages, crashes, partitions, backups, registry changes, and a lie."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field

from chainkit.service.refusals import NotReady
from chainkit_node.replicating.repairer import ROUND_SECONDS
from support.network.originator import MemoryLog
from support.network.simulation.lies import Liar, Lie
from support.network.simulation.loop import run
from support.network.simulation.node import Accusation, SimulatedNode
from support.network.simulation.world import World

NODE_IDS = (100, 200, 300, 400)
HEALING_SECONDS = 240.0
LIVE_SECONDS = 5.0
MOST_DRIFT_SECONDS = 120.0
MOST_ROUNDS = 15
"""Comparisons with nodes at random, until each has met one that holds what it lacks."""


@dataclass
class Story:
    """The events of a story, and its end."""

    world: World
    acknowledged: set[bytes] = field(default_factory=set)
    restored: int = 0
    is_live: bool = False
    """Once all was mended, each message reached all honest nodes within LIVE_SECONDS."""
    crashes: int = 0

    @property
    def honest(self) -> list[SimulatedNode]:
        return [each for each in self.world.nodes.values() if each.liar is None]

    @property
    def accusations(self) -> list[Accusation]:
        """Those of honest nodes."""
        return [each for node in self.honest for each in node.accusations]


def played(seed: int, lie: Lie | None = None, steps: int = 30) -> Story:
    """Play a seed's story to its end, with everything mended in the end."""
    story: Story = run(_play(seed, lie, steps))
    return story


async def _play(seed: int, lie: Lie | None, steps: int) -> Story:
    chance = random.Random(seed)
    world = World(chance)
    story = Story(world)
    for node_id in NODE_IDS:
        ahead = chance.uniform(-MOST_DRIFT_SECONDS, MOST_DRIFT_SECONDS)
        world.register(SimulatedNode(world, node_id, ahead))
    if lie is not None:
        victims = chance.sample(NODE_IDS[:-1], chance.randint(1, len(NODE_IDS) - 2))
        world.nodes[NODE_IDS[-1]].liar = Liar(lie, chance.randint(2, 5), victims)
    for node in world.nodes.values():
        node.start()
    backups: dict[int, dict[int, MemoryLog]] = {}
    for _ in range(steps):
        await asyncio.sleep(chance.expovariate(1 / 5))
        await _step(story, backups)
    await _mend(story)
    for node in world.nodes.values():
        await node.crash()
    return story


async def _step(story: Story, backups: dict[int, dict[int, MemoryLog]]) -> None:
    world, chance = story.world, story.world.chance
    node = world.nodes[chance.choice(NODE_IDS)]
    action = chance.random()
    if action < 0.6:
        _publish(story, node)
    elif action < 0.7:
        if node.is_up:
            story.crashes += 1
            await node.crash()
        else:
            node.start()
    elif action < 0.76:
        world.partition(set(chance.sample(NODE_IDS, chance.randint(1, 2))))
    elif action < 0.84:
        world.heal()
    elif action < 0.88:
        is_enabled = chance.random() < 0.5
        world.set_enabled(node.node_id, is_enabled)
    elif action < 0.94:
        backups[node.node_id] = node.copied_logs()
    elif node.node_id in backups and node.liar is None:
        await _restore(story, node, backups[node.node_id])


async def _restore(story: Story, node: SimulatedNode, backup: dict[int, MemoryLog]) -> None:
    """Restore an older copy, unless nobody else has what is newer: then it is lost for good."""
    newer = _held(node.logs) - _held(backup)
    if newer - set[bytes]().union(*(_held(each.logs) for each in story.honest if each != node)):
        return
    story.restored += 1
    await node.crash()
    node.restore(backup)
    node.start()
    # Nothing may be originated before it is known what was originated.
    for _ in range(3):
        _publish(story, node)
        await asyncio.sleep(story.world.chance.uniform(0.0, 1.0))


def _held(logs: dict[int, MemoryLog]) -> set[bytes]:
    return {envelope for log in logs.values() for envelope in log.envelopes()}


def _publish(story: Story, node: SimulatedNode) -> None:
    if not node.is_up or not story.world.entries[node.node_id].is_enabled:
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


async def _mend(story: Story) -> None:
    world = story.world
    world.heal()
    for node in world.nodes.values():
        world.set_enabled(node.node_id, True)
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
