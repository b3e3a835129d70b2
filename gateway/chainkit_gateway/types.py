"""The values that travel between the gateway's parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, BlockReference, Place, TopicKind


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
    retention_days: int | None = None
    """Days that the payer asks the originator to keep it; None where the chain keeps it."""

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
    sequence_id: int | None = None
    """The id that the chain gave the payload; None of a reverted transaction."""

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
    """EIP-2718 envelope; empty once a transaction of the nonce was mined long ago."""
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


@dataclass(frozen=True, slots=True)
class Mined:
    """The place of a payload on the chain."""

    transaction_hash: bytes
    """32 bytes."""
    sequence_id: int
    """Sequence id of the contract's originator."""
    block: BlockReference
    envelope: bytes
    """The OriginatorEnvelope as nodes write it, without a node's signature."""
    originator_id: int = BLOCKCHAIN_ORIGINATOR_ID
    """Originator of the contract that took the payload."""

    @property
    def place(self) -> Place:
        """Originator and sequence id."""
        return self.originator_id, self.sequence_id


@dataclass(frozen=True, slots=True)
class Published:
    """A published envelope."""

    envelope: bytes
    """The OriginatorEnvelope."""
    is_served: bool = True
    """False for a payload in a block that no node serves yet: no node signed the envelope."""


class Node(Protocol):
    """A node's methods, as ``NodeConnection`` has them."""

    @property
    def node_id(self) -> int:
        """The node's id in the registry."""
        ...

    async def publish(self, payer_envelope: bytes, seconds: float) -> bytes:
        """Return the OriginatorEnvelope."""
        ...

    async def behind(
        self, topic: bytes, cursor: Mapping[int, int], seconds: float
    ) -> Sequence[bytes]:
        """Return a page of a topic."""
        ...

    def has_signed(self, envelope: bytes) -> bool:
        """Return whether the node's registered key signed an envelope."""
        ...

    async def indexed(
        self, topic: bytes, place: Place, transaction_hash: bytes, seconds: float
    ) -> bytes:
        """Return a payload of the chain once the node serves it."""
        ...


class NodeList(Protocol):
    """The nodes, as ``Nodes`` knows them."""

    @property
    def urls(self) -> Mapping[int, str]:
        """The URLs by node id."""
        ...

    def for_topic(self, topic: bytes) -> Sequence[Node]:
        """Return the nodes in a topic's order of preference."""
        ...

    def node(self, node_id: int) -> Node | None:
        """Return a node by id, or None."""
        ...

    def __iter__(self) -> Iterator[Node]:
        """Yield all nodes."""
        ...


class Publishes(Protocol):
    """Publishes in two steps, as ``Publisher`` does. A deadline is the event loop's time."""

    async def place(self, publication: Publication, deadline: float) -> Mined | Published:
        """Publish; return the payload's place in the order of its topic, or the answer."""
        ...

    async def answer(
        self, publication: Publication, place: Mined | Published, deadline: float
    ) -> Published:
        """Return the answer of a payload that has its place."""
        ...
