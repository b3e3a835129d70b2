"""Holds anvil's clock."""

from collections.abc import Iterator
from contextlib import contextmanager

from chainkit.chain import Endpoint


@contextmanager
def mining_stopped(endpoint: Endpoint) -> Iterator[None]:
    """Stop anvil's own mining, by transaction or by interval, and start it again as it was."""
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
