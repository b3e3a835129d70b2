"""A client asks a real chain for an inbox's updates: once, and then behind what it has stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainkit.chain import Endpoint
from chainkit.types import Place
from chainkit_client.network.chain import Chain
from chainkit_client.network.posted import REORG_BLOCKS, PostedUpdates
from chainkit_client.storage.store import Store
from support.chains.chain import LocalChain
from support.endpoints.fault_proxy import Call, Fault, FaultProxy
from support.payloads import identity_update

INBOX = b"\x17" * 32
BLOCKS = 3 * REORG_BLOCKS


def test_posted_updates__read_again_after_a_restart__asks_for_new_blocks_alone(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    ranges: list[tuple[int, int]] = []

    def noted(call: Call, answer: Any) -> Any:
        query = call.params[0]
        ranges.append((int(query["fromBlock"], 16), int(query["toBlock"], 16)))
        return answer

    def read() -> Mapping[Place, bytes]:
        """Read as a process of its own does."""
        store = Store.open(tmp_path / "client.db", "password", cost=2)
        try:
            chain = Chain(Endpoint.connect(proxy.url), local_chain.record, frozenset({0}))
            return PostedUpdates(chain, store, lambda: 1).of(INBOX)
        finally:
            store.close()

    update = identity_update(INBOX, size=20)
    with FaultProxy(local_chain.url) as proxy:
        proxy.arm(Fault("noted", of_call=noted, methods=frozenset({"eth_getLogs"})))
        local_chain.publish_identity_update(INBOX, update)
        local_chain.mine(BLOCKS)
        first_head = local_chain.head().number
        assert read() == {(0, 1): update}
        local_chain.publish_identity_update(INBOX, update)
        local_chain.mine(BLOCKS)
        assert read() == {(0, 1): update, (0, 2): update}

    head = local_chain.head().number
    contract = local_chain.record.identity_updates
    assert ranges == [(contract.block, first_head), (first_head - REORG_BLOCKS + 1, head)]
