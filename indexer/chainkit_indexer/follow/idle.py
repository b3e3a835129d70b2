"""Whether there is really nothing to do: the registry is read, and no endpoint is ahead.

A step is idle when its own endpoint shows nothing new. That endpoint may be behind, and the
registry has steps of its own: a script that waits for the end must not be told too early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chainkit.chain import Endpoint, EndpointPool
from chainkit.errors import ChainError
from chainkit_indexer.types import StepResult


@dataclass(slots=True)
class IdleCheck:
    """Decides whether an idle step is the end of the work."""

    pool: EndpointPool
    chain_id: int
    is_registry_done: Callable[[], bool]
    """Whether the registry's history is known up to the head of its chain."""
    _highest: int = field(default=-1, init=False)
    """The highest head that was seen."""

    def is_done(self, result: StepResult) -> bool:
        """Tell whether contracts, registry and head are done: asks the other endpoints."""
        if not self.is_registry_done():
            return False
        heads = [result.head.number, *map(self._height, self.pool.available())]
        self._highest = max(self._highest, *heads)
        return result.head.number >= self._highest

    def _height(self, endpoint: Endpoint) -> int:
        try:
            height = endpoint.head_of(self.chain_id).number
        except ChainError as error:
            self.pool.failed(endpoint, error)
            return -1
        self.pool.saw_head(endpoint, height)
        return height
