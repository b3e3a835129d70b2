"""Whether nothing is left to do: the registry is read, and no endpoint is ahead.

A step is idle when its own endpoint shows nothing new. This endpoint may be behind, and the
registry has steps of its own: a script that waits for the end must not be released too early.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chainkit.chain import EndpointPool
from chainkit.errors import ChainError
from chainkit_indexer.types import StepResult


@dataclass(frozen=True, slots=True)
class IdleCheck:
    """Decides whether an idle step is the end of the work."""

    pool: EndpointPool
    chain_id: int
    is_registry_done: Callable[[], bool]
    """Whether the registry's history is known up to the head of its chain."""

    def is_done(self, result: StepResult) -> bool:
        """Return whether contracts, registry and head are done: asks all endpoints for their heads.

        The pool knows the highest head since the last reorg: an endpoint that fell back below that
        head does not end the work.
        """
        if not self.is_registry_done():
            return False
        for endpoint in self.pool.available():
            try:
                self.pool.saw_head(endpoint, endpoint.head_of(self.chain_id).number)
            except ChainError as error:
                self.pool.failed(endpoint, error)
        return result.head.number >= self.pool.highest_head
