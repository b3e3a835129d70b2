from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import InconsistentAnswer
from chainkit_indexer.registry.follower import (
    RegistryAdvanced,
    RegistryFollower,
    RegistryIdle,
)
from chainkit_indexer.storage import schema
from support.endpoints.fault_proxy import Answer, Call, Fault, FaultProxy
from support.endpoints.faults import LOG_FAULTS, error, logs_fault
from support.indexer.registry_node import (
    DEEP,
    NEAR,
    TABLES,
    RegistryNode,
    add_node,
    clean_rows,
    connect,
    followed_registry,
    narrow_range,
    set_status,
)

pytest_plugins = ["support.indexer.registry_fixtures"]

NO_OTHER_BRANCH = {"logs: of the other branch"}
OF_SEVERAL_LOGS = {("logs: middle missing", NEAR)}
"""Faults that need more than one log: near the head, each block is asked for its own."""


@pytest.mark.parametrize("window_blocks", [NEAR, DEEP])
def test_follow__one_update_hidden__never_commits(
    follower: RegistryNode, window_blocks: int
) -> None:
    follower.window_blocks = window_blocks
    chain = follower.chain
    first = add_node(chain, 1)
    add_node(chain, 2)
    for is_enabled in (False, True, False):
        chain.mine()
        set_status(chain, first, is_enabled)
    chain.mine(5)
    registry = followed_registry(chain)
    honest = chain.endpoint.logs(0, chain.head().number, [registry.address])
    updated = [log for log in honest if len(log.topics) == 1]
    assert len(updated) == 5
    with FaultProxy(chain.url) as proxy:
        for hidden in updated:
            place = hex(hidden.block_number), hex(hidden.log_index)
            proxy.arm(logs_fault("one hidden", lambda logs, place=place: without(logs, place)))

            with pytest.raises(InconsistentAnswer):
                follower.step(connect(proxy.url))

            assert follower.rows(*TABLES)[1:] == [[], []]
            proxy.lift()
        assert proxy.delivered["logs: one hidden"] >= len(updated)
    follower.catch_up()
    assert len(follower.rows(schema.registry_updates)[0]) == 5


def without(logs: list[Answer], place: tuple[str, str]) -> list[Answer]:
    return [log for log in logs if (log["blockNumber"], log["logIndex"]) != place]


def test_follow__log_faults__only_ever_holds_the_chain(
    follower: RegistryNode, tmp_path: Path
) -> None:
    chain = follower.chain
    add_node(chain, 1)
    add_node(chain, 2)
    chain.mine(5)
    with FaultProxy(chain.url) as proxy:
        for fault, window_blocks in product(LOG_FAULTS, (NEAR, DEEP)):
            if fault.name in NO_OTHER_BRANCH or (fault.name, window_blocks) in OF_SEVERAL_LOGS:
                continue
            follower.window_blocks = window_blocks
            proxy.arm(fault)
            with pytest.raises(InconsistentAnswer):
                follower.step(connect(proxy.url))
            assert proxy.delivered.pop(fault.name) > 0, fault.name
            proxy.lift()
    assert follower.rows(*TABLES)[1:] == [[], []]
    follower.catch_up()
    assert follower.rows(*TABLES) == clean_rows(follower, tmp_path)


def steps_of_one_run(follower: RegistryNode) -> RegistryFollower:
    """One object for all steps: it keeps the updates that are not proved yet."""
    return RegistryFollower(follower.store, followed_registry(follower.chain), DEEP)


def clean_updates(follower: RegistryNode, folder: Path) -> list[list[tuple[Any, ...]]]:
    return [clean_rows(follower, folder)[TABLES.index(schema.registry_updates)]]


def test_follow__narrow_ranges__are_asked_for_in_pieces(
    follower: RegistryNode, tmp_path: Path
) -> None:
    follower.window_blocks = DEEP
    chain = follower.chain
    add_node(chain, 1)
    chain.mine(40)
    add_node(chain, 2)
    chain.mine(40)
    with FaultProxy(chain.url) as proxy:
        proxy.arm(narrow_range(7))
        endpoint = connect(proxy.url)
        steps = steps_of_one_run(follower)
        results = []
        while not isinstance(result := steps.step(endpoint), RegistryIdle):
            assert isinstance(result, RegistryAdvanced)
            results.append(result)
        assert proxy.delivered["narrow"] >= 1

    assert len(results) > 10
    assert results[-1].cursor.number == chain.head().number
    assert follower.rows(schema.registry_updates) == clean_updates(follower, tmp_path)


def test_follow__no_state_at_old_blocks__commits_once_a_later_block_proves_it(
    follower: RegistryNode, tmp_path: Path
) -> None:
    follower.window_blocks = DEEP
    chain = follower.chain
    add_node(chain, 1)
    chain.mine(10)
    head = chain.head()
    with FaultProxy(chain.url) as proxy:
        proxy.arm(pruned(head.hash))
        endpoint = connect(proxy.url)
        steps = steps_of_one_run(follower)

        deep = steps.step(endpoint)
        committed = follower.rows(schema.registry_updates)[0]
        near = steps.step(endpoint)

    assert isinstance(deep, RegistryAdvanced) and not deep.is_committed
    assert committed == []
    assert isinstance(near, RegistryAdvanced) and near.is_committed
    assert near.cursor == head.reference
    assert follower.rows(schema.registry_updates) == clean_updates(follower, tmp_path)


def test_follow__unproved_updates_were_a_lie__are_dropped_and_read_again(
    follower: RegistryNode,
) -> None:
    follower.window_blocks = DEEP
    chain = follower.chain
    add_node(chain, 1)
    chain.mine(10)
    head = chain.head()
    steps = steps_of_one_run(follower)
    with FaultProxy(chain.url) as proxy:
        proxy.arm(pruned(head.hash), logs_fault("all hidden", lambda logs: []))
        endpoint = connect(proxy.url)
        steps.step(endpoint)

        with pytest.raises(InconsistentAnswer, match="which differs in node 100"):
            steps.step(endpoint)

        proxy.lift()
        while not isinstance(steps.step(endpoint), RegistryIdle):
            pass
    assert follower.nodes() == follower.listed(head.number)


def test_follow__no_state_at_the_head__never_commits(follower: RegistryNode) -> None:
    add_node(follower.chain, 1)
    with FaultProxy(follower.chain.url) as proxy:
        proxy.arm(pruned(bytes(32)))

        with pytest.raises(InconsistentAnswer, match="the registry's listing"):
            follower.step(connect(proxy.url))

    assert follower.rows(*TABLES)[1:] == [[], []]


def pruned(kept_hash: bytes) -> Fault:
    refuse = error(-32000, "missing trie node 0x11 (path ) state is not available")

    def change(call: Call, answer: Answer) -> Answer:
        kept = call.params[1]["blockHash"] == "0x" + kept_hash.hex()
        return answer if kept else refuse(call, answer)

    return Fault("pruned", change, methods=frozenset({"eth_call"}))
