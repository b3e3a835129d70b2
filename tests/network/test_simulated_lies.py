"""Nodes that lie, in a simulated network: each lie is reported as what it is.

A seed that fails is played again by its number.
"""

from __future__ import annotations

import os

import pytest

from support.network.simulation.checks import (
    EXPECTED_REPORTS,
    check_no_honest_node_accused,
    check_nothing_lost,
    check_reported,
    check_same,
    check_signed,
    check_streams,
    is_told,
)
from support.network.simulation.lies import ChainLie, Lie
from support.network.simulation.story import played

SEEDS = 1000 if "CHAINKIT_SOAK" in os.environ else 30


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lie", [*Lie, *ChainLie])
def test_a_lie__is_reported_as_what_it_is_and_no_honest_node_is_accused(
    lie: Lie | ChainLie,
) -> None:
    told = 0
    for seed in range(SEEDS):
        story = played(seed, lie)

        check_same(story)
        check_signed(story)
        check_streams(story)
        check_nothing_lost(story)
        check_no_honest_node_accused(story)
        told += is_told(story, lie)
        if is_told(story, lie):
            check_reported(story, lie)
    # Not every story lets the liar tell its lie.
    assert told > SEEDS // 2 or lie not in EXPECTED_REPORTS
