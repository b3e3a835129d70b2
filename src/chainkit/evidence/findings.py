"""Findings of an audit in a bundle: served envelopes, and the auditor's statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chainkit.documents.canonical import Record, line_bytes, parse_line
from chainkit.text.hexadecimal import hex0x
from chainkit.types import HASH_LENGTH

_FIELDS: Final = (
    *("block_number", "code", "detail", "envelope", "expected_digest", "finding_id", "log_index"),
    *("node_id", "originator_id", "report_sha256", "sequence_id", "severity"),
    *("transaction_hash", "unsigned_report_sha256"),
)
_DIGEST: Final = ("[0-9a-f]{64}", "64 hex digits")
_WORD: Final = ("[A-Za-z_]{1,40}", "a word")


@dataclass(frozen=True, slots=True)
class BundledFinding:
    """One finding about the accused node, in the words of the audit."""

    finding_id: str
    """64 hex digits, as the audit gave it."""
    code: str
    severity: str
    node_id: int
    originator_id: int | None
    sequence_id: int | None
    """A uint64, by the audit: the envelope contains its own."""
    block_number: int | None
    """Where the chain's log for this sequence stands, if there is one."""
    log_index: int | None
    """Its position in that block."""
    transaction_hash: bytes | None
    """32 bytes: the transaction of that log."""
    expected_digest: bytes | None
    """32 bytes: what a BlockchainProof of that log's envelope signs."""
    detail: str | None
    """Printable text."""
    envelope: bytes | None
    """The OriginatorEnvelope as served; None where nothing was."""
    unsigned_report_sha256: str | None = None
    """Digest of the finding's UnsignedMisbehaviorReport, in hex; None where it cannot."""
    report_sha256: str | None = None
    """Digest of the signed MisbehaviorReport, in hex; None where nobody signed."""

    @property
    def name(self) -> str:
        """The finding in an error message."""
        return f"finding {self.finding_id[:16]}"


def finding_line(finding: BundledFinding) -> bytes:
    """Serialize a finding as a line; integers beyond 53 bits stand as text."""
    content: dict[str, object] = {name: getattr(finding, name) for name in _FIELDS}
    for name in ("transaction_hash", "expected_digest", "envelope"):
        value = content[name]
        content[name] = hex0x(value) if isinstance(value, bytes) else None
    if finding.sequence_id is not None:
        content["sequence_id"] = str(finding.sequence_id)
    return line_bytes(content)


def parse_finding(data: bytes, subject: str) -> BundledFinding:
    """Read a line of the bundle's findings. Nothing is proved. Raises MalformedData."""
    fields = Record(parse_line(data, subject), subject, _FIELDS)
    return BundledFinding(
        finding_id=fields.text("finding_id", *_DIGEST),
        code=fields.text("code", *_WORD),
        severity=fields.text("severity", *_WORD),
        node_id=fields.integer("node_id", 2**32 - 1),
        originator_id=_integer(fields, "originator_id"),
        sequence_id=_sequence_id(fields),
        block_number=_integer(fields, "block_number"),
        log_index=_integer(fields, "log_index"),
        transaction_hash=_bytes(fields, "transaction_hash", HASH_LENGTH),
        expected_digest=_bytes(fields, "expected_digest", HASH_LENGTH),
        detail=None if fields.is_null("detail") else fields.text("detail"),
        envelope=_bytes(fields, "envelope"),
        unsigned_report_sha256=_digest(fields, "unsigned_report_sha256"),
        report_sha256=_digest(fields, "report_sha256"),
    )


def _integer(fields: Record, name: str) -> int | None:
    return None if fields.is_null(name) else fields.integer(name)


def _bytes(fields: Record, name: str, length: int | None = None) -> bytes | None:
    return None if fields.is_null(name) else fields.bytes(name, length)


def _digest(fields: Record, name: str) -> str | None:
    return None if fields.is_null(name) else fields.text(name, *_DIGEST)


def _sequence_id(fields: Record) -> int | None:
    if fields.is_null("sequence_id"):
        return None
    return int(fields.text("sequence_id", "0|[1-9][0-9]{0,19}", "an integer as text"))
