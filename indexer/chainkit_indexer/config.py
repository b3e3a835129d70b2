"""An indexer's settings, read once at its start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chainkit.contracts.followed import FollowedDeployment
from chainkit_indexer.finality import FinalityPolicy

DEFAULT_PAGE_BLOCKS: Final = 1000
DEFAULT_POLL_SECONDS: Final = 0.25
"""Pause at the head; XIP-49 §2.1.2 asks for 250 ms to 1 s until an envelope is served."""

DEFAULT_RANGE_BLOCKS: Final = 10_000
"""Blocks per file of an export."""

_DEFAULT_FINALITY: Final = FinalityPolicy()


@dataclass(frozen=True, slots=True)
class IndexerSettings:
    """Which contracts to follow, in what portions, and what counts as final."""

    deployment: FollowedDeployment
    page_blocks: int = DEFAULT_PAGE_BLOCKS
    """Most blocks that one step commits. The number does not change the stored rows."""
    finality: FinalityPolicy = _DEFAULT_FINALITY
    """Above the final block, the blocks are kept to compare, and reorgs are repaired."""
    serves_final_only: bool = False
    """Follow the chain only up to its final block, so that no served envelope is ever taken
    back."""
    trusts_one_endpoint: bool = False
    """Sign the answers of one endpoint alone, where they cannot be proved."""
