"""The part of a node's connection that this package uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.topic_heads import Entry

ASK_SECONDS: Final = 5.0
"""How long to wait for one answer."""


class AskedNode(Protocol):
    """The part of a node's connection that is used; errors are the connection's."""

    node_id: int

    async def query(
        self, request: message_api_pb2.QueryEnvelopesRequest, seconds: float
    ) -> Sequence[bytes]:
        """Return the envelopes of a query's answer."""

    async def topic_head(
        self, topic: bytes, entries_after: int | None, seconds: float
    ) -> tuple[bytes, Sequence[Entry]]:
        """Return the node's SignedTopicHead of a topic, and its entries behind an id."""
