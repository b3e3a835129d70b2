"""The registry's nodes, read again and again: added, removed, and under other addresses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from chainkit.chain import Endpoint, EndpointPool
from chainkit.contracts.registry.reading import Registry
from chainkit.errors import ChainError, ChainkitError, ConfigurationError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit_gateway.nodes import Nodes

ReadUrls = Callable[[], Mapping[int, str]]
"""Returns the URLs of the enabled nodes by id; blocks."""


def registry_reader(pool: EndpointPool, address: bytes) -> ReadUrls:
    """Return what reads the registry at an address, at the head.

    It raises ConfigurationError where no node is enabled, and what endpoints raise.
    """

    def ask(endpoint: Endpoint) -> Mapping[int, str]:
        block = endpoint.head().reference
        nodes = Registry(endpoint, address).nodes(block)
        urls = {node.node_id: node.http_address for node in nodes if node.is_enabled}
        if not urls:
            got = f"{len(nodes)} registered, none enabled, at block {block}"
            raise ConfigurationError("nodes", "at least one that is enabled", got)
        return urls

    return lambda: pool.first_answer(ask)


class RegistryWatch:
    """Keeps the nodes as the registry has them; the last ones while it cannot be read."""

    def __init__(self, read: ReadUrls, nodes: Nodes) -> None:
        """Take what reads the registry, and the nodes to keep."""
        self._read = read
        self._nodes = nodes
        self._told: set[str] = set()

    async def refresh(self) -> None:
        """Read the registry once. A fault is logged once, until it has passed."""
        try:
            urls = await asyncio.to_thread(self._read)
        except (ChainError, ConfigurationError) as error:
            self._tell("registry_failed", {type(error).__name__: error})
            return
        before = dict(self._nodes.urls)
        unusable = await self._nodes.update(urls)
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
