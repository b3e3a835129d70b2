"""Limits of readiness; apart from the rest, because the command line shows the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_STALE_SECONDS: Final = 60.0
DEFAULT_READY_LAG_BLOCKS: Final = 10


@dataclass(frozen=True, slots=True)
class ReadyLimits:
    """Above these limits ``/readyz`` turns red."""

    stale_seconds: float = DEFAULT_STALE_SECONDS
    """Since the head moved, and since a step succeeded. With 0 a head may stay for ever, as on a
    chain that makes blocks only when there are transactions."""
    lag_blocks: int = DEFAULT_READY_LAG_BLOCKS
    """Between the head and the cursor."""
    serves_final_only: bool = False
    """The cursor should be at the final block, not at the head."""

    @property
    def step_seconds(self) -> float:
        """Longest time without a step that succeeded."""
        return self.stale_seconds or DEFAULT_STALE_SECONDS
