"""An address is found by what nodes say; where all are silent, nobody knows whether it exists."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainkit.nodes.outcomes import NodeUnreached
from chainkit_client.network.inboxes import NoSuchInbox, find_inbox
from chainkit_client.network.topic_reader import NodesSilent

ADDRESS = "0x" + "11" * 20


class Node:
    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def inbox_id(self, address: str, seconds: float) -> str | None:
        if self._error is not None:
            raise self._error
        return None


def find(*nodes: Node) -> None:
    asyncio.run(find_inbox(cast(Any, SimpleNamespace(nodes=nodes)), ADDRESS))


def test_find_inbox__no_node_answers__is_not_said_to_be_nobody() -> None:
    silent = Node(NodeUnreached("node 100", "a connection", "none"))

    with pytest.raises(NodesSilent, match="node 100: expected a connection, got none"):
        find(silent)


def test_find_inbox__one_node_answers_that_it_has_none__there_is_none() -> None:
    silent = Node(NodeUnreached("node 100", "a connection", "none"))

    with pytest.raises(NoSuchInbox, match=ADDRESS):
        find(silent, Node())
