"""Clients on a chain with reorgs, under seeds: all accept the same commits, all intents end.

`make soak` plays 900 long worlds, 100,000 short ones, and 1,000 short ones with the real engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from chainkit_client.mls.node_engine import NodeEngine
from support.client.group_network import memory_folder
from support.client.simulation.hunt import long_world, short_world
from support.client.simulation.world import MakeEngine, toy_engine
from support.seeds import IS_SOAK, is_of_a_day, parts, seeds, span

LONG_WORLDS = seeds(fixed=10, of_day=2, in_soak=900)
SHORT_WORLDS = seeds(fixed=10, of_day=5, in_soak=100_000)
REAL_WORLDS = seeds(fixed=2, of_day=1, in_soak=1_000)

pytestmark = pytest.mark.timeout(18_000 if IS_SOAK else 300)


def simulate(
    play: Callable[[Path, int, MakeEngine], Counter[str]],
    seeds: Iterable[int],
    make_engine: MakeEngine = toy_engine,
) -> Counter[str]:
    counts: Counter[str] = Counter()
    with memory_folder() as folder:
        for seed in seeds:
            found = play(folder, seed, make_engine)
            if not is_of_a_day(seed):
                counts += found
    return counts


@pytest.mark.conforms("R6")
@pytest.mark.conforms("R7")
@pytest.mark.conforms("R24")
def test_world__reorgs_kills_and_lost_answers__all_clients_agree_and_all_intents_end() -> None:
    counts = simulate(long_world, LONG_WORLDS)

    # Each kind of fault was there.
    wanted = {"reorgs", "kills", "UNKNOWN lost", "UNKNOWN arrives", "REFUSED arrives", "TAKEN lost"}
    assert wanted <= counts.keys(), counts
    assert counts["messages read"] > 20 * counts["messages too old"]


@pytest.mark.parametrize("part", parts(SHORT_WORLDS, 1_000), ids=span)
def test_world__four_wishes_at_once__all_agree_in_whichever_order_they_go_on(
    part: Sequence[int],
) -> None:
    counts = simulate(short_world, part)

    assert counts["messages read"] > 20 * counts["messages too old"]


@pytest.mark.parametrize("part", parts(REAL_WORLDS, 100), ids=span)
def test_world__with_the_real_engine__ends_as_with_the_toy(part: Sequence[int]) -> None:
    with NodeEngine() as engine:
        counts = simulate(short_world, part, lambda world: engine)

    assert counts["messages read"]
