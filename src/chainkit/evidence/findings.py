"""Findings of an audit in a bundle: each id follows from the content of its finding.

A finding's severity and words are not in the bundle: anybody who writes a bundle could choose them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from chainkit.documents.canonical import Record, line_bytes, parse_line
from chainkit.errors import MalformedData
from chainkit.text.hexadecimal import hex0x
from chainkit.types import HASH_LENGTH

_FIELDS: Final = (
    *("code", "envelope", "event", "expected_digest", "finding_id", "node_id", "originator_id"),
    *("report_sha256", "sequence_id", "served_digest", "transaction_hash"),
    "unsigned_report_sha256",
)
_EVENT_FIELDS: Final = ("block_number", "detail", "log_index")
_DIGEST: Final = ("[0-9a-f]{64}", "64 hex digits")
_WORD: Final = ("[A-Za-z_]{1,40}", "a word")


@dataclass(frozen=True, slots=True)
class FindingEvent:
    """The place and words of a finding about no sequence: both are part of the finding's id."""

    block_number: int | None
    log_index: int | None
    detail: str | None
    """Printable text."""


@dataclass(frozen=True, slots=True)
class BundledFinding:
    """One finding about the accused node, by the audit."""

    finding_id: str
    """64 hex digits, the id that the audit gave."""
    code: str
    """The auditor's code for the finding."""
    node_id: int
    originator_id: int | None
    sequence_id: int | None
    """A uint64."""
    transaction_hash: bytes | None
    """32 bytes: the transaction of the chain's log for this sequence, if there is one."""
    expected_digest: bytes | None
    """32 bytes: what a BlockchainProof of that log's envelope signs."""
    served_digest: bytes | None
    """32 bytes: what the BlockchainProof of the served envelope signs; None where none is read."""
    event: FindingEvent | None
    """None where there is a sequence."""
    envelope: bytes | None
    """The OriginatorEnvelope as served; None where nothing was."""
    unsigned_report_sha256: str | None = None
    """Digest of the finding's UnsignedMisbehaviorReport, in hex; None where it proves nothing
    itself."""
    report_sha256: str | None = None
    """Digest of the signed MisbehaviorReport, in hex; None where nobody signed."""

    @property
    def name(self) -> str:
        """The finding in an error message."""
        return f"finding {self.finding_id[:16]}"

    def expected_id(self) -> str:
        """Return the id that follows from the finding's content."""
        event = self.event
        return finding_id(
            self.code,
            self.node_id,
            self.originator_id,
            self.sequence_id,
            self.expected_digest,
            self.served_digest,
            self.envelope,
            None if event is None else (event.block_number, event.log_index, event.detail),
        )


def finding_id(
    code: str,
    node_id: int | None,
    originator_id: int | None,
    sequence_id: int | None,
    expected_digest: bytes | None = None,
    served_digest: bytes | None = None,
    envelope: bytes | None = None,
    event: tuple[int | None, int | None, str | None] | None = None,
) -> str:
    """Return 64 hex digits that name a finding: the sha256 of its content.

    The canonical form is a JSON list without spaces; integers beyond 53 bits are text. ``event`` is
    block, log index and detail of a finding about another event than a payload.
    """
    parts = [
        code,
        node_id,
        originator_id,
        None if sequence_id is None else str(sequence_id),
        _hex(expected_digest),
        _hex(served_digest),
        hashlib.sha256(envelope).hexdigest() if envelope is not None else None,
        *(event or ()),
    ]
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def finding_line(finding: BundledFinding) -> bytes:
    """Serialize a finding as a line; integers beyond 53 bits are text."""
    content: dict[str, object] = {name: getattr(finding, name) for name in _FIELDS}
    event = finding.event
    content["event"] = event and {name: getattr(event, name) for name in _EVENT_FIELDS}
    for name in ("transaction_hash", "expected_digest", "served_digest", "envelope"):
        value = content[name]
        content[name] = hex0x(value) if isinstance(value, bytes) else None
    if finding.sequence_id is not None:
        content["sequence_id"] = str(finding.sequence_id)
    return line_bytes(content)


def parse_finding(data: bytes, subject: str) -> BundledFinding:
    """Read a line of the bundle's findings. Only the id is checked.

    Raises MalformedData for other content, or an id that does not follow from it.
    """
    fields = Record(parse_line(data, subject), subject, _FIELDS)
    finding = BundledFinding(
        finding_id=fields.text("finding_id", *_DIGEST),
        code=fields.text("code", *_WORD),
        node_id=fields.integer("node_id", 2**32 - 1),
        originator_id=_integer(fields, "originator_id"),
        sequence_id=_sequence_id(fields),
        transaction_hash=_bytes(fields, "transaction_hash", HASH_LENGTH),
        expected_digest=_bytes(fields, "expected_digest", HASH_LENGTH),
        served_digest=_bytes(fields, "served_digest", HASH_LENGTH),
        event=_event(fields),
        envelope=_bytes(fields, "envelope"),
        unsigned_report_sha256=_digest(fields, "unsigned_report_sha256"),
        report_sha256=_digest(fields, "report_sha256"),
    )
    if (finding.event is None) == (finding.sequence_id is None):
        raise MalformedData(finding.name, "either a sequence or an event", "both or neither")
    if finding.finding_id != (expected := finding.expected_id()):
        raise MalformedData(finding.name, f"the id of what it says, {expected[:16]}", "another")
    return finding


def _event(fields: Record) -> FindingEvent | None:
    if fields.is_null("event"):
        return None
    event = fields.record("event", *_EVENT_FIELDS)
    detail = None if event.is_null("detail") else event.text("detail")
    return FindingEvent(_integer(event, "block_number"), _integer(event, "log_index"), detail)


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
