"""The values that travel between the gateway's parts."""

from __future__ import annotations

from dataclasses import dataclass

from chainkit.types import TopicKind


@dataclass(frozen=True, slots=True)
class Publication:
    """One ClientEnvelope on its way, with what decides where it goes."""

    digest: bytes
    """32 bytes: keccak256 of ``client_envelope``, by which it is published once."""
    client_envelope: bytes
    """As it came from the client."""
    kind: TopicKind
    """The topic's."""
    identifier: bytes
    """The topic after its kind byte: of a group, today's clients' have 16 bytes."""
    is_for_chain: bool
    """Commits, proposals and identity updates need the total order (XIP-49 §2)."""

    @property
    def topic(self) -> bytes:
        """Kind byte and identifier (XIP-49 §3.3.2)."""
        return self.kind.topic(self.identifier)
