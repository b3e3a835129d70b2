"""Contracts that emit payloads, and the one event of each (XIP-49 §2.2.2, §2.2.4).

Other deployments index their events' arguments, or name groups by 16 bytes: a layout describes
this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from chainkit.signatures import keccak256
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, HASH_LENGTH, TopicKind

EVENT_NAMES: Final = {
    TopicKind.GROUP_MESSAGE: "MessageSent",
    TopicKind.IDENTITY_UPDATE: "IdentityUpdateCreated",
}
"""The one payload event of a contract, by the kind of its payloads (XIP-49 §2.2.2, §2.2.4)."""


@dataclass(frozen=True, slots=True)
class EventLayout:
    """Where a payload event holds its arguments ``(identifier, payload, sequenceId)``."""

    identifier_length: int = HASH_LENGTH
    """Bytes of a group id or inbox id: 32, or 16 in XMTP's newer contracts."""
    is_identifier_indexed: bool = False
    is_sequence_indexed: bool = False

    @property
    def topic_count(self) -> int:
        """The signature's, and one for each indexed argument."""
        return 1 + self.is_identifier_indexed + self.is_sequence_indexed

    def topic(self, kind: TopicKind) -> bytes:
        """Return the first topic of the event: keccak256 of its signature."""
        name = EVENT_NAMES[kind]
        return keccak256(f"{name}(bytes{self.identifier_length},bytes,uint64)".encode())

    def __str__(self) -> str:
        """Types of the arguments, as Solidity declares them."""
        identifier = " indexed" if self.is_identifier_indexed else ""
        sequence = " indexed" if self.is_sequence_indexed else ""
        return f"(bytes{self.identifier_length}{identifier},bytes,uint64{sequence})"


@dataclass(frozen=True, slots=True)
class PayloadContract:
    """A contract whose events become envelopes of one originator."""

    name: str
    address: bytes
    """20 bytes."""
    block: int
    """Height at which the contract was deployed: there is no log below."""
    kind: TopicKind
    """The kind of all the contract's payloads."""
    originator_id: int = BLOCKCHAIN_ORIGINATOR_ID
    layout: EventLayout = EventLayout()
    is_sparse: bool = False
    """Whether its sequence ids have gaps and come in any order (ADR 50), instead of counting up."""
    topic: bytes = field(init=False, repr=False, compare=False)
    """First topic of the contract's payload event: hashed once, compared with that of every log."""

    def __post_init__(self) -> None:
        """Hash the signature of its event."""
        object.__setattr__(self, "topic", self.layout.topic(self.kind))


def sparse_originators(contracts: Iterable[PayloadContract]) -> frozenset[int]:
    """Return the originators whose contracts give out sparse sequence ids (ADR 50)."""
    return frozenset(contract.originator_id for contract in contracts if contract.is_sparse)
