"""The chain of the simulated network: reorgs take back what is not final, and it comes again."""

from __future__ import annotations

import random

import pytest

from support.network.simulation.chain import (
    BLOCK_SECONDS,
    DEEPEST,
    FINAL_DEPTH,
    MOST_LAG_SECONDS,
    Block,
    SimulatedChain,
)
from support.network.simulation.node import registry_entry


def blocks(head: Block) -> dict[int, Block]:
    """All blocks of a branch by their numbers."""
    return {each.number: each for each in (head.below(depth) for depth in range(head.number + 1))}


@pytest.mark.parametrize("seed", range(20))
def test_chain__any_reorgs__leave_what_is_final_and_all_comes_again(seed: int) -> None:
    chance = random.Random(seed)
    chain = SimulatedChain(chance, [registry_entry(100)])
    chain.add(registry_entry(200), 5)
    final: dict[int, Block] = {}
    for moment in range(BLOCK_SECONDS, 400, BLOCK_SECONDS):
        if chance.random() < 0.1:
            chain.post()
        if chance.random() < 0.2 and moment < 300:
            chain.reorganise(moment)
        else:
            chain.mine(moment)
        branch = blocks(chain.head)
        assert all(branch[number] is each for number, each in final.items())
        final |= blocks(chain.head.final)

    assert chain.is_settled
    assert set(chain.head.nodes) == {100, 200}
    hashes = [each.transaction_hash for each in chain.head.payloads]
    assert len(hashes) > 10
    assert sorted(hashes) == [each.to_bytes(32, "big") for each in range(1, len(hashes) + 1)]


def test_seen__with_a_lag__is_the_head_of_that_moment() -> None:
    chain = SimulatedChain(random.Random(1), [])
    chain.mine(2.0)
    first = chain.head
    chain.mine(4.0)

    assert chain.seen(-1.0).number == 0
    assert chain.seen(3.9) is first
    assert chain.seen(4.0) is chain.head


def test_lag__of_any_node__ends_before_a_reorg_is_final() -> None:
    assert MOST_LAG_SECONDS < (FINAL_DEPTH - DEEPEST) * BLOCK_SECONDS
