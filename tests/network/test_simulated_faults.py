"""Honest nodes in a simulated network: whatever fails, they hold the same, and accuse nobody.

The chain reorganises: nodes that it took back are there again, and payloads stand elsewhere.

A seed that fails is played again by its number.
"""

from __future__ import annotations

import os

import pytest

from support.network.simulation.checks import (
    check_no_honest_node_accused,
    check_nothing_lost,
    check_same,
    check_signed,
    check_streams,
)
from support.network.simulation.story import played

SEEDS = 20_000 if "CHAINKIT_SOAK" in os.environ else 1000
_PART = SEEDS // 20


@pytest.mark.conforms("N27", "N28", "N30", "N31", "N32")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, SEEDS, _PART))
def test_honest_nodes__any_faults__hold_the_same_and_accuse_nobody(first: int) -> None:
    for seed in range(first, first + _PART):
        story = played(seed)

        check_same(story)
        check_signed(story)
        check_streams(story)
        check_nothing_lost(story)
        check_no_honest_node_accused(story)


@pytest.mark.parametrize("seed", range(5))
def test_story__of_the_same_seed__is_the_same(seed: int) -> None:
    first, second = played(seed), played(seed)

    assert first.acknowledged == second.acknowledged
    assert first.accusations == second.accusations
