"""The registry's nodes, as this node's own database has followed them; nobody else is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chainkit.text.node_url import check_host
from chainkit.types import BlockReference, Node
from chainkit_indexer.registry.history import nodes_at, read_followed_history
from chainkit_indexer.storage.store import Store

LOOK_SECONDS: Final = 0.25
"""How long a listing is believed before the database is asked whether there is a newer one."""


class RegistryState(StrEnum):
    """The registry's word on this node."""

    UNKNOWN = "unknown"
    """The registry was not followed yet."""
    NOT_REGISTERED = "not_registered"
    DISABLED = "disabled"
    ENABLED = "enabled"


@dataclass(frozen=True, slots=True)
class Listing:
    """The registry's nodes as of one block."""

    nodes: Mapping[int, Node]
    """By id; disabled ones, too."""
    own_id: int | None
    """Id of this node; None where its key is not registered."""
    block: BlockReference | None
    """None where the registry was not followed yet: then there are no nodes."""

    @property
    def state(self) -> RegistryState:
        """The registry's word on this node."""
        if self.block is None:
            return RegistryState.UNKNOWN
        if self.own_id is None:
            return RegistryState.NOT_REGISTERED
        is_enabled = self.nodes[self.own_id].is_enabled
        return RegistryState.ENABLED if is_enabled else RegistryState.DISABLED

    def check_url(self, node: Node) -> None:
        """Raise ConfigurationError where a node's URL leads to this machine, or one on its link.

        Such a URL is right where this node's own leads there, too, and, before this node is
        registered, where all nodes' do.
        """
        own = self.nodes.get(self.own_id or 0)
        trusted = [own] if own is not None else self.nodes.values()
        subject = f"URL of node {node.node_id}"
        check_host(subject, node.http_address, [each.http_address for each in trusted])


class NodeDirectory:
    """The newest listing; for several threads."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """Take the database and a clock in seconds, which need not be the time of day."""
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._listing = Listing({}, None, None)
        self._read_at = float("-inf")

    def listing(self) -> Listing:
        """Return the listing, read anew where it is too old. Raises StoreUnavailable."""
        with self._lock:
            now = self._clock()
            if now - self._read_at >= LOOK_SECONDS:
                self._listing = self._read()
                self._read_at = now
            return self._listing

    def _read(self) -> Listing:
        own_key = self._store.identity.node_public_key
        with self._store.reading() as connection:
            followed = read_followed_history(connection)
            if followed is None or followed.last is None:
                return Listing({}, None, None)
            if followed.last == self._listing.block:
                return self._listing
            nodes = nodes_at(connection, None)
        own = (node.node_id for node in nodes if node.signing_key == own_key)
        return Listing({node.node_id: node for node in nodes}, next(own, None), followed.last)
