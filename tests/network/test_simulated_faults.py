"""Honest nodes in a simulated network: whatever fails, they hold the same, and accuse nobody.

The chain reorganises: nodes that it took back are there again, and payloads stand elsewhere.

A seed that fails is played again by its number.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from support.network.simulation.checks import check
from support.network.simulation.story import played
from support.seeds import parts, seeds, span

SEEDS = seeds(fixed=40, of_day=20, in_soak=20_000)


@pytest.mark.conforms("N27", "N28", "N30", "N31", "N32")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", parts(SEEDS, 20), ids=span)
def test_honest_nodes__any_faults__hold_the_same_and_accuse_nobody(part: Sequence[int]) -> None:
    for seed in part:
        check(played(seed))


@pytest.mark.parametrize("seed", range(2))
def test_story__of_the_same_seed__is_the_same(seed: int) -> None:
    first, second = played(seed), played(seed)

    assert first.acknowledged == second.acknowledged
    assert first.accusations == second.accusations
