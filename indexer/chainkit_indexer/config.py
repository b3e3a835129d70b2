"""What an indexer is told once, at its start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chainkit.deployment import DeploymentRecord

DEFAULT_PAGE_BLOCKS: Final = 200
DEFAULT_WINDOW_BLOCKS: Final = 256
DEFAULT_POLL_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class IndexerSettings:
    """Which contracts to follow, and in what portions."""

    record: DeploymentRecord
    page_blocks: int = DEFAULT_PAGE_BLOCKS
    """Most blocks that one step commits. Changes nothing in what is stored."""
    window_blocks: int = DEFAULT_WINDOW_BLOCKS
    """Depth of the deepest reorg that can be repaired: so many blocks are kept to compare."""
    poll_seconds: float = DEFAULT_POLL_SECONDS
    """Pause at the head; XIP-49 asks for 250 ms to 1 s until an envelope is served."""
