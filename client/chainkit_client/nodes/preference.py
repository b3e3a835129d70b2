"""The order in which a topic's clients prefer the nodes (XIP-49 §3.3.6)."""

from __future__ import annotations

import zlib
from collections.abc import Collection


def in_order_of_preference(topic: bytes, node_ids: Collection[int]) -> list[int]:
    """Return node ids in the order in which a topic prefers them (XIP-49 §3.3.6).

    All clients of a topic begin with the same node, and go on with the same next one.
    """
    ordered = sorted(node_ids)
    if not ordered:
        return []
    start = zlib.crc32(topic) % len(ordered)
    return ordered[start:] + ordered[:start]
