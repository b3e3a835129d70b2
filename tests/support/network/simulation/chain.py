"""A simulated chain: nodes and payloads by blocks, and reorgs that take blocks back; no I/O.

Each node sees the heads with a lag of its own, so two of them may see different branches. A
transaction that a reorg took back comes again: in the new blocks, or some blocks later.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from chainkit.protocol.envelope import unsigned_originator_envelope
from chainkit.types import HASH_LENGTH, Node, message_sent
from support import publishes
from support.network.originator import BEGIN_NS, SECOND_NS

BLOCK_SECONDS = 2
FINAL_DEPTH = 30
"""Blocks behind the head, from which on a block is final."""

DEEPEST = 20
"""Blocks that a reorg takes back at most."""

MOST_LAG_SECONDS = 12.0
"""How much later than others a node sees a head: less than FINAL_DEPTH - DEEPEST blocks take.

A node that lags longer serves payloads of a branch that others know to be none of the final chain.
"""

_LONGEST_WAIT = 8
"""Blocks of the new branch that are mined before all comes again that a reorg took back."""


@dataclass(frozen=True, slots=True)
class RegistryChange:
    """A node is added, or what the registry says of one changes: that takes one that is there."""

    node: Node
    is_added: bool


@dataclass(frozen=True, slots=True)
class Posting:
    """A payload that a client sends to the chain."""

    payload: bytes
    transaction_hash: bytes


Transaction: TypeAlias = RegistryChange | Posting


@dataclass(frozen=True, slots=True)
class ChainPayload:
    """A payload under the place and time that its block gives it."""

    unsigned: bytes
    """A serialized UnsignedOriginatorEnvelope."""
    transaction_hash: bytes


@dataclass(frozen=True, slots=True)
class Block:
    """A block, with all that the chain says up to it."""

    number: int
    hash: bytes
    parent: Block | None
    transactions: tuple[Transaction, ...]
    nodes: Mapping[int, Node]
    payloads: tuple[ChainPayload, ...]
    """Those of originator 0, in the order of their sequence ids from 1."""

    @property
    def seconds(self) -> int:
        """The block's time since 1970."""
        return BEGIN_NS // SECOND_NS + self.number * BLOCK_SECONDS

    def below(self, depth: int) -> Block:
        """Return the block so many blocks below, or the first one."""
        block = self
        while depth and block.parent is not None:
            block, depth = block.parent, depth - 1
        return block

    @property
    def final(self) -> Block:
        """The highest block that is final for who sees this one as the head."""
        return self.below(FINAL_DEPTH)


class SimulatedChain:
    """The chain's heads in the order of time; moments are seconds of one clock."""

    def __init__(self, chance: random.Random, nodes: Iterable[Node]) -> None:
        """Begin with some nodes in the first block, which no reorg takes back."""
        self._chance = chance
        first = Block(0, bytes(HASH_LENGTH), None, (), {each.node_id: each for each in nodes}, ())
        self._times = [0.0]
        self._heads = [first]
        self._highest = 0
        self._sent = 0
        self._waiting: list[tuple[int, Transaction]] = []
        """Transactions, each with the number of the first block that may have it."""

    @property
    def head(self) -> Block:
        """The newest one."""
        return self._heads[-1]

    def seen(self, moment: float) -> Block:
        """Return the head as it was at a moment."""
        return self._heads[max(bisect_right(self._times, moment) - 1, 0)]

    @property
    def is_settled(self) -> bool:
        """Whether all that was sent is in a block."""
        return not self._waiting

    def add(self, node: Node, number: int) -> None:
        """Have a node added by the block of a number."""
        self._waiting.append((number, RegistryChange(node, is_added=True)))

    def change(self, node: Node) -> None:
        """Send a transaction that enables a node, disables it, or gives it another address."""
        self._waiting.append((0, RegistryChange(node, is_added=False)))

    def post(self) -> None:
        """Send a payload."""
        self._sent += 1
        number = self._sent.to_bytes(HASH_LENGTH, "big")
        self._waiting.append((0, Posting(publishes.group_message(number), number)))

    def mine(self, moment: float) -> None:
        """Put a block on the head."""
        self._show(self._on(self.head), moment)

    def reorganise(self, moment: float) -> Block:
        """Replace some of the newest blocks by others; return the new head.

        Where none may go, a block is put on the head.
        """
        old = self.head
        # The head may be lower than an earlier one, by which something is final for somebody.
        most = min(DEEPEST - (self._highest - old.number), old.number)
        depth = self._chance.randint(min(most, 1), max(most, 0))
        ancestor = old.below(depth)
        length = max(depth + self._chance.randint(-1, 1), 1)
        last = ancestor.number + length + _LONGEST_WAIT
        taken_back = _between(ancestor, old)
        self._chance.shuffle(taken_back)
        for each in taken_back:
            self._waiting.append((self._chance.randint(ancestor.number + 1, last), each))
        block = ancestor
        for _ in range(length):
            block = self._on(block)
        self._show(block, moment)
        return block

    def _on(self, parent: Block) -> Block:
        number = parent.number + 1
        chosen = tuple(each for due, each in self._waiting if due <= number)
        self._waiting = [(due, each) for due, each in self._waiting if due > number]
        hash_ = self._chance.randbytes(HASH_LENGTH)
        empty = Block(number, hash_, parent, chosen, parent.nodes, parent.payloads)
        return _with_transactions(empty) if chosen else empty

    def _show(self, block: Block, moment: float) -> None:
        self._times.append(moment)
        self._heads.append(block)
        self._highest = max(self._highest, block.number)


def _with_transactions(block: Block) -> Block:
    """Return a block with what its transactions change."""
    nodes, payloads = dict(block.nodes), list(block.payloads)
    for each in block.transactions:
        if isinstance(each, Posting):
            event = message_sent(publishes.GROUP_ID, each.payload, len(payloads) + 1)
            unsigned = unsigned_originator_envelope(event, block.seconds)
            payloads.append(ChainPayload(unsigned, each.transaction_hash))
        elif each.is_added or each.node.node_id in nodes:
            nodes[each.node.node_id] = each.node
    return replace(block, nodes=nodes, payloads=tuple(payloads))


def _between(ancestor: Block, head: Block) -> list[Transaction]:
    """Return the transactions of all blocks above an ancestor."""
    found: list[Transaction] = []
    block: Block | None = head
    while block is not None and block is not ancestor:
        found += block.transactions
        block = block.parent
    return found
