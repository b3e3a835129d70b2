"""Queries for the envelopes that a node holds (XIP-49 §3.2.3).

Each query has a cursor, even without entries: some nodes answer a subscription without a cursor
with new envelopes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chainkit.protocol.proto import message_api_pb2


def envelopes_behind(originator_id: int, after_id: int) -> message_api_pb2.EnvelopesQuery:
    """Return a query for one originator's envelopes behind a sequence id; 0 means all envelopes."""
    return message_api_pb2.EnvelopesQuery(
        originator_node_ids=[originator_id],
        last_seen={"node_id_to_sequence_id": {originator_id: after_id}},
    )


def page_behind(
    originator_id: int, after_id: int, limit: int
) -> message_api_pb2.QueryEnvelopesRequest:
    """Ask for at most ``limit`` of one originator's envelopes behind a sequence id."""
    query = envelopes_behind(originator_id, after_id)
    return message_api_pb2.QueryEnvelopesRequest(query=query, limit=limit)


def topics_behind(
    topics: Iterable[bytes], cursor: Mapping[int, int]
) -> message_api_pb2.EnvelopesQuery:
    """Ask for the envelopes of some topics behind a cursor, by originator."""
    return message_api_pb2.EnvelopesQuery(
        topics=topics, last_seen={"node_id_to_sequence_id": dict(cursor)}
    )
