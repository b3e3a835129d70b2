"""Several nodes, with one connection per node for as long as the registry entry stays the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chainkit.errors import ConfigurationError
from chainkit.nodes.connection import NodeConnection, NodeEntry
from chainkit.nodes.preference import in_order_of_preference
from chainkit.text.node_url import check_host


class Nodes:
    """The connected nodes; used on the event loop's thread."""

    def __init__(self, entries: Mapping[int, NodeEntry]) -> None:
        """Take the nodes by id. Raises ConfigurationError for a URL that cannot be used."""
        self._connections = {each: NodeConnection(each, one) for each, one in entries.items()}

    @property
    def urls(self) -> Mapping[int, str]:
        """The URLs by node id."""
        return {each: connection.entry.url for each, connection in self._connections.items()}

    async def update(self, entries: Mapping[int, NodeEntry]) -> Mapping[int, ConfigurationError]:
        """Take new entries; a node whose entry is unchanged keeps its connection.

        Returns the errors of unusable URLs by node id; these nodes are left out. A URL of this
        machine is also unusable in a network of other machines.
        """
        kept, unusable = {}, {}
        urls = [entry.url for entry in entries.values()]
        for node_id, entry in entries.items():
            known = self._connections.get(node_id)
            try:
                check_host(f"URL of node {node_id}", entry.url, urls)
                same = known is not None and known.entry == entry
                kept[node_id] = known if known and same else NodeConnection(node_id, entry)
            except ConfigurationError as error:
                unusable[node_id] = error
        gone = [each for each in self._connections.values() if each not in kept.values()]
        self._connections = kept
        for connection in gone:
            await connection.close()
        return unusable

    def for_topic(self, topic: bytes) -> list[NodeConnection]:
        """Return the nodes in the order in which a topic prefers them."""
        order = in_order_of_preference(topic, self._connections)
        return [self._connections[each] for each in order]

    def node(self, node_id: int) -> NodeConnection | None:
        """Return a node, None where the node was removed."""
        return self._connections.get(node_id)

    def __len__(self) -> int:
        """Count the nodes; from any thread."""
        return len(self._connections)

    def __iter__(self) -> Iterator[NodeConnection]:
        """Yield every connection."""
        return iter(self._connections.values())

    async def close(self) -> None:
        """End all connections."""
        for connection in self._connections.values():
            await connection.close()
