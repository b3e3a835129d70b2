"""What must hold in a network of nodes, whatever happens to them: thousands of seeds of one story.

A seed that fails is played again by its number.
"""

from __future__ import annotations

import os

import pytest

from support.network.simulation.lies import EXPECTED, Lie
from support.network.simulation.story import NODE_IDS, Story, played

IS_SOAK = "CHAINKIT_SOAK" in os.environ
HONEST_SEEDS = 200
LYING_SEEDS = 30


@pytest.mark.parametrize("seed", range(HONEST_SEEDS))
def test_honest_nodes__any_faults__hold_the_same_and_accuse_nobody(seed: int) -> None:
    story = played(seed)

    check_same(story)
    check_nothing_lost(story)
    check_no_honest_node_accused(story)


@pytest.mark.parametrize("lie", list(Lie))
def test_a_lie__is_reported_as_what_it_is_and_no_honest_node_is_accused(lie: Lie) -> None:
    for seed in range(LYING_SEEDS):
        story = played(seed, lie)

        check_same(story)
        check_nothing_lost(story)
        check_no_honest_node_accused(story)
        check_reported(story, lie)


def check_same(story: Story) -> None:
    disputed = set[tuple[int, int]]().union(*(node.disputed for node in story.honest))
    for node_id in NODE_IDS:
        logs = [
            [
                envelope
                for sequence_id, envelope in zip(
                    node.log(node_id).ids(), node.log(node_id).envelopes(), strict=True
                )
                if (node_id, sequence_id) not in disputed
            ]
            for node in story.honest
        ]
        assert logs[0], f"node {node_id} published nothing"
        assert all(log == logs[0] for log in logs), f"logs of {node_id} differ"


def check_nothing_lost(story: Story) -> None:
    for node in story.honest:
        held = {each for log in node.logs.values() for each in log.envelopes()}
        assert story.acknowledged <= held


def check_no_honest_node_accused(story: Story) -> None:
    honest = {node.node_id for node in story.honest}
    assert not [
        each
        for each in story.accusations
        if each.node_id in honest and not each.misbehavior.is_liveness
    ]


def check_reported(story: Story, lie: Lie) -> None:
    found = {
        (each.misbehavior, each.weight)
        for each in story.accusations
        if each.node_id == NODE_IDS[-1]
    }
    if lie in EXPECTED:
        assert EXPECTED[lie] in found
