"""A chain in memory behind a real Endpoint: blocks are lists of posts, a fork is one line.

chain = FakeChain()
chain.mine([a, b], [], [c])
chain.fork(2, [b], [c, d])      # two blocks back, then two others
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import eth_abi

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment
from chainkit.ethereum.bloom import bloom_mask
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit.signatures import keccak256
from chainkit.types import TopicKind
from support import payloads

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

    @property
    def transaction_hash(self) -> bytes:
        return keccak256(b"transaction " + self.name.encode())

    @property
    def identifier(self) -> bytes:
        return keccak256(b"identifier " + self.name.encode())

    @property
    def payload(self) -> bytes:
        if not self.is_valid:
            return b"\xff" + self.name.encode()
        make = {
            TopicKind.GROUP_MESSAGE: payloads.commit,
            TopicKind.IDENTITY_UPDATE: payloads.identity_update,
        }[self.kind]
        return make(self.identifier, size=20)


def update(name: str) -> Post:
    return Post(name, TopicKind.IDENTITY_UPDATE)


def malformed(name: str) -> Post:
    return Post(name, is_valid=False)


@dataclass(frozen=True)
class Block:
    number: int
    parent_hash: bytes
    posts: tuple[Post, ...]
    salt: int

    @property
    def hash(self) -> bytes:
        names = ",".join(post.name for post in self.posts)
        return keccak256(f"{self.number} {self.salt} {names} ".encode() + self.parent_hash)

    @property
    def timestamp(self) -> int:
        return _TIME_OF_GENESIS + 2 * self.number + self.salt


def _contract(number: int) -> DeployedContract:
    return DeployedContract(f"contract {number}", bytes([number]) * 20, FIRST_BLOCK, bytes(32))


class FakeChain:
    """Answers like an honest endpoint, until ``tamper`` changes the answers."""

    def __init__(self) -> None:
        self.blocks = [Block(0, bytes(32), (), 0)]
        self.salt = 0
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
            self.blocks.append(Block(parent.number + 1, parent.hash, tuple(posts), self.salt))

    def rewind(self, depth: int) -> None:
        del self.blocks[len(self.blocks) - depth :]

    def fork(self, depth: int, *blocks: list[Post]) -> None:
        self.rewind(depth)
        self.salt += 1
        self.mine(*blocks)

    def counter(self, block: Block) -> int:
        return sum(post.times for b in self.blocks[: block.number + 1] for post in b.posts)

    def logs(self) -> Iterator[dict[str, Any]]:
        sequence_id = 0
        for block in self.blocks:
            log_index = 0
            hashes = [post.transaction_hash for post in block.posts]
            for post in block.posts:
                # Posts of one name are one transaction.
                index = hashes.index(post.transaction_hash)
                for _ in range(post.times):
                    sequence_id += 1
                    yield self._log(block, index, log_index, post, sequence_id)
                    log_index += 1

    def _log(
        self, block: Block, index: int, log_index: int, post: Post, sequence_id: int
    ) -> dict[str, Any]:
        is_message = post.kind is TopicKind.GROUP_MESSAGE
        contract = self.record.group_messages if is_message else self.record.identity_updates
        topic = MESSAGE_SENT_TOPIC if is_message else IDENTITY_UPDATE_CREATED_TOPIC
        types = ("bytes32", "bytes", "uint64")
        data = eth_abi.encode(types, (post.identifier, post.payload, sequence_id))
        return {
            "address": "0x" + contract.address.hex(),
            "topics": ["0x" + topic.hex()],
            "data": "0x" + data.hex(),
            "blockNumber": hex(block.number),
            "blockHash": "0x" + block.hash.hex(),
            "transactionHash": "0x" + post.transaction_hash.hex(),
            "transactionIndex": hex(index),
            "logIndex": hex(log_index),
            "removed": False,
        }

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

    def _eth_getBlockByNumber(self, block: str, _: bool) -> Any:  # noqa: N802
        tags = self.tags | {"latest": self.head.number}
        if block in ("safe", "finalized") and block not in tags:
            return None
        number = tags[block] if block in tags else int(block, 16)
        if number > self.head.number:
            return None
        found = self.blocks[number]
        return {
            "number": hex(found.number),
            "hash": "0x" + found.hash.hex(),
            "parentHash": "0x" + found.parent_hash.hex(),
            "timestamp": hex(found.timestamp),
            "logsBloom": self._bloom(found),
        }

    def _bloom(self, block: Block) -> str:
        logs = [log for log in self.logs() if log["blockHash"] == "0x" + block.hash.hex()]
        mask = 0
        for log in logs:
            mask |= bloom_mask([bytes.fromhex(v[2:]) for v in (log["address"], *log["topics"])])
        return "0x" + mask.to_bytes(256, "big").hex()

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
