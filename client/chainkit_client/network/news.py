"""Asks nodes whether topics have anything new: one envelope for each, however long a topic is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from chainkit.errors import MalformedData
from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.protocol.envelope_queries import topics_behind
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.refusals import PassedOn
from chainkit_client.network.asked import ASK_SECONDS
from chainkit_client.network.session import NetworkSession
from chainkit_client.storage.payloads import read_cursor
from chainkit_client.storage.store import Store

_ASKED: Final = 2
"""Nodes that are asked about each topic."""


async def topics_with_news(
    session: NetworkSession, store: Store, topics: Iterable[bytes]
) -> list[bytes]:
    """Return the topics of which a node has more than was read, or of which no node answered."""
    found = []
    for topic in topics:
        with store.reading() as connection:
            cursor = read_cursor(connection, topic)
        if await _has_news(session, topic, cursor):
            found.append(topic)
    return found


async def _has_news(session: NetworkSession, topic: bytes, cursor: Mapping[int, int]) -> bool:
    query = topics_behind([topic], cursor)
    request = message_api_pb2.QueryEnvelopesRequest(query=query, limit=1)
    has_answer = False
    for node in session.nodes_for(topic)[:_ASKED]:
        try:
            if await node.query(request, ASK_SECONDS):
                return True
            has_answer = True
        except (MalformedData, NodeLost, NodeUnreached, PassedOn, TimeoutError):
            continue
    return not has_answer
