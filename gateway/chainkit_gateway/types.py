"""The values that travel between the gateway's parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chainkit.types import BlockReference, TopicKind


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
    client: str
    """The name of the client that sent it: its token's, else its address."""

    @property
    def topic(self) -> bytes:
        """Kind byte and identifier (XIP-49 §3.3.2)."""
        return self.kind.topic(self.identifier)


@dataclass(frozen=True, slots=True)
class Settlement:
    """A transaction's receipt, as far as money goes."""

    block: BlockReference
    succeeded: bool
    """Status 1: a transaction that reverted costs as well."""
    gas_used: int
    gas_price: int
    """Wei per gas: the effective one (EIP-1559)."""

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
    """32 bytes: its publication's."""
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
        """Wei: the most that it may cost."""
        return self.gas * self.maximum_fee


class Publishes(Protocol):
    """Publishes, as ``Publisher`` does."""

    async def publish(self, publication: Publication) -> bytes:
        """Return the OriginatorEnvelope."""
        ...
