"""A chain with reorgs, and the head of it that each reader has seen so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace

from chainkit.protocol.envelope import (
    parse_originator_envelope,
    sign_originator_envelope,
    unsigned_originator_envelope,
)
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import BlockHeader, BlockReference, Node, message_sent
from chainkit_client.network.chain_status import ChainStatus, Found
from support.client.group_network import BEGIN_NS, GROUP_ID, SECOND_NS

FINALITY = 6
"""Blocks above a block that is final."""
BLOCK_SECONDS = 2.0
_ON_CHAIN = GROUP_ID.ljust(32, b"\0")


def transaction_of(payload: bytes) -> bytes:
    """The hash of the transaction that posts a payload, wherever it is mined."""
    return keccak256(b"transaction" + payload)


@dataclass(frozen=True)
class Block:
    """A block, known by its number among all that were ever mined."""

    identity: int
    header: BlockHeader
    payloads: tuple[bytes, ...]
    first_id: int
    """Sequence id of the block's first payload."""

    def unsigned(self, place: int, payload: bytes) -> bytes:
        """The envelope of a payload in one of its places, as every node builds it."""
        event = message_sent(_ON_CHAIN, payload, self.first_id + place)
        return unsigned_originator_envelope(event, self.header.timestamp)

    def served(self, key: SigningKey) -> list[bytes]:
        """The block's envelopes, signed by a node."""
        return [
            sign_originator_envelope(self.unsigned(place, payload), transaction_of(payload), key)
            for place, payload in enumerate(self.payloads)
        ]


@dataclass
class StoryChain:
    """The chain: what is mined, and what waits to be."""

    random: Random
    blocks: list[Block] = field(default_factory=list)
    pool: list[bytes] = field(default_factory=list)
    all_mined: list[Block] = field(default_factory=list)
    """Also those that a reorg took back."""
    mined: int = 0
    reorgs: int = 0

    def __post_init__(self) -> None:
        self.mine(0.0)

    def mine(self, now: float, everything: bool = False) -> None:
        """Put some of what waits into a block, in any order."""
        self.random.shuffle(self.pool)
        count = len(self.pool) if everything else self.random.randint(0, len(self.pool))
        taken, self.pool = self.pool[:count], self.pool[count:]
        parent = self.blocks[-1] if self.blocks else None
        self.mined += 1
        header = BlockHeader(
            number=len(self.blocks),
            hash=keccak256(b"block %d" % self.mined),
            parent_hash=parent.header.hash if parent else bytes(32),
            timestamp=BEGIN_NS // SECOND_NS + int(now),
        )
        first = parent.first_id + len(parent.payloads) if parent else 1
        self.blocks.append(Block(self.mined, header, tuple(taken), first))
        self.all_mined.append(self.blocks[-1])

    def reorg(self, now: float) -> None:
        """Replace the newest blocks by others: their payloads wait again, or are lost."""
        depth = self.random.randint(1, FINALITY - 2)
        if depth >= len(self.blocks):
            return
        self.reorgs += 1
        lost = self.blocks[-depth:]
        del self.blocks[-depth:]
        payloads = [payload for block in lost for payload in block.payloads]
        self.pool += [each for each in payloads if self.random.random() < 0.9]
        for _ in range(depth + 1):
            self.mine(now)


class SeenChain:
    """As ``network.chain.Chain``: what an endpoint that lags answers."""

    originator_ids = frozenset({0})
    sparse_ids: frozenset[int] = frozenset()

    def __init__(self, chain: StoryChain, nodes: Sequence[Node]) -> None:
        self.chain = chain
        self.nodes = nodes
        self.lag = 0
        """Blocks that the reader has not seen yet."""
        self.endpoint = SimpleNamespace(head=lambda: self.blocks[-1].header)

    @property
    def blocks(self) -> list[Block]:
        """The blocks up to the reader's head."""
        return self.chain.blocks[: max(1, len(self.chain.blocks) - self.lag)]

    def read_nodes(self) -> tuple[BlockReference, Sequence[Node]]:
        return self.blocks[-1].header.reference, self.nodes

    def final(self) -> BlockHeader | None:
        blocks = self.blocks
        return blocks[-1 - FINALITY].header if len(blocks) > FINALITY else None

    def still_there(self, blocks: Iterable[BlockReference]) -> frozenset[BlockReference]:
        return frozenset(each.header.reference for each in self.blocks) & set(blocks)

    def find(
        self, node: Node, block: BlockReference, envelope: bytes, transaction_hash: bytes
    ) -> Found:
        served = parse_originator_envelope(envelope)
        for each in self.blocks:
            for place, payload in enumerate(each.payloads):
                if transaction_of(payload) != transaction_hash:
                    continue
                if served.client_envelope != payload:
                    return Found(ChainStatus.FALSE)
                if served.unsigned_originator_envelope == each.unsigned(place, payload):
                    return Found(ChainStatus.CONFIRMED, each.header.reference)
        return Found(ChainStatus.ABSENT)
