"""Under which id a node originates, and when it does not: while the registry does not list it."""

from __future__ import annotations

from typing import Any

import pytest

from chainkit.service.refusals import NotReady
from chainkit.types import BlockReference, Node
from chainkit_node.originating.registration import Registration
from chainkit_node.peers.directory import Listing

OWN = Node(200, b"\4" * 65, "http://200:1", True)
DISABLED = Node(200, b"\4" * 65, "http://200:1", False)
BLOCK = BlockReference(7, bytes(32))
LISTED = Listing({200: OWN}, 200, BLOCK)
NOT_LISTED = Listing({}, None, BLOCK)


class Directory:
    def __init__(self) -> None:
        self.found = LISTED

    def listing(self) -> Listing:
        return self.found


def nothing_to_wait_for() -> None:
    """The own log is known."""


def test_node_id__reorg_takes_the_registration_back__originates_again_once_it_is_back() -> None:
    directory: Any = Directory()
    registration = Registration(directory, nothing_to_wait_for)
    assert registration.node_id() == 200

    directory.found = NOT_LISTED
    with pytest.raises(NotReady, match="a node with this node's key, got none at 7"):
        registration.node_id()

    directory.found = LISTED
    assert registration.node_id() == 200


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Listing({}, None, None), "it was not followed yet"),
        (Listing({200: DISABLED}, 200, BLOCK), "an enabled node, got a disabled one"),
    ],
)
def test_node_id__not_followed_or_disabled__is_refused(found: Listing, words: str) -> None:
    directory: Any = Directory()
    directory.found = found

    with pytest.raises(NotReady, match=words):
        Registration(directory, nothing_to_wait_for).node_id()


def test_node_id__own_log_is_not_known__is_refused() -> None:
    def refuses() -> None:
        raise NotReady("own log", "an answer of another node", "none yet")

    directory: Any = Directory()

    with pytest.raises(NotReady, match="own log"):
        Registration(directory, refuses).node_id()
