"""How large generated exports are, and what lies where in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from chainkit.signatures import SigningKey, keccak256

PAYLOAD_BYTES: Final = 300
"""Size of each ClientEnvelope on the chain."""

FIRST_BLOCK: Final = 1
"""Where the contracts are deployed."""

REGISTRY_BLOCK: Final = 2
"""Where all nodes are registered."""

NODE_INCREMENT: Final = 100
_BATCH_ROWS: Final = 50_000
_FILE_ROWS: Final = 250_000
_GENESIS_TIME: Final = 1_700_000_000
_BLOCK_SECONDS: Final = 2
_QUARANTINED_EVERY: Final = 101
_FIRST_QUARANTINED: Final = 50


@dataclass(frozen=True, slots=True)
class Blocks:
    """A run of blocks, both ends included."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """The name of their files, without the suffix."""
        return f"{self.first:010}-{self.last:010}"

    def __len__(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Shape:
    """Payloads 1 to ``rows`` in blocks of the same size, and nodes 100, 200, … that serve them."""

    rows: int
    nodes: int = 3
    rows_per_block: int = 100
    range_blocks: int = 0
    """Blocks per file; 0 for as many as hold 250,000 payloads."""
    seed: int = 49
    random_bytes: int = PAYLOAD_BYTES
    """The most bytes of a payload that differ from all others: fewer compress, as nothing that is
    encrypted does, and take less room on a disk."""
    is_signed: bool = False
    """Whether nodes sign with their keys: else their signatures are random bytes."""

    @property
    def blocks_per_file(self) -> int:
        """Blocks per file; ranges begin at its multiples."""
        return self.range_blocks or max(REGISTRY_BLOCK + 1, _FILE_ROWS // self.rows_per_block)

    @property
    def first_payload_block(self) -> int:
        """The block of sequence 1: what comes before lies in files of its own."""
        return self.blocks_per_file

    @property
    def last_block(self) -> int:
        """The block of the last sequence; it may hold fewer than the others."""
        return self.block_of(max(self.rows, 1))

    @property
    def node_ids(self) -> list[int]:
        """The nodes as the registry numbers them."""
        return [NODE_INCREMENT * number for number in range(1, self.nodes + 1)]

    def block_of(self, sequence_id: int) -> int:
        """Return the block that holds a sequence."""
        return self.first_payload_block + (sequence_id - 1) // self.rows_per_block

    def sequences_of(self, blocks: Blocks) -> range:
        """Return the sequences that a run of blocks holds."""
        first, end = (
            1 + max(0, number - self.first_payload_block) * self.rows_per_block
            for number in (blocks.first, blocks.last + 1)
        )
        return range(min(first, self.rows + 1), min(end, self.rows + 1))

    def ranges(self) -> Iterator[Blocks]:
        """Yield the blocks of each file."""
        yield from _cut(Blocks(FIRST_BLOCK, self.last_block), self.blocks_per_file)

    def batches(self, blocks: Blocks) -> Iterator[Blocks]:
        """Yield the blocks of a file in runs that fit into memory."""
        yield from _cut(blocks, _batch_blocks(self))

    def batch_of(self, sequence_id: int) -> int:
        """Return the first block of the batch that makes a sequence."""
        block, per_file = self.block_of(sequence_id), self.blocks_per_file
        size = _batch_blocks(self)
        return max(FIRST_BLOCK, block // per_file * per_file, block // size * size)


def _batch_blocks(shape: Shape) -> int:
    return max(1, _BATCH_ROWS // shape.rows_per_block)


def is_quarantined(sequence_id: int) -> bool:
    """Tell whether a sequence's payload is malformed, so that nobody may serve it."""
    return sequence_id % _QUARANTINED_EVERY == _FIRST_QUARANTINED


def hash_of(block: int) -> bytes:
    """Return a block's hash."""
    return keccak256(f"benchmark block {block}".encode())


def time_of(block: int) -> int:
    """Return a block's time, in seconds since 1970."""
    return _GENESIS_TIME + _BLOCK_SECONDS * block


def key_of(node_id: int) -> SigningKey:
    """Return a node's key, which anyone can make again: it is worth nothing."""
    return SigningKey(keccak256(f"benchmark node {node_id}".encode()))


def _cut(blocks: Blocks, size: int) -> Iterator[Blocks]:
    first = blocks.first
    while first <= blocks.last:
        last = min((first // size + 1) * size - 1, blocks.last)
        yield Blocks(first, last)
        first = last + 1
