"""An inbox by what nodes say and the chain has; where all are silent, nobody knows an address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chainkit.nodes.outcomes import NodeUnreached
from chainkit.types import Place, TopicKind
from chainkit_client.network.chain_status import ChainStatus, Found
from chainkit_client.network.inboxes import MOST_LOOKUPS, NoSuchInbox, find_inbox, updates_of
from chainkit_client.network.signers import signing_node
from chainkit_client.network.topic_reader import NodesSilent
from chainkit_client.reading.answer import Conflict
from chainkit_client.reading.verified import VerifiedEnvelope, read_envelope
from chainkit_client.topics.following import Followed, Topic
from support import publishes
from support.client.served import KEYS, NODE, PEER, of_chain
from support.network.originator import Originator

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


def update(number: int, server: Originator = NODE, at: int = 0) -> VerifiedEnvelope:
    client = publishes.addressed(TopicKind.IDENTITY_UPDATE, publishes.INBOX_ID)
    client.identity_update.inbox_id = publishes.INBOX_ID.hex()
    client.identity_update.client_timestamp_ns = at
    data = of_chain(number, number, client.SerializeToString(), server)
    envelope = read_envelope(data, server.node_id, KEYS).envelope
    assert envelope is not None
    return envelope


class Session:
    """The answers of nodes, and the payloads that the chain has."""

    def __init__(self, found: Followed, *of_chain: VerifiedEnvelope) -> None:
        self.found = found
        self.of_chain = {each.digest for each in of_chain}
        self.nodes = [NODE, PEER]
        self.asked = 0
        self.lookups = 0
        self.unknown: list[VerifiedEnvelope] = []
        self.on_chain: dict[Place, bytes] = {}
        self.posted = SimpleNamespace(of=lambda inbox_id: self.on_chain)

    def reader(self, topic: Topic, at_once: int) -> None:
        self.asked = at_once

    async def read(self, reader: None) -> Followed:
        return self.found

    def server_of(self, envelope: bytes) -> int | None:
        return signing_node(envelope, KEYS)

    async def find(self, envelope: VerifiedEnvelope) -> Found:
        self.lookups += 1
        is_there = envelope.digest in self.of_chain
        return Found(ChainStatus.CONFIRMED if is_there else ChainStatus.ABSENT)

    def keep_unknown(self, envelopes: list[VerifiedEnvelope]) -> None:
        self.unknown = envelopes

    def updates(self) -> Mapping[Place, bytes]:
        return asyncio.run(updates_of(cast(Any, self), publishes.INBOX_ID))


def payloads(*updates: VerifiedEnvelope) -> dict[Place, bytes]:
    return {each.place: each.client.client_envelope for each in updates}


def test_updates_of__made_up_one_came_first__the_chains_is_taken_and_the_other_is_kept() -> None:
    true, false = update(5), update(5, PEER, at=1)
    found = Followed(accepted=[update(4), false], conflicts=[Conflict(false.held, true)])
    session = Session(found, update(4), true)

    assert session.updates() == payloads(update(4), true)

    assert session.unknown == [false]
    assert session.asked == 2


def test_updates_of__all_nodes_leave_one_out__comes_from_the_chain() -> None:
    session = Session(Followed(accepted=[update(4)]), update(4))
    session.on_chain = payloads(update(5))

    assert session.updates() == payloads(update(4), update(5))


def test_updates_of__one_node_serves_many_that_the_chain_lacks__looks_up_some() -> None:
    served = [update(5, PEER, at) for at in range(MOST_LOOKUPS + 5)]
    session = Session(Followed(accepted=[*served, update(6)]), update(6))

    assert session.updates() == payloads(update(6))

    assert session.lookups == MOST_LOOKUPS + 1
