"""Whether other nodes have what one node acknowledged (XIP-49 §3.3.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Final

from chainkit.errors import MalformedData
from chainkit.protocol.envelope_queries import envelopes_behind
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.refusals import PassedOn
from chainkit_client.network.asked import ASK_SECONDS, AskedNode
from chainkit_client.nodes.connection import NodeLost, NodeUnreached
from chainkit_client.reading.verified import Keys, VerifiedEnvelope, read_envelope

FIRST_PAUSE_SECONDS: Final = 0.2
"""Before a node is asked a second time; each pause is twice the one before."""
MOST_TRIES: Final = 8
"""Questions to one node: 25 s of pauses."""


async def replicated_by(
    envelope: VerifiedEnvelope, nodes: Iterable[AskedNode], keys: Keys
) -> Collection[int]:
    """Return which nodes serve exactly this envelope, asked again for a while.

    The envelope is a node's own. One that a node serves under its place with other bytes counts as
    missing; who reads the topic gets the evidence.
    """
    others = [each for each in nodes if each.node_id != envelope.originator_id]
    held = await asyncio.gather(*(_comes_to(envelope, each, keys) for each in others))
    return {each.node_id for each, is_held in zip(others, held, strict=True) if is_held}


async def _comes_to(envelope: VerifiedEnvelope, node: AskedNode, keys: Keys) -> bool:
    pause = FIRST_PAUSE_SECONDS
    for attempt in range(MOST_TRIES):
        if attempt:
            await asyncio.sleep(pause)
            pause *= 2
        if await _serves(envelope, node, keys):
            return True
    return False


async def _serves(envelope: VerifiedEnvelope, node: AskedNode, keys: Keys) -> bool:
    query = envelopes_behind(envelope.originator_id, envelope.sequence_id - 1)
    request = message_api_pb2.QueryEnvelopesRequest(query=query, limit=1)
    try:
        page = await node.query(request, ASK_SECONDS)
        found = [read_envelope(each, node.node_id, keys).envelope for each in page[:1]]
    except (MalformedData, NodeLost, NodeUnreached, PassedOn):
        return False
    return any(each is not None and each.digest == envelope.digest for each in found)
