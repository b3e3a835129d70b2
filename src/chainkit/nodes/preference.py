"""The order in which a topic's clients prefer the nodes (XIP-49 §3.3.6)."""

from __future__ import annotations

import zlib
from collections.abc import Collection


def in_order_of_preference(topic: bytes, node_ids: Collection[int]) -> list[int]:
    """Return node ids in the order in which a topic prefers them.

    All clients of a topic begin with the same node. Each next node is the one that the topic
    prefers once the earlier nodes are excluded.
    """
    remaining, digest = sorted(node_ids), zlib.crc32(topic)
    return [remaining.pop(digest % len(remaining)) for _ in node_ids]
