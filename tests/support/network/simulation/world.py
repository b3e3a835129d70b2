"""The network between simulated nodes: the registry's listing, links, and a clock for each node."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chainkit.types import BlockReference, Node
from chainkit_node.peers.directory import Listing
from support.network.originator import BEGIN_NS, SECOND_NS

if TYPE_CHECKING:
    from support.network.simulation.node import SimulatedNode


@dataclass
class World:
    """All nodes, and what is between them."""

    chance: random.Random
    nodes: dict[int, SimulatedNode] = field(default_factory=dict)
    entries: dict[int, Node] = field(default_factory=dict)
    block: int = 1
    cut: set[frozenset[int]] = field(default_factory=set)
    """Pairs of nodes without a link."""

    def seconds(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    def true_ns(self) -> int:
        """The true time, in nanoseconds since 1970."""
        return BEGIN_NS + int(self.seconds() * SECOND_NS)

    def register(self, node: SimulatedNode) -> None:
        """Add a node to the registry."""
        self.nodes[node.node_id] = node
        entry = Node(node.node_id, node.key.public_key, f"http://{node.node_id}:1", True)
        self._set(entry)

    def set_enabled(self, node_id: int, is_enabled: bool) -> None:
        """Enable or disable a node."""
        entry = self.entries[node_id]
        self._set(Node(node_id, entry.signing_key, entry.http_address, is_enabled))

    def _set(self, entry: Node) -> None:
        self.entries[entry.node_id] = entry
        self.block += 1

    def listing(self, own_id: int) -> Listing:
        """The registry as a node has followed it."""
        block = BlockReference(self.block, self.block.to_bytes(32, "big"))
        return Listing(dict(self.entries), own_id, block)

    def is_cut(self, one: int, other: int) -> bool:
        """Whether nothing gets through between two nodes."""
        return frozenset((one, other)) in self.cut

    def partition(self, group: set[int]) -> None:
        """Cut all links between a group and all others."""
        rest = self.nodes.keys() - group
        self.cut |= {frozenset((one, other)) for one in group for other in rest}

    def heal(self) -> None:
        """Mend all links."""
        self.cut.clear()

    async def travel(self) -> None:
        """Let bytes travel."""
        await asyncio.sleep(self.chance.uniform(0.001, 0.2))
