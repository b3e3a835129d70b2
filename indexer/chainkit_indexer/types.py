"""The values that travel between the stages of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chainkit.types import BlockHeader, BlockReference, Log, PayloadEvent


@dataclass(frozen=True, slots=True)
class IndexedBlock:
    """A block that was followed, with the state of the originator's counter after it."""

    header: BlockHeader
    last_sequence_id: int
    """Highest sequence id of originator 0 up to and including this block; 0 before the first."""


@dataclass(frozen=True, slots=True)
class PlacedEvent:
    """An event with its log and its block's time."""

    event: PayloadEvent
    log: Log
    timestamp: int
    """Seconds since 1970, from the header of the log's block."""


@dataclass(frozen=True, slots=True)
class VerifiedPage:
    """Consecutive blocks with all their payloads, proved as far as an endpoint lets us."""

    start: IndexedBlock
    """The block before the page, to which its first block links."""
    blocks: tuple[IndexedBlock, ...]
    """At least one."""
    events: tuple[PlacedEvent, ...]
    """In chain order, with sequence ids that continue those of ``start``."""

    @property
    def last(self) -> IndexedBlock:
        """Where the cursor stands after the page."""
        return self.blocks[-1]


@dataclass(frozen=True, slots=True)
class PageRows:
    """Rows of a page; keys are the columns of their tables."""

    envelopes: tuple[Mapping[str, Any], ...]
    quarantine: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Advanced:
    """A page was committed."""

    from_block: int
    """First height of the page."""
    cursor: BlockReference
    """Last block of the page, where the cursor now stands."""
    head: BlockReference
    """Newest block of the endpoint when the step began."""
    envelopes: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Idle:
    """There is nothing to do: nothing was written."""

    cursor: BlockReference
    head: BlockReference
    """Below the cursor where the endpoint lags or the chain was shortened (see ``step``)."""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A reorg took blocks back; the next steps replay the new branch."""

    reorg_id: int
    """From 1, as in the tables ``reorgs`` and ``journal``."""
    depth: int
    """Blocks taken back."""
    cursor: BlockReference
    """The common ancestor, where the cursor now stands."""
    retracted: int
    """Envelopes and quarantined payloads moved to the journal."""


StepResult = Advanced | Idle | RolledBack
"""What one step did; what it could not do is an exception of ``chainkit.errors``."""
