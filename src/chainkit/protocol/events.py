"""Typed events from raw logs of the contracts (XIP-49 §2.2).

A payload event is decoded for every log that an indexer follows, so this module decodes the data
itself, in a few steps instead of a general decoder's hundreds. Only the one encoding that a
Solidity contract emits is taken: other offsets, gaps or bytes behind the end may decode to the same
arguments, but no contract of ours can have emitted them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from chainkit.errors import MalformedLog
from chainkit.protocol.payload_contract import EVENT_NAMES, EventLayout, PayloadContract
from chainkit.signatures import keccak256
from chainkit.types import (
    ADDRESS_LENGTH,
    Log,
    Node,
    PayloadEvent,
    TopicKind,
)

_WORD: Final = 32
_ZEROS: Final = bytes(_WORD)
_UINT64_MAXIMUM: Final = 2**64 - 1
_SHOWN_LENGTH: Final = 4 * _WORD
"""Bytes of the data that an error shows: the words before the payload."""

_OWN_CONTRACTS: Final = tuple(
    # Only the form of the events is used: logs contain the address of the emitting contract.
    PayloadContract(name, bytes(ADDRESS_LENGTH), 0, kind)
    for name, kind in (
        ("GroupMessages", TopicKind.GROUP_MESSAGE),
        ("IdentityUpdates", TopicKind.IDENTITY_UPDATE),
    )
)
_OWN_BY_TOPIC: Final[Mapping[bytes, PayloadContract]] = {own.topic: own for own in _OWN_CONTRACTS}

MESSAGE_SENT_TOPIC: Final = _OWN_CONTRACTS[0].topic
IDENTITY_UPDATE_CREATED_TOPIC: Final = _OWN_CONTRACTS[1].topic
NODE_UPDATED_TOPIC: Final = keccak256(b"NodeUpdated(uint256,(bytes,string,bool))")

_NODE_TYPES: Final = ("uint256", "(bytes,bytes,bool)")
"""The HTTP address as bytes, which are encoded alike: a stranger's string may not be UTF-8, and
then its bytes are kept as surrogates. ``interface.printable`` shows them."""


def decode_payload_event(log: Log, contract: PayloadContract | None = None) -> PayloadEvent:
    """Return the MessageSent or IdentityUpdateCreated that a log of a contract holds.

    Without ``contract`` the log is of one of our own two, chosen by the topic. Raises MalformedLog
    if the log is another event, or data that the contract cannot have emitted.
    """
    contract = contract or _own_contract(log)
    layout = contract.layout
    if len(log.topics) != layout.topic_count:
        raise MalformedLog("log", _topics(layout.topic_count), len(log.topics), log.place)
    if log.topics[0] != contract.topic:
        raise _another_event(log, EVENT_NAMES[contract.kind])
    identifier, payload, sequence_id = _payload_arguments(log, layout)
    return PayloadEvent(contract.kind, identifier, payload, sequence_id, contract.originator_id)


def decode_node_updated(log: Log) -> Node:
    """Return the registry entry of a NodeUpdated log (XIP-49 §2.2.1).

    Raises MalformedLog if the log is another event, or has data that the registry cannot have
    emitted.
    """
    if _only_topic(log) != NODE_UPDATED_TOPIC:
        raise _another_event(log, "NodeUpdated")
    try:
        arguments = decode(_NODE_TYPES, log.data, strict=True)
    except (DecodingError, OverflowError) as error:
        raise MalformedLog("log data", f"({','.join(_NODE_TYPES)})", error, log.place) from error
    node_id, (signing_key, http_address, is_healthy) = arguments
    return Node(node_id, signing_key, http_address.decode(errors="surrogateescape"), is_healthy)


def _payload_arguments(log: Log, layout: EventLayout) -> tuple[bytes, bytes, int]:
    # The data holds a word each for identifier, place of the payload and sequence id, but for what
    # is indexed; then the payload's length, and the payload padded to whole words.
    topics, data, identifier_length = log.topics, log.data, layout.identifier_length
    offset_at = 0 if layout.is_identifier_indexed else _WORD
    length_at = offset_at + (_WORD if layout.is_sequence_indexed else 2 * _WORD)
    identifier = topics[1] if layout.is_identifier_indexed else data[:_WORD]
    sequence = topics[-1] if layout.is_sequence_indexed else data[length_at - _WORD : length_at]
    start = length_at + _WORD
    length = int.from_bytes(data[length_at:start], "big")
    end = start + length
    padding = -length % _WORD
    sequence_id = int.from_bytes(sequence, "big")
    if (
        len(data) != end + padding
        or data[end:] != _ZEROS[:padding]
        or int.from_bytes(data[offset_at : offset_at + _WORD], "big") != length_at
        or len(identifier) != _WORD
        or identifier[identifier_length:] != _ZEROS[identifier_length:]
        or len(sequence) != _WORD
        or sequence_id > _UINT64_MAXIMUM
    ):
        got = f"topics {_shown(b''.join(topics[1:]))}, data {_shown(data)}"
        raise MalformedLog("log data", layout, got, log.place)
    return identifier[:identifier_length], data[start:end], sequence_id


def _own_contract(log: Log) -> PayloadContract:
    own = _OWN_BY_TOPIC.get(_only_topic(log))
    if own is None:
        raise _another_event(log, " or ".join(EVENT_NAMES.values()))
    return own


def _only_topic(log: Log) -> bytes:
    if len(log.topics) != 1:
        raise MalformedLog("log", _topics(1), len(log.topics), log.place)
    return log.topics[0]


def _topics(count: int) -> str:
    return "1 topic (no indexed argument)" if count == 1 else f"{count} topics"


def _another_event(log: Log, expected: str) -> MalformedLog:
    return MalformedLog("log", expected, f"topic 0x{log.topics[0].hex()}", log.place)


def _shown(data: bytes) -> str:
    rest = f"… ({len(data)} bytes)" if len(data) > _SHOWN_LENGTH else ""
    return f"0x{data[:_SHOWN_LENGTH].hex()}{rest}"
