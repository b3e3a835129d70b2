"""A chain that mines, forks and shortens itself at random, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from chainkit.text.hexadecimal import parse_bytes
from support import payloads
from support.chains.branches import GROUP, INBOX
from support.chains.chain import LocalChain, dev_address

SENDERS = {dev_address(number).lower(): number for number in range(2, 9)}
DEEPEST_REORG = 5


class RestlessChain:
    """The chain never goes below its first block."""

    def __init__(self, chain: LocalChain, random: Random) -> None:
        self.chain = chain
        self._random = random
        self._base = chain.head().number

    def move(self) -> None:
        """Change the chain once."""
        moves = [self.publish, self.publish, self._mine]
        if self.chain.head().number - self._base > DEEPEST_REORG:
            moves += [self._reorg, self._reorg, self._shorten]
        self._random.choice(moves)()

    def publish(self) -> None:
        """Mine a block of some payloads, and perhaps an empty one."""
        self.chain.pause_mining()
        for sender in self._random.sample(sorted(SENDERS.values()), self._random.randint(1, 5)):
            self._post(sender)
        self.chain.mine(self._random.randint(1, 2))
        self.chain.resume_mining()

    def _post(self, sender: int) -> None:
        seed = self._random.getrandbits(32)
        kind = self._random.randrange(4)
        if kind == 0:
            self.chain.publish_message(GROUP, b"\xff" + seed.to_bytes(4, "big"), sender)
        elif kind == 1:
            update = payloads.identity_update(INBOX, seed=seed)
            self.chain.publish_identity_update(INBOX, update, sender)
        else:
            self.chain.publish_message(GROUP, payloads.commit(GROUP, seed=seed), sender)

    def _mine(self) -> None:
        self.chain.mine(self._random.randint(1, 4))

    def _shorten(self) -> None:
        self.chain.rewind(self._random.randint(1, 3))

    def _reorg(self) -> None:
        """Drop what some senders sent; mine the rest where it was, or a block later."""
        depth = self._random.randint(1, DEEPEST_REORG)
        first = self.chain.head().number - depth + 1
        shifts = {sender: self._random.choice((None, 0, 0, 1)) for sender in SENDERS}
        kept = [
            (raw, min(offset + shift, depth - 1))
            for offset in range(depth)
            for sender, raw in self._sent(first + offset)
            if (shift := shifts[sender]) is not None
        ]
        self.chain.reorg(depth, kept)

    def _sent(self, height: int) -> Iterator[tuple[str, bytes]]:
        block = self.chain.anvil.request("eth_getBlockByNumber", hex(height), True)
        for transaction in block["transactions"]:
            raw = self.chain.raw_transaction(parse_bytes(transaction["hash"]))
            yield transaction["from"].lower(), raw
