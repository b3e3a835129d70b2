"""Answers of a node, written from stored bytes: a length goes before each, and nothing is parsed.

The messages are those of stored_envelopes.proto, whose writer copies each envelope twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from chainkit.protocol.wire import ENVELOPES_TAG, bytes_field, repeated_bytes


def written_envelopes(envelopes: Iterable[bytes]) -> bytes:
    """Write ``Envelopes``: QueryEnvelopesResponse, SubscribeEnvelopesResponse and others."""
    return repeated_bytes(ENVELOPES_TAG, envelopes)


def written_topic_envelopes(envelopes: Iterable[bytes]) -> bytes:
    """Write ``TopicEnvelopes``: SubscribeTopicsResponse."""
    return bytes_field(ENVELOPES_TAG, written_envelopes(envelopes))
