"""The values that travel between the gateway's parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chainkit.types import BlockReference, TopicKind


@dataclass(frozen=True, slots=True)
class Publication:
    """One ClientEnvelope to publish, with the facts that decide its route."""

    digest: bytes
    """32 bytes: keccak256 of ``client_envelope``; one digest is published once."""
    client_envelope: bytes
    """The bytes as the client sent them."""
    kind: TopicKind
    """The topic's kind."""
    identifier: bytes
    """The topic after its kind byte; today's clients use 16 bytes for a group."""
    is_for_chain: bool
    """Commits, proposals and identity updates need the total order (XIP-49 §2)."""
    client: str
    """The sending client: its token's name, else its address."""

    @property
    def topic(self) -> bytes:
        """Kind byte and identifier (XIP-49 §3.3.2)."""
        return self.kind.topic(self.identifier)


@dataclass(frozen=True, slots=True)
class Settlement:
    """A transaction's receipt, as far as money goes."""

    block: BlockReference
    succeeded: bool
    """Whether the status is 1; a reverted transaction costs as well."""
    gas_used: int
    gas_price: int
    """Wei per gas: the effective gas price (EIP-1559)."""

    @property
    def cost(self) -> int:
        """Wei."""
        return self.gas_used * self.gas_price


@dataclass(frozen=True, slots=True)
class Sent:
    """A signed transaction: journalled, then sent."""

    hash: bytes
    """32 bytes."""
    digest: bytes
    """32 bytes: the publication's digest."""
    nonce: int
    raw: bytes
    """EIP-2718 envelope."""
    sent_ns: int
    """Nanoseconds since 1970."""
    gas: int
    """Gas limit."""
    tip: int
    """Wei per gas: maxPriorityFeePerGas."""
    maximum_fee: int
    """Wei per gas: maxFeePerGas."""
    settlement: Settlement | None = None
    """None while no receipt is known."""

    @property
    def most_cost(self) -> int:
        """Wei: the most that the transaction may cost."""
        return self.gas * self.maximum_fee


class Publishes(Protocol):
    """Publishes, as ``Publisher`` does."""

    async def publish(self, publication: Publication) -> bytes:
        """Return the OriginatorEnvelope."""
        ...
