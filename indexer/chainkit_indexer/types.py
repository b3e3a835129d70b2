"""The values that travel between the stages of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from chainkit.types import BlockHeader, BlockReference, Log, PayloadEvent

LOG_COLUMNS: Final = (
    "originator_id",
    "sequence_id",
    "block_number",
    "block_hash",
    "transaction_hash",
    "transaction_index",
    "log_index",
)
ENVELOPE_COLUMNS: Final = (
    "originator_id",
    "sequence_id",
    "originator_ns",
    "topic",
    "expires_at",
    "envelope",
)
QUARANTINE_COLUMNS: Final = (*LOG_COLUMNS, "contract", "identifier", "payload", "reason")


@dataclass(frozen=True, slots=True)
class IndexedBlock:
    """A block that was followed, with the originators' counters after it."""

    header: BlockHeader
    sequence_ids: Mapping[int, int]
    """Originator id to its highest sequence id up to and including this block, 0 before the
    first: the cursor of XIP-49 §3.2.2, with each originator that is followed."""


class CursorState(NamedTuple):
    """How far a chain was followed."""

    position: IndexedBlock | None
    """The cursor's position; None before the first page."""
    final_block: int
    """Height up to which nothing changes any more; NOTHING_FINAL before."""


# A tuple: one is made for every log, and a frozen dataclass takes four times as long.
class PlacedEvent(NamedTuple):
    """An event with its log and its block's time."""

    event: PayloadEvent
    log: Log
    timestamp: int
    """Seconds since 1970, from the header of the log's block."""


def is_served_id(sequence_id: int) -> bool:
    """Return whether cursors and tables can hold a sequence id: 1 to 2^63 - 1.

    Counted ids reach the end after 290,000 years at a million payloads a second; sparse ones may be
    any uint64.
    """
    return 0 < sequence_id < 2**63


class Provenance(StrEnum):
    """How the payloads of a block, and that there are no others, were established."""

    RECEIPTS = "receipts"
    """Proved: by the header's hash, the bloom filter, and the receipts under the header's root."""
    SECOND_ENDPOINT = "second endpoint"
    """Two endpoints of different hosts gave the same answer."""
    ONE_ENDPOINT = "one endpoint"
    """One endpoint's answers, which fit each other."""

    def is_stronger_than(self, other: Provenance) -> bool:
        """Return whether this kind is listed before the other."""
        ways = list(Provenance)
        return ways.index(self) < ways.index(other)


@dataclass(frozen=True, slots=True)
class ProvenanceRun:
    """Consecutive blocks that were established in the same way, both ends included."""

    first_block: int
    last_block: int
    provenance: Provenance

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return self.last_block - self.first_block + 1


@dataclass(frozen=True, slots=True)
class VerifiedPage:
    """Consecutive blocks with all their payloads, proved as far as the endpoints allow."""

    start: IndexedBlock
    """The block before the page, to which the page's first block links."""
    blocks: tuple[IndexedBlock, ...]
    """At least one."""
    events: tuple[PlacedEvent, ...]
    """In chain order, with sequence ids that continue those of ``start`` where they are counted."""
    provenance: Provenance = Provenance.ONE_ENDPOINT
    """The weakest of the blocks'."""

    @property
    def last(self) -> IndexedBlock:
        """The cursor's position after the page."""
        return self.blocks[-1]


@dataclass(frozen=True, slots=True)
class PageRows:
    """Rows of a page as tuples, in the order of ENVELOPE_COLUMNS and the others."""

    envelopes: tuple[tuple[Any, ...], ...]
    logs: tuple[tuple[Any, ...], ...]
    """The log of each envelope, in the same order."""
    quarantine: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Advanced:
    """A page was committed."""

    from_block: int
    """First height of the page."""
    cursor: BlockReference
    """Last block of the page, the cursor's new position."""
    head: BlockHeader
    """Newest block of the endpoint when the step began."""
    final_block: int
    """Height up to which nothing changes any more; -1 where nothing is final yet. While catching up
    it is above the cursor."""
    envelopes: int
    quarantined: int
    sequence_ids: Mapping[int, int]
    """Originator id to the last sequence id that the page holds or continues from."""
    established: Provenance
    """How the page was."""
    left_out: int = 0
    """Payloads under a sparse sequence id that an earlier one has, or that cannot be served."""


@dataclass(frozen=True, slots=True)
class Idle:
    """There is nothing to do: nothing was written."""

    cursor: BlockReference
    head: BlockHeader
    """Below the cursor where the endpoint lags or the chain was shortened (see ``step``)."""
    final_block: int


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A reorg took blocks back; the next steps replay the new branch."""

    reorg_id: int
    """From 1, as in the tables ``reorgs`` and ``journal``."""
    depth: int
    """Blocks taken back."""
    cursor: BlockReference
    """The common ancestor, the cursor's new position."""
    head: BlockHeader
    final_block: int
    retracted: int
    """Envelopes and quarantined payloads moved to the journal."""


StepResult = Advanced | Idle | RolledBack
"""The result of one step; a failure is an exception of ``chainkit.errors``."""
