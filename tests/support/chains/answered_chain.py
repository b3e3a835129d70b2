"""A chain of any length that answers from memory: payloads, their counter, and forks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import eth_abi

from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.protocol.events import MESSAGE_SENT_TOPIC
from chainkit.signatures import keccak256
from chainkit.types import BlockReference
from support.endpoints.fake_endpoint import FakeProvider, RpcError

Answer = dict[str, Any]


def contract(name: str, byte: str, number: int) -> DeployedContract:
    return DeployedContract(name, bytes.fromhex(byte * 20), number, b"\x00" * 32)


RECORD = DeploymentRecord(
    chain_id=1,
    genesis_hash=b"\x00" * 32,
    group_messages=contract("GroupMessages", "11", 2),
    identity_updates=contract("IdentityUpdates", "22", 2),
    node_registry=contract("NodeRegistry", "44", 1),
    originator_sequence=contract("OriginatorSequence", "33", 2),
    deployer=bytes(20),
)


def hash_hex(number: int) -> str:
    return "0x" + number.to_bytes(32, "big").hex()


class AnsweredChain(FakeProvider):
    """Blocks 0 to ``head``; from ``forked_from`` on they belong to another branch.

    ``posts`` are the sequence ids by the block that holds them, at most one each; ``counters``
    what the contract's counter answers by height, else what it must. ``refused`` are the methods
    that it does not offer, with what it answers instead.
    """

    def __init__(
        self,
        posts: Mapping[int, int] = MappingProxyType({}),
        head: int = 9,
        forked_from: int | None = None,
        counters: Mapping[int, Any] = MappingProxyType({}),
        refused: Mapping[str, RpcError] = MappingProxyType({}),
    ) -> None:
        answers: dict[str, Callable[..., Any]] = {
            "eth_getBlockByNumber": self.block_at,
            "eth_getBlockReceipts": self.receipts_at,
            "eth_getTransactionReceipt": self.receipt_of,
            "eth_call": self.counter_at,
        }
        super().__init__(answers | refused)
        self.posts = posts
        self.head = head
        self.forked_from = forked_from
        self.counters = counters

    def block_hash(self, number: int) -> str:
        is_forked = self.forked_from is not None and number >= self.forked_from
        return hash_hex((2000 if is_forked else 1000) + number)

    def reference(self, number: int) -> BlockReference:
        return BlockReference(number, bytes.fromhex(self.block_hash(number)[2:]))

    def block_at(self, height: str, is_whole: bool = False) -> Answer | None:
        number = int(height, 16)
        if number > self.head:
            return None
        transactions = [self._transaction(number)] if number in self.posts else []
        return {
            "number": height,
            "hash": self.block_hash(number),
            "parentHash": self.block_hash(number - 1) if number else hash_hex(0),
            "timestamp": hex(1_700_000_000 + number),
            "gasLimit": hex(30_000_000),
            "gasUsed": hex(50_000 * len(transactions)),
            "transactions": transactions if is_whole else [t["hash"] for t in transactions],
        }

    def receipts_at(self, height: str) -> list[Answer] | None:
        number = int(height, 16)
        if number > self.head:
            return None
        return [self._receipt(number)] if number in self.posts else []

    def receipt_of(self, transaction_hash: str) -> Answer:
        return self._receipt(int(transaction_hash, 16) // 100)

    def counter_at(self, call: Answer, pinned: Answer) -> Any:
        assert call == {"to": "0x" + "33" * 20, "data": "0x" + keccak256(b"last()")[:4].hex()}
        number = int(pinned["blockHash"], 16) % 1000
        posted = (id_ for block, id_ in self.posts.items() if block <= number)
        answer = self.counters.get(number, max(posted, default=0))
        return hash_hex(answer) if isinstance(answer, int) else answer

    def _place(self, number: int) -> Answer:
        block = {"blockHash": self.block_hash(number), "blockNumber": hex(number)}
        return block | {"transactionIndex": "0x0"}

    def _transaction(self, number: int) -> Answer:
        return self._place(number) | {
            "hash": hash_hex(number * 100),
            "type": "0x0",
            "from": "0x" + "44" * 20,
            "to": "0x" + "11" * 20,
            "nonce": hex(number),
            "gas": "0x5208",
            "gasPrice": "0x1",
            "value": "0x0",
            "input": "0x" + "ab" * (number % 7),
        }

    def _receipt(self, number: int) -> Answer:
        place = self._place(number) | {"transactionHash": hash_hex(number * 100)}
        arguments = (b"\x01" * 32, b"payload", self.posts[number])
        data = eth_abi.encode(("bytes32", "bytes", "uint64"), arguments)
        log = place | {
            "address": "0x" + "11" * 20,
            "topics": ["0x" + MESSAGE_SENT_TOPIC.hex()],
            "data": "0x" + data.hex(),
            "logIndex": "0x0",
        }
        return place | {
            "status": "0x1",
            "from": "0x" + "44" * 20,
            "to": "0x" + "11" * 20,
            "gasUsed": hex(50_000),
            "cumulativeGasUsed": hex(50_000),
            "effectiveGasPrice": "0x1",
            "logs": [log],
        }
