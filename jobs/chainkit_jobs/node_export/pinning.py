"""The block up to which an export of answers speaks: the head, once the answers have come.

A node cannot have answered a payload honestly that the chain does not contain by then. So an
envelope above the contracts' counter in that block is invented, unless the endpoint lags behind the
node: it gets some time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.chain import Endpoint
from chainkit.contracts.counter import read_own_counter
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.errors import StoreError
from chainkit.types import BlockReference

_LAG_POLLS: Final = 20
_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Pin:
    """A block, and the contracts' counter in it."""

    block: BlockReference
    counter: int


class Chain:
    """The chain beside which a node is asked."""

    def __init__(
        self,
        endpoint: Endpoint,
        record: DeploymentRecord,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take an endpoint of the record's chain; ``sleep`` takes seconds."""
        self.record = record
        self._endpoint = endpoint
        self._sleep = sleep

    def head(self) -> BlockReference:
        """Return the newest block. Raises ChainError."""
        return self._endpoint.head().reference

    def pin(self, answered_to: int = 0) -> Pin:
        """Return the head; wait a little for one whose counter is as high as what was answered.

        Raises ChainError.
        """
        for poll in range(_LAG_POLLS):
            block = self.head()
            pin = Pin(block, read_own_counter(self._endpoint, self.record, block))
            if pin.counter >= answered_to:
                break
            if poll < _LAG_POLLS - 1:
                self._sleep(_POLL_SECONDS)
        return pin

    def check_stands(self, block: BlockReference, directory: Path) -> None:
        """Raise StoreError where a block is no longer the chain's.

        Envelopes that a node answered before such a reorg may be ones that it took back since.
        """
        now = self._endpoint.find_header(block.number)
        if now is None or now.hash != block.hash:
            got = "none" if now is None else f"0x{now.hash.hex()}"
            expected = f"block {block.number} 0x{block.hash.hex()} on the chain, as it was asked"
            hint = "a reorg: ask the node again; where this stays, into a new folder"
            raise StoreError(f"export {directory}", expected, got, hint)
