"""A chain that keeps transactions waiting until it is told to mine them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rlp

from chainkit.chain import Endpoint
from chainkit.contracts.interface import shipped_interface
from chainkit.errors import ChainError, RefusedRequest
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.signatures import keccak256
from chainkit.types import BlockHeader, BlockReference, TopicKind
from support.endpoints.fake_endpoint import FakeProvider

GROUP_MESSAGES, IDENTITY_UPDATES = b"\x11" * 20, b"\x22" * 20
CHAIN_ID = 31337
CONTRACTS = {
    TopicKind.GROUP_MESSAGE: PayloadContract(
        "GroupMessages", GROUP_MESSAGES, 0, TopicKind.GROUP_MESSAGE
    ),
    TopicKind.IDENTITY_UPDATE: PayloadContract(
        "IdentityUpdates", IDENTITY_UPDATES, 0, TopicKind.IDENTITY_UPDATE
    ),
}
GAS_USED, PRICE = 50_000, 3 * 10**9
GWEI = 10**9
FINAL_BLOCKS = 8
"""Blocks on top of the last one that is final."""


class FakeChain(Endpoint):
    """An endpoint, and the pool that always chooses it, beside endpoints of other hosts."""

    def __init__(self) -> None:
        super().__init__(FakeProvider({}), "http://chain.test")
        self.branch = b"\0"
        self.waiting: dict[bytes, bytes] = {}
        self.blocks: list[list[tuple[bytes, bytes, bool]]] = []
        self.sent: list[bytes] = []
        self.tip, self.base_fee = GWEI, GWEI
        self.on_send: Callable[[bytes], None] = lambda _: None
        self.refusal: ChainError | None = None
        self.claimed_nonce: int | None = None
        """The count of transactions that the endpoint answers; None for the true one."""
        self.hosts: list[Endpoint] = []

    def choose(self) -> Endpoint:
        return self

    def others(self, endpoint: Endpoint) -> list[Endpoint]:
        return self.hosts

    def mine(self, *hashes: bytes, succeeded: bool = True) -> None:
        """Mine these, or all that wait, into one block."""
        chosen = hashes or tuple(self.waiting)
        nonces = {nonce_of(self.waiting[each]) for each in chosen}
        self.blocks.append([(each, self.waiting[each], succeeded) for each in chosen])
        # A nonce is used once: what was replaced is gone.
        self.waiting = {k: v for k, v in self.waiting.items() if nonce_of(v) not in nonces}

    def reorg(self, *, is_dropped: bool = True) -> None:
        """Take the last block back; its transactions wait again, or are gone."""
        lost = self.blocks.pop()
        self.branch = bytes([self.branch[0] + 1])
        if not is_dropped:
            self.waiting |= {each: raw for each, raw, _ in lost}

    def head(self) -> BlockHeader:
        return self.header(len(self.blocks))

    def header(self, block: int | str) -> BlockHeader:
        assert isinstance(block, int)
        hash_ = keccak256(self.branch + block.to_bytes(8, "big"))
        return BlockHeader(block, hash_, bytes(32), block)

    def find_header(self, block: int | str) -> BlockHeader | None:
        assert isinstance(block, int)
        return self.header(block) if block <= len(self.blocks) else None

    def tagged_header(self, tag: str) -> BlockHeader | None:
        return self.header(max(0, self.head().number - FINAL_BLOCKS))

    def transaction_count(self, account: str, block: BlockReference | None) -> int:
        return sum(map(len, self.blocks if block is None else self.blocks[: block.number]))

    def pending_transaction_count(self, account: str) -> int:
        if self.claimed_nonce is not None:
            return self.claimed_nonce
        return self.transaction_count(account, None) + len(self.waiting)

    def balance(self, account: str, block: Any) -> int:
        return 10**18

    def estimate_gas(self, message: Any, block: Any) -> int:
        if self.refusal is not None:
            raise self.refusal
        return GAS_USED

    def priority_fee(self) -> int:
        return self.tip

    def next_base_fee(self, block: Any) -> int:
        return self.base_fee

    def send_raw(self, raw: bytes) -> None:
        hash_ = keccak256(raw)
        self.sent.append(hash_)
        self.on_send(raw)
        if nonce_of(raw) < self.transaction_count("", None):
            raise RefusedRequest(self.name, "a result", "nonce too low")
        self.waiting[hash_] = raw

    def transaction(self, transaction_hash: bytes) -> dict[str, Any] | None:
        is_known = transaction_hash in self.waiting or self._place(transaction_hash)
        return {} if is_known else None

    def receipt(self, transaction_hash: bytes) -> dict[str, Any] | None:
        place = self._place(transaction_hash)
        if place is None:
            return None
        number, raw, succeeded = place
        block_hash = "0x" + self.header(number).hash.hex()
        logs = [log_of(raw, transaction_hash, number, block_hash)] if succeeded else []
        return {
            "transactionHash": "0x" + transaction_hash.hex(),
            "blockNumber": hex(number),
            "blockHash": block_hash,
            "status": hex(succeeded),
            "to": "0x" + field_of(raw, 5).hex(),
            "logs": logs,
            "gasUsed": hex(GAS_USED),
            "effectiveGasPrice": hex(PRICE),
        }

    def _place(self, transaction_hash: bytes) -> tuple[int, bytes, bool] | None:
        for number, block in enumerate(self.blocks, 1):
            for hash_, raw, succeeded in block:
                if hash_ == transaction_hash:
                    return number, raw, succeeded
        return None


def reverted(contract: str, name: str, *arguments: int) -> RefusedRequest:
    """The refusal of a call that reverts with one of a contract's errors, of numbers alone."""
    signature = f"{name}({','.join(['uint256'] * len(arguments))})".encode()
    words = b"".join(each.to_bytes(32, "big") for each in arguments)
    error = RefusedRequest("http://chain.test", "a result", "execution reverted")
    error.data = "0x" + (keccak256(signature)[:4] + words).hex()
    assert shipped_interface(contract).revert_name(error) == name
    return error


def nonce_of(raw: bytes) -> int:
    return int.from_bytes(field_of(raw, 1), "big")


def fees_of(raw: bytes) -> tuple[int, int]:
    """Tip and highest fee per gas, in wei."""
    return int.from_bytes(field_of(raw, 2), "big"), int.from_bytes(field_of(raw, 3), "big")


def field_of(raw: bytes, number: int) -> bytes:
    field: bytes = rlp.decode(raw[1:])[number]
    return field


def log_of(raw: bytes, transaction_hash: bytes, number: int, block_hash: str) -> dict[str, Any]:
    to = field_of(raw, 5)
    topic = keccak256(
        b"MessageSent(bytes32,bytes,uint64)"
        if to == GROUP_MESSAGES
        else b"IdentityUpdateCreated(bytes32,bytes,uint64)"
    )
    words = (bytes(32), (96).to_bytes(32, "big"), number.to_bytes(32, "big"), bytes(32))
    return {
        "address": "0x" + to.hex(),
        "topics": ["0x" + topic.hex()],
        "data": "0x" + b"".join(words).hex(),
        "blockNumber": hex(number),
        "blockHash": block_hash,
        "transactionHash": "0x" + transaction_hash.hex(),
        "transactionIndex": "0x0",
        "logIndex": "0x0",
        "removed": False,
    }
