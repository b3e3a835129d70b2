"""Builds the rows of a page: an envelope that is served, or a quarantined payload that is not.

No clock and no I/O but the signer's: the same blocks and key always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from chainkit.envelope import (
    blockchain_proof_digest,
    originator_envelope,
    originator_ns,
    quarantine_reason,
    unsigned_originator_envelope,
)
from chainkit_indexer.signing import Signer
from chainkit_indexer.types import PageRows, PlacedEvent, VerifiedPage

_PLACE_COLUMNS: Final = (
    "originator_id",
    "sequence_id",
    "block_number",
    "block_hash",
    "transaction_hash",
    "transaction_index",
    "log_index",
)
ENVELOPE_COLUMNS: Final = (*_PLACE_COLUMNS, "originator_ns", "topic", "envelope")
QUARANTINE_COLUMNS: Final = (*_PLACE_COLUMNS, "contract", "identifier", "payload", "reason")

_CHUNK: Final = 256
"""Envelopes whose digests are signed together, while the next ones are built."""


def build_rows(page: VerifiedPage, signer: Signer) -> PageRows:
    """Return the rows of a page's payloads, with envelopes signed by the node (XIP-49 §3.2.1)."""
    served: list[PlacedEvent] = []
    quarantine: list[tuple[Any, ...]] = []
    for placed in page.events:
        if (reason := quarantine_reason(placed.event)) is None:
            served.append(placed)
        else:
            quarantine.append(_quarantined(placed, str(reason)))
    return PageRows(tuple(_envelopes(served, signer)), tuple(quarantine))


def _envelopes(served: Sequence[PlacedEvent], signer: Signer) -> Iterator[tuple[Any, ...]]:
    chunks = [served[start : start + _CHUNK] for start in range(0, len(served), _CHUNK)]
    pending = []
    for chunk in chunks:
        unsigned = [unsigned_originator_envelope(each.event, each.timestamp) for each in chunk]
        digests = [
            blockchain_proof_digest(data, each.log.transaction_hash)
            for data, each in zip(unsigned, chunk, strict=True)
        ]
        pending.append((chunk, unsigned, signer.sign(digests)))
    for chunk, unsigned, signatures in pending:
        for each, data, signature in zip(chunk, unsigned, signatures(), strict=True):
            envelope = originator_envelope(data, each.log.transaction_hash, signature)
            yield _envelope(each, envelope)


def _envelope(placed: PlacedEvent, envelope: bytes) -> tuple[Any, ...]:
    event = placed.event
    topic = event.kind.topic(event.identifier)
    return (*_place(placed), originator_ns(placed.timestamp), topic, envelope)


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
