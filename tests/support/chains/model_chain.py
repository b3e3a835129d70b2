"""A chain with arbitrary forks that remembers each block that it ever had.

Its transactions post several payloads each, to contracts of one or of several originators. Its
answers can be disturbed between two requests of a step: the chain moves, the connection is cut, or
a replica with another head answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import eth_abi
import requests

from chainkit.contracts.followed import FollowedDeployment, SequenceCounter
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import keccak256
from chainkit.types import TopicKind
from support.chains.fake_chain import FIRST_BLOCK, Block, FakeChain
from support.chains.sealed import BareLog, BareTransaction, transaction_hash

CHAIN_ID = 31337
KINDS = (TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE)
_COUNTER_SELECTOR = keccak256(b"last()")[:4]


@dataclass(frozen=True)
class Payload:
    """Bytes for one contract: an envelope that may be served, or what anybody may post."""

    name: str
    kind: TopicKind
    originator_id: int
    is_valid: bool = True

    @cached_property
    def identifier(self) -> bytes:
        return keccak256(b"identifier " + self.name.encode())

    @cached_property
    def data(self) -> bytes:
        if not self.is_valid:
            return b"\xff" + self.name.encode()
        envelope = envelopes_pb2.ClientEnvelope()
        envelope.aad.target_originator = self.originator_id
        envelope.aad.target_topic = self.topic
        if self.kind is TopicKind.GROUP_MESSAGE:
            envelope.group_message.v1.data = self.name.encode()
        else:
            envelope.identity_update.inbox_id = self.identifier.hex()
        return envelope.SerializeToString()

    @property
    def topic(self) -> bytes:
        return bytes([self.kind]) + self.identifier

    @property
    def contract(self) -> bytes:
        return contract_of(self.kind)


@dataclass(frozen=True)
class Transaction:
    """Posts some payloads; a transaction of the same name is the same one, mined again.

    The transaction may reach the contracts through a contract that decides by its state, so its
    payloads can differ from block to block.
    """

    name: str
    payloads: tuple[Payload, ...]

    @cached_property
    def hash(self) -> bytes:
        return transaction_hash(self.name)


@dataclass(frozen=True)
class Emission:
    """A payload in its place on a branch."""

    block: Block
    transaction: Transaction
    transaction_index: int
    log_index: int
    payload: Payload
    sequence_id: int

    @property
    def originator_id(self) -> int:
        return self.payload.originator_id


def contract_of(kind: TopicKind) -> bytes:
    return bytes([0xA0 + kind]) * 20


def counter_of(originator_id: int) -> bytes:
    return bytes([0xC0 + originator_id]) * 20


class ModelChain(FakeChain):
    """Answers like honest endpoints of a chain that moves, or of several that disagree.

    ``originator_of`` is the originator id of each kind's contract, ``finalized`` the height that
    the chain itself calls final. A ``replica`` answers the requests whose numbers are in
    ``asks_replica``, and calls, also within a batch, by ``replica_methods`` and ``replica_calls``;
    ``disturbances`` happen before the requests of their numbers. ``shown`` is each chain that was
    asked since ``calm``.
    """

    def __init__(self, originator_of: Mapping[TopicKind, int]) -> None:
        self.originator_of = originator_of
        self.finalized = 0
        self.every: dict[bytes, Block] = {}
        self._counts: dict[bytes, dict[int, int]] = {}
        self._emissions: dict[bytes, tuple[Emission, ...]] = {}
        self.calm()
        super().__init__()
        self.deployment = self._deployment()

    def _deployment(self) -> FollowedDeployment:
        contracts = tuple(
            PayloadContract(f"contract {kind}", contract_of(kind), FIRST_BLOCK, kind, originator_id)
            for kind, originator_id in self.originator_of.items()
        )
        counters = {
            originator_id: SequenceCounter(counter_of(originator_id), _COUNTER_SELECTOR, 1)
            for originator_id in self.originator_of.values()
        }
        return FollowedDeployment(CHAIN_ID, self.blocks[0].hash, contracts, counters)

    # ------------------------------------------------------------------ branches

    def mine(self, *blocks: Any) -> None:
        for transactions in blocks:
            parent = self.head
            self.every.setdefault(parent.hash, parent)
            mined = self._mined(transactions, self.counts(parent))
            block = Block.of(parent.number + 1, parent.hash, transactions, self.salt, mined)
            self.blocks.append(block)
            self.every[block.hash] = block

    def adopt(self, head: Block) -> None:
        """Return to a branch that was left before."""
        self.blocks = self.branch(head)

    def branch(self, head: Block) -> list[Block]:
        """All blocks up to one, from block 0."""
        blocks = [head]
        while blocks[-1].number:
            blocks.append(self.every[blocks[-1].parent_hash])
        return blocks[::-1]

    def counts(self, block: Block) -> Mapping[int, int]:
        """The last sequence id of each originator after a block."""
        if block.hash not in self._counts:
            counts = dict.fromkeys(self.originator_of.values(), 0)
            if block.number:
                counts |= self.counts(self.every[block.parent_hash])
            counts |= {each.originator_id: each.sequence_id for each in self.emissions(block)}
            self._counts[block.hash] = counts
        return self._counts[block.hash]

    def emissions(self, block: Block) -> tuple[Emission, ...]:
        """The payloads of one block, in the order of its logs."""
        if block.hash not in self._emissions:
            self._emissions[block.hash] = tuple(self._emitted(block))
        return self._emissions[block.hash]

    def _emitted(self, block: Block) -> Iterator[Emission]:
        if not block.posts:
            return
        last = dict(self.counts(self.every[block.parent_hash]))
        log_index = 0
        for index, transaction in enumerate(block.posts):
            for payload in transaction.payloads:
                last[payload.originator_id] += 1
                sequence_id = last[payload.originator_id]
                yield Emission(block, transaction, index, log_index, payload, sequence_id)
                log_index += 1

    def _mined(
        self, transactions: Sequence[Transaction], counts: Mapping[int, int]
    ) -> Iterator[BareTransaction]:
        last = dict(counts)
        for transaction in transactions:
            logs = []
            for payload in transaction.payloads:
                last[payload.originator_id] += 1
                logs.append(self._log_of(payload, last[payload.originator_id]))
            yield BareTransaction(transaction.name, tuple(logs))

    def _log_of(self, payload: Payload, sequence_id: int) -> BareLog:
        types = ("bytes32", "bytes", "uint64")
        data = eth_abi.encode(types, (payload.identifier, payload.data, sequence_id))
        [topic] = [c.topic for c in self.deployment.contracts if c.address == payload.contract]
        return BareLog(payload.contract, (topic,), data)

    # ------------------------------------------------------------------ answers

    def _eth_getBlockByNumber(self, block: str, full: bool) -> Any:  # noqa: N802
        tagged = hex(self.finalized) if block in ("safe", "finalized") else block
        return super()._eth_getBlockByNumber(tagged, full)

    def _eth_call(self, call: Any, pinned: Any) -> Any:
        originator_id = bytes.fromhex(call["to"][2:])[0] - 0xC0
        for block in self.blocks:
            if "0x" + block.hash.hex() == pinned["blockHash"]:
                return "0x" + self.counts(block)[originator_id].to_bytes(32, "big").hex()
        raise LookupError("header not found")

    # ------------------------------------------------------------------ disturbances

    def calm(self) -> None:
        """Answer from the chain itself from now on, and count requests anew."""
        self.disturbances: dict[int, Callable[[], None]] = {}
        self.replica: list[Block] = []
        self.asks_replica: frozenset[int] = frozenset()
        self.replica_methods: frozenset[str] = frozenset()
        self.replica_calls: frozenset[int] = frozenset()
        self.calls = 0
        self.requests = 0
        self.shown: list[tuple[Block, ...]] = []

    def make_request(self, method: Any, params: Any) -> Any:
        return self._asked(lambda: self._answer(method, params))

    def make_batch_request(self, calls: Any) -> Any:
        return self._asked(
            lambda: [
                self._answer(method, params) | {"id": number}
                for number, (method, params) in enumerate(calls)
            ]
        )

    def _asked(self, answer: Callable[[], Any]) -> Any:
        number, self.requests = self.requests, self.requests + 1
        if disturb := self.disturbances.get(number):
            disturb()
        self.shown.append(tuple(self.blocks))
        if number not in self.asks_replica:
            return answer()
        with self._replica_answering():
            return answer()

    def _answer(self, method: str, params: Any) -> Any:
        number, self.calls = self.calls, self.calls + 1
        if method not in self.replica_methods and number not in self.replica_calls:
            return super().make_request(method, params)
        with self._replica_answering():
            return super().make_request(method, params)

    @contextmanager
    def _replica_answering(self) -> Iterator[None]:
        own, self.blocks = self.blocks, self.replica
        self.shown.append(tuple(self.blocks))
        try:
            yield
        finally:
            self.blocks = own


def cut_connection() -> None:
    """A disturbance: the request gets no answer."""
    raise requests.ConnectionError("refused")
