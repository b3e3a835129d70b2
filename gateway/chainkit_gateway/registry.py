"""The registry's nodes, read periodically: nodes are added, removed, and change their URLs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from chainkit.chain import Endpoint, EndpointPool
from chainkit.contracts.registry.reading import Registry
from chainkit.errors import ChainError, ChainkitError, ConfigurationError
from chainkit.nodes.connection import NodeEntry
from chainkit.nodes.pool import Nodes
from chainkit.service.log_lines import LogEvent, log_event

ReadEntries = Callable[[], Mapping[int, NodeEntry]]
"""Returns the enabled nodes by id; blocks."""


def registry_reader(pool: EndpointPool, address: bytes) -> ReadEntries:
    """Return a function that reads the registry at an address, at the head.

    The function raises ConfigurationError where no node is enabled, and what endpoints raise.
    """

    def ask(endpoint: Endpoint) -> Mapping[int, NodeEntry]:
        block = endpoint.head().reference
        nodes = Registry(endpoint, address).nodes(block)
        entries = {
            each.node_id: NodeEntry(each.http_address, each.signing_key)
            for each in nodes
            if each.is_enabled
        }
        if not entries:
            got = f"{len(nodes)} registered, none enabled, at block {block}"
            raise ConfigurationError("nodes", "at least one that is enabled", got)
        return entries

    return lambda: pool.first_answer(ask)


def readdressed(entries: Mapping[int, NodeEntry], given: Mapping[int, str]) -> dict[int, NodeEntry]:
    """Return the nodes at given URLs, with the registry's keys."""
    for node_id in given.keys() - entries.keys():
        listed = ", ".join(map(str, sorted(entries)))
        raise ConfigurationError("--node", f"an enabled node of the registry: {listed}", node_id)
    return {each: replace(entries[each], url=url) for each, url in given.items()}


class RegistryWatch:
    """Keeps the nodes as in the registry; the last known nodes while the registry fails."""

    def __init__(self, read: ReadEntries, nodes: Nodes) -> None:
        """Take the function that reads the registry, and the nodes to update."""
        self._read = read
        self._nodes = nodes
        self._told: set[str] = set()

    async def refresh(self) -> None:
        """Read the registry once. A fault is logged once, until it has passed."""
        try:
            entries = await asyncio.to_thread(self._read)
        except (ChainError, ConfigurationError) as error:
            self._tell("registry_failed", {type(error).__name__: error})
            return
        before = dict(self._nodes.urls)
        unusable = await self._nodes.update(entries)
        self._tell("node_unusable", {f"{each}": error for each, error in unusable.items()})
        if self._nodes.urls != before:
            shown = ", ".join(f"{each} at {url}" for each, url in sorted(self._nodes.urls.items()))
            log_event(LogEvent("nodes_changed", f"the registry's nodes are now {shown}"))

    def _tell(self, event: str, faults: Mapping[str, ChainkitError]) -> None:
        for name, error in faults.items():
            if name not in self._told:
                text = f"registry: keeping the last nodes: {error}"
                if event == "node_unusable":
                    text = f"registry: a node is left out: {error}"
                log_event(LogEvent(event, text, level=logging.WARNING))
        self._told = set(faults)
