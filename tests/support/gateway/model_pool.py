"""A pool behind lagging replicas that loses answers, drops, and mines; drawn by one seed."""

from __future__ import annotations

import random
from typing import Any

from chainkit.council.signing.key import KeySigner
from chainkit.errors import EndpointUnavailable, InconsistentAnswer, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.types import BlockHeader, BlockReference
from support.gateway.fake_chain import (
    CHAIN_ID,
    FINAL_BLOCKS,
    GROUP_MESSAGES,
    GWEI,
    FakeChain,
    fees_of,
    field_of,
    nonce_of,
)

SIGNER = KeySigner("payer", b"\7" * 32)
_MOST_LAG = 3
_DEEPEST_REORG = 2
_FOREIGN = b"foreign"


class Killed(BaseException):
    """The gateway's process ended: no handler of its own runs."""


class ModelPool(FakeChain):
    """Each request reaches a replica that may lag; ``is_calm`` ends all mischief."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.is_calm = False
        self.salts: list[bytes] = [bytes(8)]
        self.events: set[str] = set()

    # ------------------------------------------------------------------ what happens to it

    def mine(self, *hashes: bytes, succeeded: bool = True) -> None:
        """Mine some or all of what can be mined: the next nonces, one transaction of each."""
        nonce = self.transaction_count("", None)
        by_nonce = {nonce_of(raw): (hash_, raw) for hash_, raw in self.waiting.items()}
        chosen = []
        while nonce in by_nonce and (self.is_calm or self.random.random() < 0.7):
            chosen.append((*by_nonce[nonce], True))
            nonce += 1
        self.blocks.append(chosen)
        self.salts.append(self.random.randbytes(8))
        self.waiting = {k: raw for k, raw in self.waiting.items() if nonce_of(raw) >= nonce}

    def reorg(self, *, is_dropped: bool = True) -> None:
        for _ in range(min(self.random.randint(1, _DEEPEST_REORG), len(self.blocks))):
            lost = self.blocks.pop()
            self.salts.pop()
            for hash_, raw, _ in lost:
                if self.random.random() < 0.5:
                    self._admit(hash_, raw)

    def drop(self) -> None:
        """Forget a transaction that waits."""
        if self.waiting:
            self.events.add("dropped")
            del self.waiting[self.random.choice(sorted(self.waiting))]

    def displace(self) -> None:
        """Have a transaction of the same key, which the gateway did not send, in the pool."""
        fields = {"type": 2, "chainId": CHAIN_ID, "nonce": self.transaction_count("", None)}
        fees = {"maxPriorityFeePerGas": 900 * GWEI, "maxFeePerGas": 900 * GWEI, "gas": 50_000}
        call = {"to": GROUP_MESSAGES, "value": 0, "data": _FOREIGN + self.random.randbytes(4)}
        raw = SIGNER.sign_transaction(fields | fees | call)
        self.events.add("displaced")
        self._admit(keccak256(raw), raw)

    def published(self) -> list[bytes]:
        """The calldata of the gateway's transactions on the chain."""
        mined = [field_of(raw, 7) for block in self.blocks for _, raw, _ in block]
        # An empty one fills a nonce.
        return [data for data in mined if data and not data.startswith(_FOREIGN)]

    # ------------------------------------------------------------------ what it answers

    def head(self) -> BlockHeader:
        return self.header(self._visible())

    def header(self, block: int | str) -> BlockHeader:
        assert isinstance(block, int)
        if block > self._visible():
            raise InconsistentAnswer(self.name, "a block", "none")
        hash_ = keccak256(b"".join(self.salts[: block + 1]))
        return BlockHeader(block, hash_, bytes(32), block)

    def find_header(self, block: int | str) -> BlockHeader | None:
        assert isinstance(block, int)
        return self.header(block) if block <= self._visible() else None

    def tagged_header(self, tag: str) -> BlockHeader | None:
        number = max(0, len(self.blocks) - FINAL_BLOCKS - self._lag())
        return BlockHeader(number, bytes(32), bytes(32), number)

    def transaction_count(self, account: str, block: BlockReference | None) -> int:
        if block is not None and block.number > self._visible():
            raise InconsistentAnswer(self.name, "a block", "none")
        return super().transaction_count(account, block)

    def pending_transaction_count(self, account: str) -> int:
        lagging = BlockReference(self._visible(), bytes(32))
        nonce = super().transaction_count(account, lagging)
        waiting = {nonce_of(raw) for raw in self.waiting.values()} if not self._lag() else set()
        while nonce in waiting:
            nonce += 1
        return nonce

    def transaction(self, transaction_hash: bytes) -> dict[str, Any] | None:
        if not self._lag() and transaction_hash in self.waiting:
            return {}
        return None if self.receipt(transaction_hash) is None else {}

    def receipt(self, transaction_hash: bytes) -> dict[str, Any] | None:
        answer = super().receipt(transaction_hash)
        lags = answer is None or int(answer["blockNumber"], 16) > self._visible()
        return None if lags else answer

    def send_raw(self, raw: bytes) -> None:
        hash_ = keccak256(raw)
        chance = self.random.random() if not self.is_calm else 1.0
        if chance < 0.1:
            self._note("lost", EndpointUnavailable(self.name, "an answer", "none"))
        if chance < 0.15:
            self._note("refused", RefusedRequest(self.name, "a result", "insufficient funds"))
        if chance < 0.2:
            self._note("killed before", Killed())
        words = self._admit(hash_, raw)
        if chance < 0.3:
            self._note("killed after", Killed())
        if chance < 0.4:
            self._note("answer lost", EndpointUnavailable(self.name, "an answer", "a time-out"))
        if chance < 0.5:
            # The second attempt, at a replica whose state lags.
            refused = RefusedRequest(self.name, "a result", "insufficient funds")
            refused.is_repeated = True
            self._note("refused again", refused)
        if chance < 0.6 and words is None:
            words = self._admit(hash_, raw)
        if words is not None:
            self._note(words, RefusedRequest(self.name, "a result", words))

    def _admit(self, hash_: bytes, raw: bytes) -> str | None:
        """Take a transaction into the pool, or return the words of a refusal."""
        if hash_ in self.waiting:
            return "already known"
        if nonce_of(raw) < super().transaction_count("", None):
            return "nonce too low"
        for other, waiting in self.waiting.items():
            if nonce_of(waiting) == nonce_of(raw):
                needed = [fee + fee // 10 for fee in fees_of(waiting)]
                if any(fee < least for fee, least in zip(fees_of(raw), needed, strict=True)):
                    return "replacement transaction underpriced"
                self.events.add("replaced")
                del self.waiting[other]
                break
        self.waiting[hash_] = raw
        return None

    def _note(self, event: str, error: BaseException) -> None:
        self.events.add(event)
        raise error

    def _lag(self) -> int:
        return (
            0 if self.is_calm or self.random.random() < 0.6 else self.random.randint(1, _MOST_LAG)
        )

    def _visible(self) -> int:
        return max(0, len(self.blocks) - self._lag())
