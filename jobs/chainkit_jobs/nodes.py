"""The registry's history from its NodeUpdated logs: whose key each node is held to."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from chainkit.decode import NODE_UPDATED_TOPIC, decode_node_updated
from chainkit.errors import ConfigurationError
from chainkit.types import Node
from chainkit_jobs.sources import log_from_row


@dataclass(frozen=True, slots=True)
class Registry:
    """The nodes as they stand at one block (XIP-49 §3.1.1); keys never change."""

    nodes: dict[int, Node]
    at_block: int
    begins_late: str = ""
    """Why entries may be missing: where the chain export begins, if after the deployment."""

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


def read_registry(
    logs: DataFrame, registry_address: bytes, at_block: int, begins_late: str = ""
) -> Registry:
    """Replay the registry's NodeUpdated logs up to a block.

    ``logs`` has the columns of chainkit.tables.LOGS. There is one such log for each change of
    a node by a person: the few rows are replayed here, in the chain's order. ``begins_late``
    is for whoever looks for a node in vain: see Registry.
    """
    updates = logs.filter(
        (sf.col("address") == sf.lit(registry_address))
        & (sf.size("topics") > 0)
        & (sf.col("topics")[0] == sf.lit(NODE_UPDATED_TOPIC))
        & (sf.col("block_number") <= at_block)
    ).orderBy("block_number", "log_index")
    nodes: dict[int, Node] = {}
    for row in updates.collect():
        node = decode_node_updated(log_from_row(row.asDict()))
        nodes[node.node_id] = node
    return Registry(nodes, at_block, begins_late)
