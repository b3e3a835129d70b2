"""The topic under which a payload of the chain is served (XIP-49 §3.3.2; ADR 24).

The contracts name a group by 32 bytes, today's clients by 16. On the chain a shorter group id is
padded with zeros on the right, and the topic in the payload's AAD shows its length.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError

from chainkit.protocol.proto import envelopes_pb2
from chainkit.types import TopicKind

PADDING: Final = b"\0"
"""Fills a group id up to the identifier that the contract takes."""

_SHORTEST: Final = 2
"""Bytes of a topic with one byte of a group id."""


def is_named(named: bytes, posted: bytes) -> bool:
    """Return whether a topic in an AAD is the topic to which a payload was posted.

    ``posted`` is a kind byte and the identifier in the event. A group's topic may be shorter, if
    only the padding is missing; all others must be equal.
    """
    if named == posted:
        return True
    is_shorter = _SHORTEST <= len(named) < len(posted)
    is_group = posted[0] == TopicKind.GROUP_MESSAGE
    return is_shorter and is_group and named.ljust(len(posted), PADDING) == posted


def served_topic(kind: TopicKind, identifier: bytes, payload: bytes) -> bytes:
    """Return the topic of a payload: the topic in its AAD, if the payload was posted to it.

    ``identifier`` is the event's. A payload that names another topic, or none, is not served; its
    topic is the event's.
    """
    posted = kind.topic(identifier)
    if kind is not TopicKind.GROUP_MESSAGE or not identifier.endswith(PADDING):
        return posted
    named = named_topic(payload)
    return named if is_named(named, posted) else posted


def named_topic(payload: bytes) -> bytes:
    """Return the topic in a payload's AAD; nothing where there is none."""
    try:
        return envelopes_pb2.ClientEnvelope.FromString(payload).aad.target_topic
    except DecodeError:
        return b""
