"""The last block of an export of answers: the head, once the answers have come.

An honest node's answers contain no payload that the chain does not contain by then. So an envelope
above the contracts' counter in this block is invented, unless the endpoint lags behind the node:
the endpoint gets some time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from chainkit.chain import Endpoint
from chainkit.contracts.counter import require_counter
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import StoreError
from chainkit.types import BlockReference
from chainkit_jobs.recorded import recorded

_LAG_POLLS: Final = 20
_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Pin:
    """A block, and the contracts' counters in it."""

    block: BlockReference
    counters: Mapping[int, int]
    """By originator id; none for an originator that no contract counts."""


class Chain:
    """The chain beside which a node is asked."""

    def __init__(
        self,
        endpoint: Endpoint,
        record: DeploymentRecord | FollowedDeployment,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take an endpoint of the record's chain; ``sleep`` takes seconds."""
        self.record = recorded(record)
        self._endpoint = endpoint
        self._sleep = sleep

    def head(self) -> BlockReference:
        """Return the newest block. Raises ChainError."""
        return self._endpoint.head().reference

    def pin(self, answered: Mapping[int, int] = MappingProxyType({})) -> Pin:
        """Return the head; wait a little for one whose counters are as high as what was answered.

        ``answered`` has the highest sequence id that was, by originator id.

        Raises ChainError.
        """
        for poll in range(_LAG_POLLS):
            block = self.head()
            pin = Pin(block, self._counters(block))
            if all(number >= answered.get(each, 0) for each, number in pin.counters.items()):
                break
            if poll < _LAG_POLLS - 1:
                self._sleep(_POLL_SECONDS)
        return pin

    def _counters(self, block: BlockReference) -> dict[int, int]:
        return {
            originator_id: require_counter(self._endpoint, counter, block)
            for originator_id, counter in self.record.counters.items()
        }

    def check_on_chain(self, block: BlockReference, directory: Path) -> None:
        """Raise StoreError where a block is no longer the chain's.

        Since such a reorg the node may have taken back some of its answered envelopes.
        """
        now = self._endpoint.find_header(block.number)
        if now is None or now.hash != block.hash:
            got = "none" if now is None else f"0x{now.hash.hex()}"
            expected = f"block {block.number} 0x{block.hash.hex()} on the chain, as it was asked"
            hint = "a reorg: ask the node again; where this stays, into a new folder"
            raise StoreError(f"export {directory}", expected, got, hint)
