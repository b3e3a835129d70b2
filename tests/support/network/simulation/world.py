"""The network between simulated nodes: the chain, links, and a clock for each node."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.network.originator import BEGIN_NS, SECOND_NS
from support.network.simulation.chain import SimulatedChain

if TYPE_CHECKING:
    from support.network.simulation.node import SimulatedNode


@dataclass
class World:
    """All nodes, and what is between them."""

    chance: random.Random
    chain: SimulatedChain
    nodes: dict[int, SimulatedNode] = field(default_factory=dict)
    cut: set[frozenset[int]] = field(default_factory=set)
    """Pairs of nodes without a link."""

    def seconds(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    def true_ns(self) -> int:
        """The true time, in nanoseconds since 1970."""
        return BEGIN_NS + int(self.seconds() * SECOND_NS)

    def keys(self) -> dict[int, bytes]:
        """The keys of all nodes by their ids, whether the registry lists them now or not."""
        return {each: node.key.public_key for each, node in self.nodes.items()}

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
