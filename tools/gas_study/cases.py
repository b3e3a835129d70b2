"""The measured cases: the ways to publish a message, the sizes, and the published figures."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PUBLISHED_SIZES: Final = (2_048, 51_200)
"""The sizes "2kb" and "50kb" of XIP-49 §2.1.3, in bytes: the figures come out with these."""

SIZES: Final = (100, 512, 2_000, 2_048, 10_000, 50_000, 51_200, 100_000)
"""Sizes of the payloads, in bytes."""

HARDFORKS: Final = ("cancun", "osaka")
"""The rules of 2024, when XIP-49 was written, and the newest that anvil 1.7.1 runs. Its ``bpo1``
and ``bpo2`` come later, but change blobs only."""

FLOOR_HARDFORKS: Final = frozenset({"osaka"})
"""Hardforks with EIP-7623's floor price for calldata."""

PUBLISHED_GAS_PER_SECOND: Final = 7_000_000
"""Gas per second of Arbitrum One in XIP-49 §2.1.3, which gives messages per second only: all eight
of them are this number divided by the gas and rounded down."""

GROUP_ID: Final = bytes(range(0x21, 0x41))
"""The group or inbox of every message; no byte of it is zero."""

_SEED: Final = 49


@dataclass(frozen=True)
class MessageCase:
    """One way to publish a message."""

    name: str
    """As in the rows' ``case``."""
    title: str
    """As in the tables."""
    contract: str
    """Name of the contract, or of the implementation behind the proxy."""
    first: bool = False
    """Whether the counter's first write is measured (a fresh slot), or a later one."""
    hashed: bool = False
    """Whether the message's hash, 32 bytes, is sent instead of the message."""
    function: str = "addMessage(bytes32,bytes)"
    published: Mapping[int, int] = field(default_factory=dict)
    """XIP-49's figures in gas, by size in bytes."""
    published_per_second: Mapping[int, int] = field(default_factory=dict)
    """XIP-49's messages per second on Arbitrum One, by size in bytes."""


def _published(small: int, large: int) -> Mapping[int, int]:
    # Both readings of "2kb" and "50kb": by the one the figures come out, by the other a thousand
    # bytes are meant, as elsewhere.
    return {2_000: small, 2_048: small, 50_000: large, 51_200: large}


PUBLISHED_CASES: Final = (
    MessageCase(
        "complete-event",
        "complete message, event",
        "CompleteMessageWithEvent",
        first=True,
        published=_published(96_013, 1_287_619),
        published_per_second=_published(72, 5),
    ),
    MessageCase(
        "complete",
        "complete message, no event",
        "CompleteMessage",
        first=True,
        published=_published(77_118, 861_246),
        published_per_second=_published(90, 8),
    ),
    MessageCase(
        "hash",
        "hash, no event",
        "MessageHash",
        first=True,
        hashed=True,
        published=_published(44_946, 44_946),
        published_per_second=_published(155, 155),
    ),
    MessageCase(
        "hash-event",
        "hash, event",
        "MessageHashWithEvent",
        first=True,
        hashed=True,
        published=_published(46_735, 46_735),
        published_per_second=_published(149, 149),
    ),
)
"""XIP-49 §2.1.3's four columns, in another order: the dearest first."""

STEADY_CASES: Final = (
    MessageCase(
        "complete-event-later", "complete message, event, later", "CompleteMessageWithEvent"
    ),
    MessageCase(
        "complete-event-proxy",
        "complete message, event, later, behind a proxy",
        "CompleteMessageWithEventProxy",
    ),
)
"""The published contract after its first message, without and with the proxy that ours has."""

OUR_CASES: Final = (
    MessageCase("own-counter", "`addMessage` with a counter of its own", "CountedGroupMessages"),
    MessageCase("add-message", "`addMessage`", "GroupMessages"),
    MessageCase(
        "add-identity-update",
        "`addIdentityUpdate`",
        "IdentityUpdates",
        function="addIdentityUpdate(bytes32,bytes)",
    ),
    MessageCase(
        "add-message-first", "`addMessage`, the sequence's first id", "GroupMessages", first=True
    ),
)

STORED_CASES: Final = (
    MessageCase("stored-hash", "hash in storage", "StoredHash", hashed=True),
    MessageCase("stored-message", "message in storage (SSTORE)", "StoredMessage"),
    MessageCase("stored-code", "message as code of contracts", "StoredCode"),
)
"""The ways to store in the sense of the EVM."""

MESSAGE_CASES: Final = (*PUBLISHED_CASES, *STEADY_CASES, *OUR_CASES, *STORED_CASES)


def random_payload(size: int) -> bytes:
    """Return ``size`` random bytes without zeros: the most expensive calldata."""
    generator = random.Random(_SEED * 1_000_000 + size)
    return bytes(generator.randint(1, 255) for _ in range(size))


def counting_payload(size: int) -> bytes:
    """Return the bytes 0, 1, … 255, 0, …, with which XIP-49's figures come out."""
    return bytes(index % 256 for index in range(size))
