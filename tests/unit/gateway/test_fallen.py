"""Commits that a reorg left below their former ids, and when they are published again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from chainkit.nodes.outcomes import NodeUnreached
from chainkit_gateway.fallen import Fallen
from chainkit_gateway.routing import route
from chainkit_gateway.types import Publication
from support import publishes
from support.gateway.fake_nodes import FakeNode, FakeNodes, of_chain

COMMIT = route(publishes.commit(), "ann")
UPDATE = route(publishes.identity_update(), "ben")
FORMER = 62


class Account:
    """An account whose publications fell."""

    def __init__(self, *fallen: Publication) -> None:
        self.publications = fallen
        self.sent: list[Publication] = []

    def fallen(self) -> list[tuple[Publication, int]]:
        return [(each, FORMER) for each in self.publications]

    def send_again(self, publication: Publication) -> None:
        self.sent.append(publication)


def sent(publication: Publication, *nodes: FakeNode) -> Sequence[Publication]:
    account = Account(publication)
    asyncio.run(Fallen(account, FakeNodes(*nodes)).publish_again())
    return account.sent


@pytest.mark.parametrize(
    ("ids", "is_sent"), [([], True), ([56], True), ([56, FORMER], False), ([70], False)]
)
def test_publish_again__commit_fell__is_sent_where_its_group_has_nothing_from_its_id_on(
    ids: list[int], is_sent: bool
) -> None:
    node = FakeNode(100)
    node.others = [of_chain(each) for each in ids]

    assert sent(COMMIT, node) == ([COMMIT] if is_sent else [])


def test_publish_again__identity_update__is_not_sent() -> None:
    assert sent(UPDATE, FakeNode(100)) == []


def test_publish_again__no_node_answers__waits_for_the_next_look() -> None:
    node = FakeNode(100)
    node.query_failures = [NodeUnreached("node 100", "an answer", "none")]

    assert sent(COMMIT, node) == []
    assert sent(COMMIT, node) == [COMMIT]
