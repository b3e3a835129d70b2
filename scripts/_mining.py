"""Stops anvil's mining, and replaces its blocks."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from chainkit.chain import Endpoint


@contextmanager
def mining_stopped(endpoint: Endpoint) -> Iterator[None]:
    """Stop anvil's own mining, by transaction or by interval, and restore it afterwards."""
    automine = endpoint.request("anvil_getAutomine")
    interval = endpoint.request("anvil_getIntervalMining")
    endpoint.request("evm_setAutomine", False)
    endpoint.request("evm_setIntervalMining", 0)
    try:
        yield
    finally:
        if interval:
            endpoint.request("evm_setIntervalMining", interval)
        if automine:
            endpoint.request("evm_setAutomine", True)


def replace_blocks(endpoint: Endpoint, depth: int, placements: Sequence[tuple[str, int]]) -> None:
    """Replace anvil's newest ``depth`` blocks; its clock goes on as before.

    Each raw transaction, 0x-prefixed, goes into the block at its offset, where 0 is the oldest.
    The new blocks are dated evenly between the last one that stays, and now. Raises ChainError.
    """
    now = endpoint.request("eth_getBlockByNumber", "pending", False)
    stays = endpoint.header(endpoint.head().number - depth)
    clock = int(now["timestamp"], 16)
    ahead = max(clock - int(time.time()), 0)
    # anvil_reorg alone sets the clock back to the last remaining block, and leaves it there.
    endpoint.request("anvil_setBlockTimestampInterval", max(clock - stays.timestamp, 0) // depth)
    try:
        endpoint.request("anvil_reorg", depth, placements)
    finally:
        endpoint.request("anvil_removeBlockTimestampInterval")
        endpoint.request("anvil_setTime", int(time.time()) + ahead)
