"""Findings: stable codes, how grave each is, and ids that name the same thing on every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

from chainkit.evidence.findings import finding_id
from chainkit.exports import tables
from chainkit.text.printable import printable


class Severity(StrEnum):
    """How grave a finding is."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"
    NOTE = "note"
    """A fact that readers may need, and no fault by itself."""

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


class Code(StrEnum):
    """The kinds of findings. Codes are never renamed: reports and scripts refer to them."""

    ENVELOPE_ALTERED = "ENVELOPE_ALTERED"
    ENVELOPE_INVENTED = "ENVELOPE_INVENTED"
    ENVELOPE_MISSING = "ENVELOPE_MISSING"
    ENVELOPE_DUPLICATED = "ENVELOPE_DUPLICATED"
    ENVELOPE_UNREADABLE = "ENVELOPE_UNREADABLE"
    SIGNATURE_INVALID = "SIGNATURE_INVALID"
    QUARANTINED_SERVED = "QUARANTINED_SERVED"
    ENVELOPE_FORM_DIFFERS = "ENVELOPE_FORM_DIFFERS"
    ANSWERS_DIFFER = "ANSWERS_DIFFER"
    ENVELOPE_RETRACTED = "ENVELOPE_RETRACTED"
    ENVELOPE_COLUMNS_CONTRADICT = "ENVELOPE_COLUMNS_CONTRADICT"
    QUARANTINE_CONTRADICTS = "QUARANTINE_CONTRADICTS"
    QUARANTINE_MISSING = "QUARANTINE_MISSING"
    QUARANTINE_REASON_DIFFERS = "QUARANTINE_REASON_DIFFERS"
    JOURNAL_CONTRADICTS = "JOURNAL_CONTRADICTS"
    REGISTRY_HISTORY_CONTRADICTS = "REGISTRY_HISTORY_CONTRADICTS"
    NODE_CURSOR_CONTRADICTS = "NODE_CURSOR_CONTRADICTS"
    NODE_UNREGISTERED = "NODE_UNREGISTERED"
    NODE_DISABLED = "NODE_DISABLED"
    NODE_BEHIND = "NODE_BEHIND"
    CHAIN_SEQUENCE_GAP = "CHAIN_SEQUENCE_GAP"
    CHAIN_SEQUENCE_REPEATED = "CHAIN_SEQUENCE_REPEATED"
    CHAIN_SEQUENCE_ORDER = "CHAIN_SEQUENCE_ORDER"
    CHAIN_POSTED_WHILE_PAUSED = "CHAIN_POSTED_WHILE_PAUSED"
    CHAIN_PAYLOAD_OUT_OF_BOUNDS = "CHAIN_PAYLOAD_OUT_OF_BOUNDS"
    CHAIN_EVENTS_CONTRADICT = "CHAIN_EVENTS_CONTRADICT"
    CHAIN_CODE_UPGRADED = "CHAIN_CODE_UPGRADED"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a code, for a person."""

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
        Severity.MAJOR, "The node serves bytes that are no envelope with a BlockchainProof."
    ),
    Code.SIGNATURE_INVALID: Meaning(
        Severity.MAJOR, "The envelope's signature is not by the key that the registry holds."
    ),
    Code.QUARANTINED_SERVED: Meaning(
        Severity.MAJOR, "The node serves a payload that is invalid and must not be served."
    ),
    Code.ENVELOPE_FORM_DIFFERS: Meaning(
        Severity.NOTE,
        "The node signed the chain's bytes; the message around them has another encoding.",
    ),
    Code.ANSWERS_DIFFER: Meaning(
        Severity.MAJOR, "One export of the node holds this envelope, and another does not."
    ),
    Code.ENVELOPE_RETRACTED: Meaning(
        Severity.NOTE,
        "The wrong envelope is one that a node's journal calls taken back by a reorg.",
    ),
    Code.ENVELOPE_COLUMNS_CONTRADICT: Meaning(
        Severity.MINOR, "The envelope is right; the columns beside it in the node's table are not."
    ),
    Code.QUARANTINE_CONTRADICTS: Meaning(
        Severity.MAJOR, "The node keeps in quarantine what the chain holds as valid, or not at all."
    ),
    Code.QUARANTINE_MISSING: Meaning(
        Severity.MINOR, "The chain holds this malformed payload and the node's quarantine does not."
    ),
    Code.QUARANTINE_REASON_DIFFERS: Meaning(
        Severity.NOTE, "The node quarantines the right payload and gives another reason for it."
    ),
    Code.JOURNAL_CONTRADICTS: Meaning(
        Severity.MINOR,
        "The node's journal tells of a retracted payload what the chain contradicts.",
    ),
    Code.REGISTRY_HISTORY_CONTRADICTS: Meaning(
        Severity.MAJOR, "The registry's history as the node followed it is not the chain's."
    ),
    Code.NODE_CURSOR_CONTRADICTS: Meaning(
        Severity.MINOR, "The export's manifest contradicts itself, or the rows that it speaks of."
    ),
    Code.NODE_UNREGISTERED: Meaning(
        Severity.NOTE, "Payloads were posted in blocks at which the node was not registered yet."
    ),
    Code.NODE_DISABLED: Meaning(
        Severity.NOTE, "Payloads were posted in blocks at which the registry held it disabled."
    ),
    Code.NODE_BEHIND: Meaning(
        Severity.NOTE, "The node's export ends before payloads that the chain export still holds."
    ),
    Code.CHAIN_SEQUENCE_GAP: Meaning(
        Severity.CRITICAL, "The chain export lacks payloads: the contract's counter has no gaps."
    ),
    Code.CHAIN_SEQUENCE_REPEATED: Meaning(
        Severity.CRITICAL, "The chain export holds a sequence twice: the contract's counter grows."
    ),
    Code.CHAIN_SEQUENCE_ORDER: Meaning(
        Severity.CRITICAL, "A payload stands before the one whose sequence it follows."
    ),
    Code.CHAIN_POSTED_WHILE_PAUSED: Meaning(
        Severity.CRITICAL, "A contract emitted a payload although it was paused."
    ),
    Code.CHAIN_PAYLOAD_OUT_OF_BOUNDS: Meaning(
        Severity.CRITICAL, "A contract emitted a payload of a size that it did not allow."
    ),
    Code.CHAIN_EVENTS_CONTRADICT: Meaning(
        Severity.CRITICAL, "An event that the contract, as it is written, cannot have emitted here."
    ),
    Code.CHAIN_CODE_UPGRADED: Meaning(
        Severity.NOTE, "From here on another implementation runs: what it does is for review."
    ),
}

RESTS_ON_CHAIN: Final = frozenset(
    {
        Code.ENVELOPE_ALTERED,
        Code.ENVELOPE_INVENTED,
        Code.ENVELOPE_MISSING,
        Code.SIGNATURE_INVALID,
        Code.QUARANTINED_SERVED,
        Code.QUARANTINE_CONTRADICTS,
        Code.REGISTRY_HISTORY_CONTRADICTS,
        Code.CHAIN_POSTED_WHILE_PAUSED,
        Code.CHAIN_PAYLOAD_OUT_OF_BOUNDS,
        Code.CHAIN_EVENTS_CONTRADICT,
    }
)
"""Codes that accuse somebody by the logs of the chain export: one changed byte there makes them
accuse the innocent."""

RESTS_ON_SIGNATURE: Final = frozenset(
    {Code.ENVELOPE_ALTERED, Code.ENVELOPE_INVENTED, Code.QUARANTINED_SERVED}
)
"""Codes that accuse a node by its served envelope: without its signature anybody may have written
it."""


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks that an audit made: the severity of its findings depends on them."""

    is_chain_proved: bool = True
    """The chain export follows from a trusted block hash."""
    with_signatures: bool = True

    def severity(self, code: Code) -> Severity:
        """Return the severity of a finding: one grade less where its evidence was not checked."""
        usual = MEANINGS[code].severity
        is_lower = (code in RESTS_ON_CHAIN and not self.is_chain_proved) or (
            code in RESTS_ON_SIGNATURE and not self.with_signatures
        )
        return list(Severity)[usual.rank + 1] if is_lower else usual


EVERYTHING_CHECKED: Final = Checks()

FINDINGS: Final = pa.schema(
    [
        pa.field("finding_id", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        ("node_id", pa.int64()),
        ("node_public_key", pa.binary()),
        ("originator_id", pa.int64()),
        ("sequence_id", tables.UINT64),
        ("block_number", pa.int64()),
        ("log_index", pa.int64()),
        ("transaction_hash", pa.binary()),
        ("expected_digest", pa.binary()),
        ("served_digest", pa.binary()),
        ("served_transaction_hash", pa.binary()),
        ("signature_problem", pa.string()),
        ("envelope", pa.binary()),
        ("detail", pa.string()),
    ]
)
"""One row per finding. Block, log and transaction are the chain's; what begins with ``served_``,
and ``envelope`` (the bytes as served), is the node's; digests are what a BlockchainProof signs.
``node_public_key`` is the registry's. Findings about the chain export name no node, and those about
other events than payloads, or about a table as a whole, no sequence."""


def complete(
    rows: Iterable[Mapping[str, Any]],
    public_keys: Mapping[int, bytes],
    checks: Checks = EVERYTHING_CHECKED,
) -> list[dict[str, Any]]:
    """Add id, severity and the node's key to found rows, in an order that never varies."""
    findings = [_completed(row, public_keys, checks) for row in rows]
    findings.sort(
        key=lambda row: (
            row["code"],
            -1 if row["node_id"] is None else row["node_id"],
            -1 if row["originator_id"] is None else row["originator_id"],
            -1 if row["sequence_id"] is None else row["sequence_id"],
            -1 if row["block_number"] is None else row["block_number"],
            -1 if row["log_index"] is None else row["log_index"],
            row["finding_id"],
        )
    )
    return findings


def _completed(
    row: Mapping[str, Any], public_keys: Mapping[int, bytes], checks: Checks
) -> dict[str, Any]:
    sequence_id, detail = row["sequence_id"], row["detail"]
    if sequence_id is None and detail is not None:
        # A bundle contains the detail, since it is part of the id.
        detail = printable(detail)
    identity = finding_id(
        row["code"],
        row["node_id"],
        row["originator_id"],
        None if sequence_id is None else int(sequence_id),
        row["expected_digest"],
        row["served_digest"],
        row["envelope"],
        # A sequence, if there is one, names the payload, whatever its position.
        (row["block_number"], row["log_index"], detail) if sequence_id is None else None,
    )
    return dict(row) | {
        "finding_id": identity,
        "detail": detail,
        "severity": checks.severity(Code(row["code"])),
        "node_public_key": public_keys.get(row["node_id"]),
    }
