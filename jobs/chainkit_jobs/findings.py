"""Findings: stable codes, how grave each is, and ids that name the same thing on every run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

from chainkit import tables


class Severity(StrEnum):
    """How grave a finding is."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"


class Code(StrEnum):
    """What was found. Codes are never renamed: reports and scripts refer to them."""

    ENVELOPE_ALTERED = "ENVELOPE_ALTERED"
    ENVELOPE_INVENTED = "ENVELOPE_INVENTED"
    ENVELOPE_MISSING = "ENVELOPE_MISSING"
    ENVELOPE_DUPLICATED = "ENVELOPE_DUPLICATED"
    ENVELOPE_UNREADABLE = "ENVELOPE_UNREADABLE"
    SIGNATURE_INVALID = "SIGNATURE_INVALID"
    QUARANTINED_SERVED = "QUARANTINED_SERVED"
    CHAIN_SEQUENCE_GAP = "CHAIN_SEQUENCE_GAP"
    CHAIN_SEQUENCE_REPEATED = "CHAIN_SEQUENCE_REPEATED"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code says to a person."""

    severity: Severity
    text: str


MEANINGS: Final[Mapping[Code, Meaning]] = {
    Code.ENVELOPE_ALTERED: Meaning(
        Severity.CRITICAL, "The node serves other bytes, or another transaction, than the chain's."
    ),
    Code.ENVELOPE_INVENTED: Meaning(
        Severity.CRITICAL, "The node serves a sequence that the chain never gave out."
    ),
    Code.ENVELOPE_MISSING: Meaning(
        Severity.MAJOR, "The chain holds this payload and the node does not serve it."
    ),
    Code.ENVELOPE_DUPLICATED: Meaning(
        Severity.MINOR, "The node serves more than one envelope under this sequence."
    ),
    Code.ENVELOPE_UNREADABLE: Meaning(
        Severity.MAJOR, "What the node serves is no envelope with a BlockchainProof."
    ),
    Code.SIGNATURE_INVALID: Meaning(
        Severity.MAJOR, "The envelope's signature is not by the key that the registry holds."
    ),
    Code.QUARANTINED_SERVED: Meaning(
        Severity.MAJOR, "The node serves a payload that is invalid and must not be served."
    ),
    Code.CHAIN_SEQUENCE_GAP: Meaning(
        Severity.CRITICAL, "The chain export lacks payloads: the contract's counter has no gaps."
    ),
    Code.CHAIN_SEQUENCE_REPEATED: Meaning(
        Severity.CRITICAL, "The chain export holds a sequence twice: the contract's counter grows."
    ),
}

FINDINGS: Final = pa.schema(
    [
        pa.field("finding_id", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        ("node_id", pa.int64()),
        ("node_public_key", pa.binary()),
        pa.field("originator_id", pa.int64(), nullable=False),
        pa.field("sequence_id", tables.UINT64, nullable=False),
        ("block_number", pa.int64()),
        ("transaction_hash", pa.binary()),
        ("expected_digest", pa.binary()),
        ("served_digest", pa.binary()),
        ("served_transaction_hash", pa.binary()),
        ("signature_problem", pa.string()),
        ("envelope", pa.binary()),
        ("detail", pa.string()),
    ]
)
"""One row per finding. Block and transaction are the chain's; what begins with ``served_``, and
``envelope`` (the bytes as served), is the node's; digests are what a BlockchainProof signs.
``node_public_key`` is the registry's. Findings about the chain export name no node."""


def finding_id(
    code: str,
    node_id: int | None,
    originator_id: int,
    sequence_id: int,
    expected_digest: bytes | None = None,
    served_digest: bytes | None = None,
    envelope: bytes | None = None,
) -> str:
    """Return 64 hex digits that name a finding: the sha256 of what makes it this one.

    The canonical form is a JSON list without spaces; integers beyond 53 bits stand as text.
    """
    parts = [
        code,
        node_id,
        originator_id,
        str(sequence_id),
        _hex(expected_digest),
        _hex(served_digest),
        hashlib.sha256(envelope).hexdigest() if envelope is not None else None,
    ]
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def complete(
    rows: Iterable[Mapping[str, Any]], public_keys: Mapping[int, bytes]
) -> list[dict[str, Any]]:
    """Add id, severity and the node's key to found rows, in an order that never varies."""
    findings = [_completed(row, public_keys) for row in rows]
    findings.sort(
        key=lambda row: (
            row["code"],
            -1 if row["node_id"] is None else row["node_id"],
            row["originator_id"],
            row["sequence_id"],
            row["finding_id"],
        )
    )
    return findings


def _completed(row: Mapping[str, Any], public_keys: Mapping[int, bytes]) -> dict[str, Any]:
    identity = finding_id(
        row["code"],
        row["node_id"],
        row["originator_id"],
        int(row["sequence_id"]),
        row["expected_digest"],
        row["served_digest"],
        row["envelope"],
    )
    return dict(row) | {
        "finding_id": identity,
        "severity": MEANINGS[Code(row["code"])].severity,
        "node_public_key": public_keys.get(row["node_id"]),
    }


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
