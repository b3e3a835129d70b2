"""A chain in memory behind a real Endpoint: blocks are lists of posts, a fork is one line.

chain = FakeChain()
chain.mine([a, b], [], [c])
chain.fork(2, [b], [c, d])      # two blocks back, then two others
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import eth_abi

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit.signatures import keccak256
from chainkit.types import HASH_LENGTH, TopicKind
from support import payloads
from support.chains.sealed import BareLog, BareTransaction, SealedBlock, seal, transaction_hash

FIRST_BLOCK = 3
_BLOCKS_BEFORE = 3
_TIME_OF_GENESIS = 1_700_000_000


@dataclass(frozen=True)
class Post:
    """A transaction that posts one payload; its hash follows from its name."""

    name: str
    kind: TopicKind = TopicKind.GROUP_MESSAGE
    is_valid: bool = True
    times: int = 1
    """How often the transaction posts it."""
    id_length: int = HASH_LENGTH
    """Bytes of the group id that the payload names; on the chain it is padded with zeros."""

    @property
    def transaction_hash(self) -> bytes:
        return transaction_hash(self.name)

    @property
    def identifier(self) -> bytes:
        return self.named_identifier.ljust(HASH_LENGTH, b"\0")

    @property
    def named_identifier(self) -> bytes:
        return keccak256(b"identifier " + self.name.encode())[: self.id_length]

    @property
    def payload(self) -> bytes:
        if not self.is_valid:
            return b"\xff" + self.name.encode()
        make = {
            TopicKind.GROUP_MESSAGE: payloads.commit,
            TopicKind.IDENTITY_UPDATE: payloads.identity_update,
        }[self.kind]
        return make(self.named_identifier, size=20)


def update(name: str) -> Post:
    return Post(name, TopicKind.IDENTITY_UPDATE)


def malformed(name: str) -> Post:
    return Post(name, is_valid=False)


@dataclass(frozen=True)
class Block:
    number: int
    parent_hash: bytes
    posts: tuple[Any, ...]
    salt: int
    sealed: SealedBlock = field(compare=False, repr=False)

    @classmethod
    def of(
        cls,
        number: int,
        parent_hash: bytes,
        posts: Sequence[Any],
        salt: int,
        transactions: Iterable[BareTransaction],
    ) -> Block:
        time = _TIME_OF_GENESIS + 2 * number + salt
        sealed = seal(number, parent_hash, time, list(transactions))
        return cls(number, parent_hash, tuple(posts), salt, sealed)

    @property
    def hash(self) -> bytes:
        return self.sealed.hash

    @property
    def timestamp(self) -> int:
        return int(self.sealed.header["timestamp"], 16)


def _contract(number: int) -> DeployedContract:
    return DeployedContract(f"contract {number}", bytes([number]) * 20, FIRST_BLOCK, bytes(32))


class FakeChain:
    """Answers like an honest endpoint, until ``tamper`` changes the answers."""

    def __init__(self) -> None:
        self.blocks = [Block.of(0, bytes(32), (), 0, ())]
        self.salt = 0
        self.offers_receipts = True
        self.tags: dict[str, int] = {}
        """Heights of the tags ``safe`` and ``finalized``."""
        self.tamper: Callable[[str, Any, Any], Any] = lambda method, params, result: result
        self.endpoint = Endpoint(self, "fake chain", RetryPolicy(attempts=1))
        contracts = (_contract(number) for number in range(1, 5))
        self.record = DeploymentRecord(31337, self.blocks[0].hash, *contracts, deployer=bytes(20))
        self.deployment = FollowedDeployment.of(self.record)
        self.mine(*[[]] * (_BLOCKS_BEFORE - 1))

    @property
    def head(self) -> Block:
        return self.blocks[-1]

    def mine(self, *blocks: list[Post]) -> None:
        for posts in blocks:
            parent = self.head
            transactions = self._transactions(posts, self.counter(parent))
            self.blocks.append(
                Block.of(parent.number + 1, parent.hash, posts, self.salt, transactions)
            )

    def rewind(self, depth: int) -> None:
        del self.blocks[len(self.blocks) - depth :]

    def fork(self, depth: int, *blocks: list[Post]) -> None:
        self.rewind(depth)
        self.salt += 1
        self.mine(*blocks)

    def counter(self, block: Block) -> int:
        return sum(post.times for b in self.blocks[: block.number + 1] for post in b.posts)

    def logs(self) -> Iterator[dict[str, Any]]:
        for block in self.blocks:
            yield from block.sealed.logs

    def _transactions(self, posts: Sequence[Post], count: int) -> Iterator[BareTransaction]:
        # Posts of one name are one transaction.
        for name, same in groupby(posts, lambda post: post.name):
            repeated = [post for post in same for _ in range(post.times)]
            logs = [self._log(post, count + number) for number, post in enumerate(repeated, 1)]
            count += len(logs)
            yield BareTransaction(name, tuple(logs))

    def _log(self, post: Post, sequence_id: int) -> BareLog:
        is_message = post.kind is TopicKind.GROUP_MESSAGE
        contract = self.record.group_messages if is_message else self.record.identity_updates
        topic = MESSAGE_SENT_TOPIC if is_message else IDENTITY_UPDATE_CREATED_TOPIC
        types = ("bytes32", "bytes", "uint64")
        data = eth_abi.encode(types, (post.identifier, post.payload, sequence_id))
        return BareLog(contract.address, (topic,), data)

    # ------------------------------------------------------------------ JSON-RPC

    def make_request(self, method: Any, params: Any) -> Any:
        answer = {"jsonrpc": "2.0", "id": 1}
        try:
            result = getattr(self, f"_{method}")(*params)
        except LookupError as error:
            return answer | {"error": {"code": -32000, "message": str(error)}}
        return answer | {"result": self.tamper(method, list(params), result)}

    def make_batch_request(self, requests: Any) -> Any:
        return [
            self.make_request(method, params) | {"id": number}
            for number, (method, params) in enumerate(requests)
        ]

    def _eth_getBlockByNumber(self, block: str, is_whole: bool) -> Any:  # noqa: N802
        tags = self.tags | {"latest": self.head.number}
        if block in ("safe", "finalized") and block not in tags:
            return None
        number = tags[block] if block in tags else int(block, 16)
        if number > self.head.number:
            return None
        return self.blocks[number].sealed.answer(is_whole)

    def _eth_getBlockReceipts(self, block: str) -> Any:  # noqa: N802
        if not self.offers_receipts:
            raise LookupError("the method is not available")
        number = int(block, 16)
        return list(self.blocks[number].sealed.receipts) if number <= self.head.number else None

    def _eth_getTransactionReceipt(self, transaction_hash: str) -> Any:  # noqa: N802
        if not self.offers_receipts:
            raise LookupError("the method is not available")
        receipts = (each for block in self.blocks for each in block.sealed.receipts)
        return next(
            (each for each in receipts if each["transactionHash"] == transaction_hash), None
        )

    def _eth_chainId(self) -> Any:  # noqa: N802
        return hex(self.record.chain_id)

    def _eth_getLogs(self, query: Any) -> Any:  # noqa: N802
        if block_hash := query.get("blockHash"):
            if all("0x" + block.hash.hex() != block_hash for block in self.blocks):
                raise LookupError("unknown block")
            return [log for log in self.logs() if log["blockHash"] == block_hash]
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        return [log for log in self.logs() if first <= int(log["blockNumber"], 16) <= last]

    def _eth_call(self, call: Any, pinned: Any) -> Any:
        assert call["to"] == "0x" + self.record.originator_sequence.address.hex()
        for block in self.blocks:
            if "0x" + block.hash.hex() == pinned["blockHash"]:
                if block.number < self.record.originator_sequence.block:
                    return "0x"
                return "0x" + self.counter(block).to_bytes(32, "big").hex()
        raise LookupError("header not found")


class SparseChain(FakeChain):
    """A chain whose two contracts emit payloads under any ids, with an originator each (ADR 50)."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, int] = {}
        """Sequence ids by the posts' names."""
        messages, updates = self.deployment.contracts
        contracts = (
            replace(messages, is_sparse=True),
            replace(updates, is_sparse=True, originator_id=1),
        )
        counters = {0: None, 1: None}
        self.deployment = replace(self.deployment, contracts=contracts, counters=counters)

    def _log(self, post: Post, sequence_id: int) -> BareLog:
        return super()._log(post, self.ids[post.name])
