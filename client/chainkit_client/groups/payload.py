"""Payloads that groups apply, and the outcome of each payload."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from chainkit.protocol.authenticated_data import aad_hash
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import keccak256
from chainkit.types import Place, TopicKind
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage.schema import PayloadStatus


@dataclass(frozen=True, slots=True)
class Payload:
    """A verified payload of a group's topic, the next one in the causal order."""

    group_id: bytes
    originator_id: int
    sequence_id: int
    originator_ns: int
    """Nanoseconds since 1970: the originator's clock, of the chain by ADR 45."""
    message: bytes = field(repr=False)
    """An MLSMessage."""
    aad_hash: bytes
    """keccak256 of the AuthenticatedData around it."""
    warning: str = ""
    """Words for people, such as a dependency that nobody has."""
    expires_at: int | None = None
    """Seconds since 1970, after which nodes may delete the payload; None for never."""

    @classmethod
    def of(cls, envelope: VerifiedEnvelope, warning: str = "") -> Self:
        """Return the payload of an envelope of a group's topic."""
        client = envelope.client
        parsed = envelopes_pb2.ClientEnvelope.FromString(client.client_envelope)
        return cls(
            client.identifier,
            envelope.originator_id,
            envelope.sequence_id,
            envelope.originator_ns,
            parsed.group_message.v1.data,
            aad_hash(client.client_envelope),
            warning,
            envelope.expires_at,
        )

    @property
    def topic(self) -> bytes:
        """Kind byte and group id."""
        return group_topic(self.group_id)

    @property
    def place(self) -> Place:
        """Originator and sequence id."""
        return self.originator_id, self.sequence_id

    @property
    def payload_hash(self) -> bytes:
        """keccak256 of the MLSMessage: identifies an own payload."""
        return keccak256(self.message)


@dataclass(frozen=True, slots=True)
class Fork:
    """A member has another history of the group than this installation."""

    epoch: int
    """The first known epoch in which the two histories differ."""
    commit: Place | None
    """The commit that made this epoch here; None where the commit was not published."""
    ours: bytes
    """Authenticator."""
    theirs: bytes
    member: bytes
    """32 bytes: the installation that has the other history."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one payload."""

    place: Place
    status: PayloadStatus
    reason: str = ""
    """Words for people, where the payload did not succeed."""
    is_repeated: bool = False
    """Whether the payload was applied before, and nothing was done."""
    message_id: bytes | None = None
    """The row of an application message."""
    epoch: int | None = None
    """The epoch that a commit made."""
    fork: Fork | None = None


def group_topic(group_id: bytes) -> bytes:
    """Return the topic of a group's messages."""
    return TopicKind.GROUP_MESSAGE.topic(group_id)
