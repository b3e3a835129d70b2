"""The values that travel between readers and the log, and between payers and the sequencer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chainkit.protocol.charges import NO_CHARGE, Charge
from chainkit.protocol.log_ranges import RangeContent
from chainkit_indexer.storage.envelopes import StoredEnvelope


@dataclass(frozen=True, slots=True)
class Selection:
    """Which envelopes a reader wants: of topics or of originators, never both (XIP-49 §3.3.3)."""

    topics: frozenset[bytes] = frozenset()
    originator_ids: frozenset[int] = frozenset()
    cursor: Mapping[int, int] = field(default_factory=dict)
    """Originator id to the sequence id behind which envelopes are wanted; a missing one is 0."""


@dataclass(frozen=True, slots=True)
class Page:
    """Stored envelopes behind a cursor, by originator and sequence id."""

    rows: Sequence[StoredEnvelope]
    is_last: bool
    """No selected envelope lay behind the page when it was read."""
    held: frozenset[int] = frozenset()
    """Originators of whom messages were left out that come before what they name (ADR 55)."""


@dataclass(frozen=True, slots=True)
class HeldRanges:
    """Some ranges of an originator's ids, as this node holds them."""

    highest: int
    """The originator's highest sequence id, 0 before the first."""
    contents: Sequence[RangeContent]
    """In the order in which they were asked for."""


@dataclass(frozen=True, slots=True)
class NewEnvelope:
    """A payload that was accepted, and waits for its sequence id."""

    topic: bytes
    payer_envelope: bytes
    """The serialized PayerEnvelope, as received."""
    retention_seconds: int | None
    """Seconds until the envelope expires; None where it never does."""
    after_ns: int = 0
    """The envelope's time is later: the time of the chain's payload that it names; 0 for none."""
    charge: Charge = NO_CHARGE
    """The payer's debt for it."""
