"""Waits for a node that serves a mined payload: all nodes side by side, each in short turns."""

from __future__ import annotations

import asyncio
from typing import Final

from chainkit.nodes.outcomes import NodeLost
from chainkit_gateway.types import Mined, NodeList

TURN_SECONDS: Final = 0.5
"""Pause before a node or the chain is asked again."""


async def served_envelope(
    nodes: NodeList, topic: bytes, mined: Mined, until: float, *, of_all: bool
) -> bytes | None:
    """Return a mined payload as a node serves and signs it, None where no node does in time.

    ``until`` is the event loop's time. A client may read from any node right after the answer: with
    ``of_all``, each node that neither serves the payload nor fails is waited for.
    """
    running = {_asking(nodes, each.node_id, topic, mined, until): each.node_id for each in nodes}
    if not running:
        # The registry may list a node by then.
        await asyncio.sleep(until - asyncio.get_running_loop().time())
    first = set(running) if of_all else set()
    found: bytes | None = None
    try:
        while found is None or not first.isdisjoint(running):
            left = until - asyncio.get_running_loop().time()
            if left <= 0 or not running:
                break
            done, _ = await asyncio.wait(running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                node_id = running.pop(task)
                # A connection that the registry closed cancels its calls.
                found = found or (None if task.cancelled() else task.result())
                if found is None:
                    again = _asking(nodes, node_id, topic, mined, until, TURN_SECONDS)
                    running[again] = node_id
    finally:
        for task in running:
            task.cancel()
    return found


def _asking(
    nodes: NodeList, node_id: int, topic: bytes, mined: Mined, until: float, pause: float = 0.0
) -> asyncio.Task[bytes | None]:
    async def ask() -> bytes | None:
        await asyncio.sleep(pause)
        # The registry may have given the node another URL or key, or removed the node.
        if (node := nodes.node(node_id)) is None:
            return None
        seconds = until - asyncio.get_running_loop().time()
        try:
            envelope = await node.indexed(topic, mined.place, mined.transaction_hash, seconds)
        except NodeLost:
            return None
        return envelope if node.has_signed(envelope) else None

    return asyncio.create_task(ask())
