"""URLs of the registry that a node calls, and those that its holder chose to hurt others."""

from __future__ import annotations

import pytest

from chainkit.errors import ConfigurationError
from chainkit.types import BlockReference, Node
from chainkit_node.peers.directory import Listing

LOCAL, LINK, PUBLIC = "http://127.0.0.1:5", "http://169.254.169.254:80", "https://b.example.org"


def listing(own: str | None, *urls: str) -> Listing:
    nodes = {200 + each: Node(200 + each, bytes(65), url, True) for each, url in enumerate(urls)}
    if own is not None:
        nodes[100] = Node(100, bytes(65), own, True)
    return Listing(nodes, None if own is None else 100, BlockReference(1, bytes(32)))


@pytest.mark.parametrize(
    ("own", "urls"),
    [(PUBLIC, [LOCAL]), (PUBLIC, [LINK]), (None, [LOCAL, PUBLIC]), (None, [LINK, PUBLIC])],
)
def test_check_url__of_this_machine_in_a_network_of_others__is_refused(
    own: str | None, urls: list[str]
) -> None:
    found = listing(own, *urls)

    expected = "URL of node 200: expected a host that others reach, got one on this machine"
    with pytest.raises(ConfigurationError, match=expected):
        found.check_url(found.nodes[200])


@pytest.mark.parametrize(
    ("own", "urls"),
    [(LOCAL, [LOCAL, PUBLIC]), (None, [LOCAL, "ftp://a", "http://[::1"]), (PUBLIC, [PUBLIC])],
)
def test_check_url__in_a_network_on_this_machine_or_of_another__is_called(
    own: str | None, urls: list[str]
) -> None:
    found = listing(own, *urls)

    for node in found.nodes.values():
        found.check_url(node)
