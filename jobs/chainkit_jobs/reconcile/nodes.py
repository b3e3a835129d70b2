"""The registry at a block, from the contracts' own events: whose key each node is held to."""

from __future__ import annotations

from dataclasses import dataclass

from chainkit.errors import ConfigurationError
from chainkit.types import Node
from chainkit_jobs.administration.replay import Administration


@dataclass(frozen=True, slots=True)
class Registry:
    """The nodes at one block (XIP-49 §3.1.1); keys never change."""

    nodes: dict[int, Node]
    at_block: int
    begins_late: str = ""
    """Why entries may be missing, such as the chain export's late beginning."""

    def by_id(self, node_id: int) -> Node:
        """Return a node. Raises ConfigurationError that names the ids which are registered."""
        if node_id not in self.nodes:
            known = ", ".join(map(str, sorted(self.nodes))) or "none is registered"
            expected = f"a registered id ({known})"
            raise ConfigurationError(f"node {node_id}", expected, "another", self.begins_late)
        return self.nodes[node_id]

    def by_key(self, public_key: str, export: str) -> Node:
        """Return the node of a public key (0x hex). Raises ConfigurationError if there is none."""
        node = self.find_key(public_key)
        if node is None:
            expected = f"a key registered by block {self.at_block}"
            got = f"{public_key[:14]}…{public_key[-8:]}, which is not"
            raise ConfigurationError(f"export {export}", expected, got, self.begins_late)
        return node

    def find_key(self, public_key: str) -> Node | None:
        """Return the node of a public key (0x hex), or None."""
        key = public_key.removeprefix("0x").lower()
        return next((node for node in self.nodes.values() if node.signing_key.hex() == key), None)


def registry_at(administration: Administration, at_block: int, begins_late: str = "") -> Registry:
    """Return the registry at the block that the replay went up to.

    ``begins_late`` is the reason to show where a node is not found: see Registry.
    """
    history = administration.registry.history
    nodes = {node_id: entries[-1][1] for node_id, entries in history.items() if entries}
    return Registry(nodes, at_block, begins_late)
