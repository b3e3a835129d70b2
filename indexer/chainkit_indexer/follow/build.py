"""Builds the rows of a page: an envelope that is served, or a quarantined payload that is not.

No clock and no I/O but the signer's: the same blocks and key always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from chainkit.protocol.chain_time import originator_ns
from chainkit.protocol.served_topic import served_topic
from chainkit_indexer.follow.signing import Outcomes, Signer
from chainkit_indexer.types import PageRows, PlacedEvent, VerifiedPage, is_served_id

_CHUNK: Final = 64
"""Payloads that the signer is asked about together."""


@dataclass(frozen=True, slots=True)
class PendingPage:
    """A page whose payloads are being made into envelopes."""

    page: VerifiedPage
    chunks: Sequence[tuple[Sequence[PlacedEvent], Outcomes]]

    def rows(self) -> PageRows:
        """Wait for the envelopes, and return the rows. Raises SignerFailed."""
        envelopes: list[tuple[Any, ...]] = []
        logs: list[tuple[Any, ...]] = []
        quarantine: list[tuple[Any, ...]] = []
        for events, outcomes in self.chunks:
            for placed, outcome in zip(events, outcomes(), strict=True):
                if isinstance(outcome, bytes):
                    envelopes.append(_envelope(placed, outcome))
                    logs.append(_place(placed))
                else:
                    quarantine.append(_quarantined(placed, outcome))
        return PageRows(tuple(envelopes), tuple(logs), tuple(quarantine))


def submit_page(page: VerifiedPage, signer: Signer) -> PendingPage:
    """Ask the node's signer for the envelopes of a page's payloads (XIP-49 §3.2.1).

    Only of those whose sequence id can be served.
    """
    events = [placed for placed in page.events if is_served_id(placed.event.sequence_id)]
    starts = range(0, len(events), _CHUNK)
    chunks = [events[start : start + _CHUNK] for start in starts]
    return PendingPage(page, [(chunk, signer.sign(chunk)) for chunk in chunks])


def _envelope(placed: PlacedEvent, envelope: bytes) -> tuple[Any, ...]:
    event = placed.event
    topic = served_topic(event.kind, event.identifier, event.payload)
    time = originator_ns(placed.timestamp, event.sequence_id)
    # None: what the chain holds never expires.
    return (event.originator_id, event.sequence_id, time, topic, None, envelope)


def _quarantined(placed: PlacedEvent, reason: str) -> tuple[Any, ...]:
    event = placed.event
    return (*_place(placed), placed.log.address, event.identifier, event.payload, reason)


def _place(placed: PlacedEvent) -> tuple[Any, ...]:
    event, log = placed.event, placed.log
    return (
        event.originator_id,
        event.sequence_id,
        log.block_number,
        log.block_hash,
        log.transaction_hash,
        log.transaction_index,
        log.log_index,
    )
