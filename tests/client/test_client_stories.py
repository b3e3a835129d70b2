"""Whole clients on simulated nodes: faults, reorgs, and a node that lies, under seeds.

``CHAINKIT_SEED`` begins elsewhere, and ``CHAINKIT_SOAK`` plays thirty times as many.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from chainkit_client.mls.node_engine import NodeEngine
from support.client.group_network import memory_folder
from support.client.stories.hunt import played
from support.client.stories.nodes import LIES, PROVABLE
from support.client.stories.story import MakeEngine, toy_engine

SOAK = 30 if os.environ.get("CHAINKIT_SOAK") else 1
SEED = int(os.environ.get("CHAINKIT_SEED", "0"), 0)

pytestmark = pytest.mark.timeout(300 * SOAK)


def play(count: int, lie: str | None = None, make_engine: MakeEngine = toy_engine) -> Counter[str]:
    counts: Counter[str] = Counter()
    with memory_folder() as folder:
        for seed in range(SEED, SEED + count):
            counts += played(folder, seed, lie, make_engine)
    return counts


def test_story__faults_and_reorgs__all_agree_all_ends_and_nobody_is_accused() -> None:
    counts = play(6 * SOAK)

    # Each kind of fault was there.
    wanted = {"reorgs seen", "kills", "lost before", "lost after", "unreached", "messages read"}
    assert wanted <= {name for name, count in counts.items() if count}, counts
    assert counts["messages read"] > 20 * counts["messages too old"]


@pytest.mark.parametrize("lie", LIES)
def test_story__a_node_lies__all_agree_and_a_lie_with_a_proof_is_reported(lie: str) -> None:
    counts = play(2 * SOAK, lie)

    assert counts["lies reported"] or lie not in PROVABLE


def test_story__with_the_real_engine__ends_as_with_the_toy() -> None:
    with NodeEngine() as engine:
        counts = play(2 * SOAK, make_engine=lambda story: engine)

    assert counts["messages read"]
