"""The id under which this node originates, by the registry as this node has followed it."""

from __future__ import annotations

from collections.abc import Callable

from chainkit.service.refusals import NotReady
from chainkit_node.peers.directory import NodeDirectory


class Registration:
    """Entry of this node in the registry, by its own database; for several threads."""

    def __init__(self, directory: NodeDirectory, check: Callable[[], None]) -> None:
        """Take the registry's nodes, and a check that may raise NotReady."""
        self._directory = directory
        self._check = check

    def node_id(self) -> int:
        """Return the id of this node, while it is enabled.

        Raises NotReady where the registry was not followed yet, does not list this node's key, or
        disabled the node, or where the check does; and StoreUnavailable.
        """
        listing = self._directory.listing()
        if listing.block is None:
            raise NotReady("registry", "its nodes at a block", "none: it was not followed yet")
        if listing.own_id is None:
            raise NotReady("registry", "a node with this node's key", f"none at {listing.block}")
        if not listing.nodes[listing.own_id].is_enabled:
            raise NotReady(f"node {listing.own_id}", "an enabled node", "a disabled one")
        self._check()
        return listing.own_id
