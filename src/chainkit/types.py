"""The values that travel between the layers: frozen, typed, with their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Final, NamedTuple, TypeAlias

HASH_LENGTH = 32
"""Bytes of a block hash, a transaction hash, a group id or an inbox id."""

ADDRESS_LENGTH = 20
"""Bytes of an account or contract address."""

BLOCKCHAIN_ORIGINATOR_ID = 0
"""Node id of the blockchain as an originator (XIP-49 §3.2.1)."""

NANOSECONDS_PER_SECOND = 1_000_000_000

Place: TypeAlias = tuple[int, int]
"""The place of an envelope in all logs: originator id and sequence id."""


class TopicKind(IntEnum):
    """First byte of a topic, which matches the kind of its payloads (XIP-49 §3.3.2)."""

    GROUP_MESSAGE = 0
    WELCOME = 1
    IDENTITY_UPDATE = 2
    KEY_PACKAGE = 3

    def topic(self, identifier: bytes) -> bytes:
        """Return the topic of ``identifier``: one kind byte, then the identifier."""
        return _KIND_BYTES[self] + identifier

    def matches(self, topic: bytes) -> bool:
        """Return whether a topic is of this kind."""
        return topic.startswith(_KIND_BYTES[self])


_KIND_BYTES: Final = tuple(bytes([kind]) for kind in TopicKind)


@dataclass(frozen=True, slots=True)
class BlockReference:
    """The block that a read of the chain is pinned to."""

    number: int
    """Height."""
    hash: bytes
    """32 bytes."""

    def __str__(self) -> str:
        """Height and the first bytes of the hash, for a person."""
        return f"{self.number} 0x{self.hash.hex()[:8]}…"


@dataclass(frozen=True, slots=True)
class BlockRoots:
    """A header's roots, which commit to other data (yellow paper, section 4.3), 32 bytes each."""

    transactions: bytes
    """Root of the trie over the block's transactions."""
    receipts: bytes
    """Root of the trie over the receipts, and with them the logs."""


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """The part of a block header that following a chain needs."""

    number: int
    """Height."""
    hash: bytes
    """32 bytes."""
    parent_hash: bytes
    """32 bytes."""
    timestamp: int
    """Seconds since 1970."""
    logs_bloom: bytes | None = field(default=None, compare=False, repr=False)
    """256 bytes: filter over the addresses and topics of the block's logs. None if not read."""
    roots: BlockRoots | None = field(default=None, compare=False, repr=False)
    """None unless the hash was computed from the header's fields: only then do the roots prove
    anything."""
    doubt: str = field(default="", compare=False, repr=False)
    """Why the fields do not prove the hash: what follows "the header of block 7 …". Empty where
    there are roots."""
    transaction_count: int = field(default=0, compare=False, repr=False)
    """How many transactions the endpoint listed; nothing proves that."""

    @property
    def reference(self) -> BlockReference:
        """The block as a reference."""
        return BlockReference(self.number, self.hash)


# A tuple: one is made for every log, and a frozen dataclass takes four times as long.
class Log(NamedTuple):
    """A log as an endpoint gave it, with its place in the chain."""

    address: bytes
    """20 bytes: the contract that emitted the log."""
    topics: tuple[bytes, ...]
    """32 bytes each; the first is the keccak256 of the event's signature."""
    data: bytes
    """ABI-encoded arguments."""
    block_number: int
    block_hash: bytes
    """32 bytes."""
    transaction_hash: bytes
    """32 bytes."""
    transaction_index: int
    log_index: int
    """Position within the block."""
    removed: bool = False
    """True if the endpoint itself reports that a reorg took it back."""

    @property
    def place(self) -> str:
        """The log's place, for error messages."""
        return f"block {self.block_number}, log {self.log_index}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a transaction, in a block that is part of the chain."""

    transaction_hash: bytes
    """32 bytes."""
    succeeded: bool
    """Status 1; a transaction that reverted has no logs."""
    to: bytes | None
    """20 bytes: the address that the transaction itself called; None if it deployed a contract."""
    block: BlockHeader
    logs: tuple[Log, ...]

    @property
    def place(self) -> str:
        """The transaction's place, for error messages."""
        return f"transaction 0x{self.transaction_hash.hex()} in block {self.block.reference}"


# A tuple, like the log: an event is made twice for every payload.
class PayloadEvent(NamedTuple):
    """An event that becomes a node-0 envelope: MessageSent or IdentityUpdateCreated, by its kind.

    ``MessageSent(bytes32 groupId, bytes message, uint64 sequenceId)`` (XIP-49 §2.2.2),
    ``IdentityUpdateCreated(bytes32 inboxId, bytes update, uint64 sequenceId)`` (§2.2.4).
    """

    kind: TopicKind
    """Kind of topic the payload belongs to."""
    identifier: bytes
    """The topic after its kind byte: group id or inbox id, 32 bytes, or 16."""
    payload: bytes
    """The bytes that were posted: a serialized ClientEnvelope, if the sender was honest."""
    sequence_id: int
    """From 1, growing by 1 with each payload of the originator."""
    originator_id: int = BLOCKCHAIN_ORIGINATOR_ID
    """Other than 0 only where a contract counts for itself."""


message_sent: Final = partial(PayloadEvent, TopicKind.GROUP_MESSAGE)
"""Makes a PayloadEvent of what MessageSent holds."""

identity_update_created: Final = partial(PayloadEvent, TopicKind.IDENTITY_UPDATE)
"""Makes a PayloadEvent of what IdentityUpdateCreated holds."""


@dataclass(frozen=True, slots=True)
class Node:
    """An entry of the node registry (XIP-49 §3.1.1), also the payload of ``NodeUpdated``."""

    node_id: int
    """100, 200, …"""
    signing_key: bytes
    """65 bytes: uncompressed secp256k1 point, 0x04 ‖ X ‖ Y."""
    http_address: str
    is_enabled: bool
    """The prototype calls this field ``isHealthy``; §3.1.1 calls it status."""


def status_name(is_enabled: bool) -> str:
    """Return ``enabled`` or ``disabled`` (XIP-49 §3.1.1)."""
    return "enabled" if is_enabled else "disabled"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The highest sequence id seen per originator (XIP-49 §3.2.2); a missing one is 0."""

    sequence_ids: Mapping[int, int] = field(default_factory=dict)

    def __getitem__(self, originator_id: int) -> int:
        """Highest sequence id seen of an originator."""
        return self.sequence_ids.get(originator_id, 0)
