"""Posting a payload to a followed contract: the calldata, and the contract's refusal in words.

Our contracts and the network's public broadcasters take payloads by functions of one name and
form; only the length of a group's id differs (XIP-49 §2.2.2, §2.2.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eth_abi.abi import encode

from chainkit.contracts.interface import shipped_interface
from chainkit.errors import MalformedData, RefusedRequest
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.signatures import keccak256
from chainkit.types import TopicKind

_FUNCTIONS: Final = {
    TopicKind.GROUP_MESSAGE: "addMessage",
    TopicKind.IDENTITY_UPDATE: "addIdentityUpdate",
}
_INTERFACES: Final = {
    TopicKind.GROUP_MESSAGE: ("GroupMessages", "PayloadBroadcaster"),
    TopicKind.IDENTITY_UPDATE: ("IdentityUpdates", "PayloadBroadcaster"),
}
"""Those whose errors a contract of a kind may revert with: ours, and the public broadcasters'."""
_SIZE_ERRORS: Final = frozenset({"PayloadSizeOutOfBounds", "InvalidPayloadSize"})


@dataclass(frozen=True, slots=True)
class PostingRefusal:
    """A contract's reason not to take a payload."""

    words: str
    """The contract's error with its arguments, or the revert data in hex."""
    is_for_good: bool
    """Whether the same payload is refused each time, because it is too long or too short."""


def posting_signature(contract: PayloadContract) -> str:
    """Return the function that posts a payload, as ``name(type,…)``."""
    return f"{_FUNCTIONS[contract.kind]}(bytes{contract.layout.identifier_length},bytes)"


def posting_calldata(contract: PayloadContract, identifier: bytes, payload: bytes) -> bytes:
    """Return the calldata that posts a payload for a group or an inbox.

    A shorter identifier is padded, as the topic may be (ADR 24). Raises MalformedData for one that
    is longer than the contract's.
    """
    length = contract.layout.identifier_length
    if len(identifier) > length:
        subject, got = f"identifier for {contract.name}", f"{len(identifier)} bytes"
        raise MalformedData(subject, f"at most {length} bytes", got)
    types = (f"bytes{length}", "bytes")
    selector = keccak256(posting_signature(contract).encode())[:4]
    return selector + encode(types, (identifier.ljust(length, b"\0"), payload))


def posting_refusal(contract: PayloadContract, error: RefusedRequest) -> PostingRefusal:
    """Return the meaning of a contract's revert."""
    for name in _INTERFACES[contract.kind]:
        interface = shipped_interface(name)
        found = interface.revert_name(error)
        if found is not None:
            return PostingRefusal(interface.revert_words(error), found in _SIZE_ERRORS)
    return PostingRefusal(interface.revert_words(error), is_for_good=False)
