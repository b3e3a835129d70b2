"""The chain and a node's log as clients read them: blocks, a pool of what waits, and reorgs."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from chainkit_client.groups.payload import Payload
from support.client.group_network import BEGIN_NS, CHAIN, SECOND_NS, payload_hash_of, taken_apart

FINALITY = 4
"""Blocks above a block that is final."""


@dataclass(frozen=True)
class Block:
    """A block, known by its number among all that were ever mined."""

    identity: int
    payloads: tuple[bytes, ...]
    last_id: int
    """Sequence id of the chain's last payload up to here."""

    def read(self) -> list[Payload]:
        """The payloads as clients read them."""
        first = self.last_id - len(self.payloads) + 1
        time_ns = BEGIN_NS + self.identity * SECOND_NS
        return [
            taken_apart(data, CHAIN, first + place, time_ns)
            for place, data in enumerate(self.payloads)
        ]


@dataclass
class PooledChain:
    """The chain: what is mined, and what waits to be."""

    random: Random
    blocks: list[Block] = field(default_factory=lambda: [Block(0, (), 0)])
    pool: list[bytes] = field(default_factory=list)
    mined: int = 0
    reorgs: int = 0

    @property
    def head(self) -> int:
        """Height of the newest block."""
        return len(self.blocks) - 1

    def mine(self, everything: bool = False) -> None:
        """Put some of what waits into a block, in any order."""
        self.random.shuffle(self.pool)
        count = len(self.pool) if everything else self.random.randint(0, len(self.pool))
        taken, self.pool = self.pool[:count], self.pool[count:]
        self.mined += 1
        last_id = self.blocks[-1].last_id + len(taken)
        self.blocks.append(Block(self.mined, tuple(taken), last_id))

    def reorg(self) -> None:
        """Replace the newest blocks by others: their payloads wait again, or are lost."""
        depth = self.random.randint(1, FINALITY - 1)
        if depth >= len(self.blocks):
            return
        self.reorgs += 1
        lost = self.blocks[-depth:]
        del self.blocks[-depth:]
        kept = [data for block in lost for data in block.payloads if self.random.random() < 0.9]
        self.pool += kept
        for _ in range(depth + 1):
            self.mine()

    def holds(self, payload_hash: bytes) -> bool:
        """Return whether a payload is mined, or waits to be."""
        mined = [data for block in self.blocks for data in block.payloads]
        return any(payload_hash_of(data) == payload_hash for data in (*mined, *self.pool))
