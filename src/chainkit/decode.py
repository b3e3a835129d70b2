"""Typed events from raw logs of the contracts (XIP-49 §2.2).

The arguments are unindexed, as the XIP declares them, so everything stands in ``data``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from chainkit.deployment import DeploymentRecord
from chainkit.errors import MalformedLog
from chainkit.signatures import keccak256
from chainkit.types import IdentityUpdateCreated, Log, MessageSent, Node, PayloadEvent

MESSAGE_SENT_TOPIC: Final = keccak256(b"MessageSent(bytes32,bytes,uint64)")
IDENTITY_UPDATE_CREATED_TOPIC: Final = keccak256(b"IdentityUpdateCreated(bytes32,bytes,uint64)")
NODE_UPDATED_TOPIC: Final = keccak256(b"NodeUpdated(uint256,(bytes,string,bool))")

_PAYLOAD_TYPES: Final = ("bytes32", "bytes", "uint64")
_NODE_TYPES: Final = ("uint256", "(bytes,bytes,bool)")
"""The HTTP address as bytes, which are encoded alike: a stranger's string may not be UTF-8, and
then its bytes are kept as surrogates. ``interface.printable`` shows them."""


def payload_topics(record: DeploymentRecord) -> dict[bytes, bytes]:
    """Return the address of each payload contract with the topic of its one payload event."""
    return {
        record.group_messages.address: MESSAGE_SENT_TOPIC,
        record.identity_updates.address: IDENTITY_UPDATE_CREATED_TOPIC,
    }


def decode_payload_event(log: Log) -> PayloadEvent:
    """Return the MessageSent or IdentityUpdateCreated that a log holds.

    Raises MalformedLog if it holds neither, or data that the contracts cannot have emitted.
    """
    topic = _only_topic(log)
    if topic == MESSAGE_SENT_TOPIC:
        return MessageSent(*_arguments(log, _PAYLOAD_TYPES))
    if topic == IDENTITY_UPDATE_CREATED_TOPIC:
        return IdentityUpdateCreated(*_arguments(log, _PAYLOAD_TYPES))
    raise MalformedLog(
        "log", "MessageSent or IdentityUpdateCreated", f"topic 0x{topic.hex()}", log.place
    )


def decode_node_updated(log: Log) -> Node:
    """Return the registry entry that a NodeUpdated log holds (XIP-49 §2.2.1).

    Raises MalformedLog if it is another event, or data that the registry cannot have emitted.
    """
    topic = _only_topic(log)
    if topic != NODE_UPDATED_TOPIC:
        raise MalformedLog("log", "NodeUpdated", f"topic 0x{topic.hex()}", log.place)
    node_id, (signing_key, http_address, is_healthy) = _arguments(log, _NODE_TYPES)
    return Node(node_id, signing_key, http_address.decode(errors="surrogateescape"), is_healthy)


def _only_topic(log: Log) -> bytes:
    if len(log.topics) != 1:
        raise MalformedLog("log", "1 topic (no indexed argument)", len(log.topics), log.place)
    return log.topics[0]


def _arguments(log: Log, types: Sequence[str]) -> tuple[Any, ...]:
    try:
        return decode(types, log.data, strict=True)
    except (DecodingError, OverflowError) as error:
        raise MalformedLog("log data", f"({','.join(types)})", error, log.place) from error
