"""Ten of today's native clients in five groups, across reorgs and the kill of a node, at length."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from threading import Barrier

import pytest

from support.chains.chain import Deployment
from support.network.drill import Drill, drill
from support.network.node_sdk import NodeSdkClient
from support.network.real_nodes import becomes, until
from support.network.story import Story
from support.seeds import only_in_soak

GROUPS = 5
SENDERS, LISTENERS = 8, 2
SENDERS_OF_A_GROUP = 3
TEXTS = 2_000
TEXTS_PER_NAME = 20
REORG_BLOCKS = 3
OUTAGE_SECONDS = 1.0
"""With the start behind it, a node is away for some three seconds: after longer, senders of today's
clients are more than three commits behind, and send twice."""
STORY_SECONDS = 1800.0
STREAM_SECONDS = 60.0
RETRY_SECONDS = 1.0
"""How soon a stream that a killed node has cut begins again; by itself, after a minute."""

pytestmark = [only_in_soak, pytest.mark.timeout(3600)]


@dataclass(frozen=True)
class Shape:
    """A kind of network."""

    nodes: int = 1
    gateways: int = 1
    on_postgres: bool = False
    node_options: Sequence[str] = ()
    gateway_options: Sequence[str] = ()
    block_seconds: int = 0
    """0 where each transaction is mined at once."""


SHAPES = {
    "one_node": Shape(),
    # Two payers' commits of one epoch may change their order in a reorg: MLS then parts the members
    # who have read the one from those who read the other, unless nodes serve final blocks alone.
    "two_gateways": Shape(
        gateways=2, node_options=("--serve", "final", "--finality", "4"), block_seconds=1
    ),
    "three_nodes": Shape(nodes=3),
    "postgres": Shape(on_postgres=True),
    "depth": Shape(gateway_options=("--depth", "3"), block_seconds=1),
    "final": Shape(node_options=("--serve", "final", "--finality", "4"), block_seconds=1),
}


@pytest.fixture(params=SHAPES.values(), ids=SHAPES)
def shape(request: pytest.FixtureRequest) -> Shape:
    chosen: Shape = request.param
    return chosen


@pytest.fixture
def large(
    shape: Shape, local_deployment: Deployment, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Drill]:
    database = request.getfixturevalue("postgres").new_database() if shape.on_postgres else None
    with drill(
        local_deployment,
        tmp_path,
        nodes=shape.nodes,
        gateways=shape.gateways,
        database=database,
        node_options=shape.node_options,
        gateway_options=shape.gateway_options,
    ) as running:
        if shape.block_seconds:
            running.network.chain.pause_mining()
            running.network.chain.anvil.request("evm_setIntervalMining", shape.block_seconds)
        yield running


def begin(large: Drill, people: Sequence[NodeSdkClient]) -> list[Story]:
    """Make the groups: some senders each, and all who only listen."""
    senders, listeners = people[:SENDERS], people[SENDERS:]
    stories = []
    for place in range(GROUPS):
        some = [senders[(2 * place + each) % SENDERS] for each in range(SENDERS_OF_A_GROUP)]
        group = large.group([*some, *listeners])
        stories.append(Story(group, len(large.commits(group))))
    return stories


def play(
    person: NodeSdkClient, name: str, stories: Sequence[Story], renamers: int, in_step: Barrier
) -> None:
    """Send texts to one's groups in turn, and rename those that one may rename now and then.

    Senders keep in step: a stream lacks a commit that comes more than 100 texts after the one
    before, and a member who has not read for so long sends three commits late (docs/gateway.md).
    """
    for number, story in enumerate(islice(cycle(stories), TEXTS // SENDERS)):
        if number % TEXTS_PER_NAME == 0:
            in_step.wait(STORY_SECONDS)
        story.send(person, f"{name} {number}")
        may_rename = person in story.group.members[:renamers]
        if may_rename and number % TEXTS_PER_NAME < len(stories):
            story.rename(person, f"{name} {number}")


def test_ten_clients__reorgs_and_a_kill__all_that_was_sent_is_shown_once_in_one_order(
    large: Drill, shape: Shape
) -> None:
    node = large.network.nodes[0]
    with large.people(SENDERS + LISTENERS) as people:
        stories = begin(large, people)
        listeners = people[SENDERS:]
        for each in listeners:
            each.stream(RETRY_SECONDS, syncs=False)

        with ThreadPoolExecutor(SENDERS) as pool:
            in_step = Barrier(SENDERS)
            plays = [
                pool.submit(
                    play,
                    person,
                    f"person {place}",
                    [each for each in stories if person in each.group.members],
                    shape.gateways,
                    in_step,
                )
                for place, person in enumerate(people[:SENDERS])
            ]

            def until_sent(share: float) -> None:
                until(lambda: sum(each.count for each in stories) >= TEXTS * share, STORY_SECONDS)

            until_sent(0.25)
            fallen = large.reorganise(REORG_BLOCKS, 0, seed=1)
            until_sent(0.5)
            node.kill()
            time.sleep(OUTAGE_SECONDS)
            node.restart()
            until_sent(0.75)
            fallen += large.reorganise(REORG_BLOCKS, 1, seed=2)
            for each in plays:
                each.result()

        for story in stories:
            for place, member in enumerate(story.group.members):
                # A text that is three commits behind is streamed twice (docs/gateway.md).
                member.list(story.group.group_id)
                story.send(member, f"last {place}")
        check(large, shape, stories, listeners, fallen)


def check(
    large: Drill,
    shape: Shape,
    stories: Sequence[Story],
    listeners: Sequence[NodeSdkClient],
    fallen: Sequence[bytes],
) -> None:
    """Fail unless each member has listed all, each listener has streamed all, each commit is one.

    All is reported at once: another run is another story.
    """
    # A reorg gives a commit another time, and a client that has read the commit keeps the first
    # one. Where a commit takes four blocks, a sender is three commits behind at times, and sends
    # the text twice; a stream lacks a name where messages two commits older come with the commit.
    is_final = "final" in shape.node_options
    streamed = partial(Story.streamed_faults, listeners=listeners, are_late=is_final)
    becomes(lambda: not any(map(streamed, stories)), STREAM_SECONDS)
    found = []
    for place, story in enumerate(stories):
        repeated = story.repeated(listeners) if is_final else ()
        faults = story.listed_faults(is_final, repeated) | streamed(story)
        commits = large.commits(story.group)
        new = len(commits) - story.commits_before
        # Where two rename a group at once, the later commit is stale, and is made again.
        most = story.wishes if shape.gateways == 1 else len(set(commits))
        # The gateway publishes a commit that a reorg left with a lower id once more.
        most += sum(each in commits for each in fallen)
        if not len(story.named) <= new <= most:
            faults["commits"] = [f"{new}"], story.named
        for where, (missing, extra) in faults.items():
            found.append(f"group {place}, {where}: missing {missing}, too many {extra}")
    assert not found, "\n".join(found)
