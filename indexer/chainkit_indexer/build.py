"""Builds the rows of a page: an envelope that is served, or a quarantined payload that is not.

No clock and no I/O: the same blocks and key always give the same bytes.
"""

from __future__ import annotations

from typing import Any

from chainkit.envelope import (
    originator_ns,
    quarantine_reason,
    sign_originator_envelope,
    unsigned_originator_envelope,
)
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_indexer.types import PageRows, PlacedEvent, VerifiedPage


def build_rows(page: VerifiedPage, key: SigningKey) -> PageRows:
    """Return the rows of a page's payloads, with envelopes signed by the node (XIP-49 §3.2.1)."""
    envelopes: list[dict[str, Any]] = []
    quarantine: list[dict[str, Any]] = []
    for placed in page.events:
        reason = quarantine_reason(placed.event)
        if reason is None:
            envelopes.append(_place(placed) | _envelope(placed, key))
        else:
            quarantine.append(_place(placed) | _quarantined(placed, reason))
    return PageRows(tuple(envelopes), tuple(quarantine))


def payload_digest(topic: bytes, payload: bytes) -> bytes:
    """Return the 32 bytes by which a payload is known again after a reorg.

    keccak256 of topic and payload. A topic has a fixed length, so the concatenation is
    unambiguous.
    """
    return keccak256(topic + payload)


def _place(placed: PlacedEvent) -> dict[str, Any]:
    event, log = placed.event, placed.log
    return {
        "originator_id": BLOCKCHAIN_ORIGINATOR_ID,
        "sequence_id": event.sequence_id,
        "block_number": log.block_number,
        "block_hash": log.block_hash,
        "transaction_hash": log.transaction_hash,
        "transaction_index": log.transaction_index,
        "log_index": log.log_index,
        "payload_digest": payload_digest(event.kind.topic(event.identifier), event.payload),
    }


def _envelope(placed: PlacedEvent, key: SigningKey) -> dict[str, Any]:
    event, log = placed.event, placed.log
    unsigned = unsigned_originator_envelope(event, placed.timestamp)
    return {
        "originator_ns": originator_ns(placed.timestamp),
        "topic": event.kind.topic(event.identifier),
        "envelope": sign_originator_envelope(unsigned, log.transaction_hash, key),
    }


def _quarantined(placed: PlacedEvent, reason: str) -> dict[str, Any]:
    return {
        "contract": placed.log.address,
        "identifier": placed.event.identifier,
        "payload": placed.event.payload,
        "reason": str(reason),
    }
