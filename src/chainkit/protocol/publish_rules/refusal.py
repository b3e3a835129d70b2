"""Why a node does not take a payload: one reason for each rule (XIP-49 §3.3.4)."""

from __future__ import annotations

from enum import StrEnum

from chainkit.errors import ChainkitError, MalformedData
from chainkit.protocol.strict import Deviation, NotStrict
from chainkit.types import Cursor


class RefusalReason(StrEnum):
    """The rule that a publish breaks."""

    NOT_A_PAYER_ENVELOPE = "not a PayerEnvelope"
    INVALID_PAYER_SIGNATURE = "payer signature recovers to nobody"
    INVALID_RETENTION = "retention is out of bounds"
    FORGED_RETENTION = "the payer did not sign the retention"
    TOO_LARGE = "an envelope in a frame has to fit into 4 MiB"
    NOT_A_CLIENT_ENVELOPE = "not a ClientEnvelope"
    NOT_STRICT = "readers differ on these bytes"
    """Our own rule (ADR 54): XIP-49 does not prescribe the form of a message."""
    WRONG_TOPIC = "topic does not match the payload"
    INVALID_PAYLOAD = "payload breaks the rules of its kind"
    NO_TARGET = "no target originator"
    TARGETS_DIFFER = "payer and client name different originators"
    ANOTHER_ORIGINATOR = "target originator is another node"
    BELONGS_TO_CHAIN = "payload belongs to the chain"
    DEPENDENCY_AHEAD = "payload depends on what the node has not seen"
    WIDE_CURSOR = "cursor has more entries than the network has originators"
    """Our own rule: XIP-49 lets a cursor name anybody, also with 0."""
    BEHIND_CHAIN = "payload was made before the topic's latest commit"

    @property
    def is_conflict(self) -> bool:
        """True where XIP-49 asks for status 409 with the node's cursor: another try may succeed."""
        return self in (RefusalReason.DEPENDENCY_AHEAD, RefusalReason.BEHIND_CHAIN)


class PublishRefused(ChainkitError):
    """A node does not take a payload."""

    reason: RefusalReason
    cursor: Cursor | None = None
    """The node's, where the reason is a conflict."""


def refused(
    reason: RefusalReason, subject: str, expected: object, got: object, cursor: Cursor | None = None
) -> PublishRefused:
    """Return a refusal for a reason."""
    error = PublishRefused(subject, expected, got)
    error.reason = reason
    error.cursor = cursor
    return error


def refused_as_unread(reason: RefusalReason, error: NotStrict) -> PublishRefused:
    """Return a refusal of bytes that no reader reads, for a reason, or that readers differ on."""
    is_unread = error.deviation is Deviation.BROKEN
    return refused_because(reason if is_unread else RefusalReason.NOT_STRICT, error)


def refused_because(reason: RefusalReason, error: MalformedData) -> PublishRefused:
    """Return a refusal with the content of an error about the bytes."""
    refusal = PublishRefused(error.subject, error.expected, error.got, error.place)
    refusal.reason = reason
    return refusal
