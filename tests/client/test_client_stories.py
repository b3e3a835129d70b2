"""Whole clients on simulated nodes: faults, reorgs, and a node that lies, under seeds.

`make soak` plays many times as many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from chainkit_client.mls.node_engine import NodeEngine
from support.client.group_network import memory_folder
from support.client.stories.hunt import played
from support.client.stories.nodes import LIES, PROVABLE
from support.client.stories.story import MakeEngine, toy_engine
from support.seeds import IS_SOAK, is_of_a_day, seeds

HONEST = seeds(fixed=4, of_day=1, in_soak=180)
LYING = range(60) if IS_SOAK else [1]
"""In story 1, the chance to tell it comes for each lie."""
REAL = range(60) if IS_SOAK else [1, 2, 3]
"""The real engine draws keys of its own: a short story may end before a message is read."""

pytestmark = pytest.mark.timeout(9_000 if IS_SOAK else 300)


def play(
    chosen: Sequence[int], lie: str | None = None, make_engine: MakeEngine = toy_engine
) -> Counter[str]:
    counts: Counter[str] = Counter()
    with memory_folder() as folder:
        for seed in chosen:
            found = played(folder, seed, lie, make_engine)
            if not is_of_a_day(seed):
                counts += found
    return counts


def test_story__faults_and_reorgs__all_agree_all_ends_and_nobody_is_accused() -> None:
    counts = play(HONEST)

    # Each kind of fault was there.
    faults = {"reorgs seen", "kills", "lost before", "lost after", "unreached", "of strangers"}
    wanted = {*faults, "messages read"}
    assert wanted <= {name for name, count in counts.items() if count}, counts
    assert counts["messages read"] > 20 * counts["messages too old"]


@pytest.mark.parametrize("lie", LIES)
def test_story__a_node_lies__all_agree_and_a_lie_with_a_proof_is_reported(lie: str) -> None:
    counts = play(LYING, lie)

    assert counts["lies reported"] or lie not in PROVABLE


def test_story__with_the_real_engine__ends_as_with_the_toy() -> None:
    with NodeEngine() as engine:
        counts = play(REAL, make_engine=lambda story: engine)

    assert counts["messages read"]
