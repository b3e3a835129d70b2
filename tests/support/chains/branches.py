"""One chain before and after a reorg, each on an anvil of its own, so that both can be asked.

Time is fixed, so the two share each block up to the fork by hash, and each test may follow the
first branch and then the second without a reorg of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chainkit.text.hexadecimal import parse_bytes
from support import payloads
from support.chains.chain import Deployment, LocalChain, redeployed

GROUP, INBOX = b"\x11" * 32, b"\x22" * 32
GENESIS_TIME = 1_700_000_000
SHARED_ROUNDS = 5
"""Rounds of seven blocks each below the fork."""


@dataclass(frozen=True)
class Branches:
    """The same chain twice."""

    before: LocalChain
    after: LocalChain


@contextmanager
def two_branches(deployment: Deployment, folder: Path) -> Iterator[Branches]:
    """Start both anvils and publish; the second branch is longer by two blocks."""
    (folder / "before").mkdir()
    (folder / "after").mkdir()
    with (
        timed_chain(deployment, folder / "before") as before,
        timed_chain(deployment, folder / "after") as after,
    ):
        start = before.head().number
        for number in range(SHARED_ROUNDS):
            publish_round(before, number)
        fork = before.head()
        for height in range(start + 1, fork.number + 1):
            mine_block(after, raw_transactions(before, height))
        assert after.head() == fork
        publish_round(before, SHARED_ROUNDS)
        one, four, _, dropped, *last = (
            raw_transactions(before, fork.number + offset) for offset in range(1, 8)
        )
        assert one and four and dropped and all(last)
        branch = [one, [], four, last[0], last[2], last[1], [], []]
        for raws in branch:
            mine_block(after, raws)
        after.publish_message(GROUP, payloads.commit(GROUP, seed=77), 7)
        yield Branches(before, after)


@contextmanager
def timed_chain(deployment: Deployment, folder: Path) -> Iterator[LocalChain]:
    """A chain with a block every two seconds of its own time, the same on each machine."""
    start = ("--timestamp", str(GENESIS_TIME))
    with redeployed(deployment, folder, *start, block_seconds=2) as chain:
        yield chain


def publish_round(chain: LocalChain, number: int) -> None:
    """Mine seven blocks: one payload, several, none, malformed ones, a large one."""
    seed = 100 * number
    chain.publish_message(GROUP, payloads.commit(GROUP, seed=seed), 2)
    chain.pause_mining()
    for offset, sender in enumerate((3, 4, 5)):
        chain.publish_message(GROUP, payloads.commit(GROUP, seed=seed + offset), sender)
    chain.publish_identity_update(INBOX, payloads.identity_update(INBOX, seed=seed), 6)
    chain.mine(2)
    chain.resume_mining()
    chain.publish_identity_update(INBOX, payloads.identity_update(INBOX, seed=seed + 1), 2)
    chain.publish_message(GROUP, b"\xff not an envelope %d" % number, 3)
    chain.publish_message(INBOX, payloads.commit(GROUP, seed=seed), 4)
    chain.publish_message(GROUP, payloads.commit(GROUP, size=3000, seed=seed + 5), 5)


def raw_transactions(chain: LocalChain, height: int) -> list[bytes]:
    """The signed transactions of a block, in its order."""
    block = chain.anvil.request("eth_getBlockByNumber", hex(height), False)
    return [chain.raw_transaction(parse_bytes(item)) for item in block["transactions"]]


def mine_block(chain: LocalChain, raws: Sequence[bytes]) -> None:
    """Mine one block of these transactions."""
    chain.pause_mining()
    for raw in raws:
        chain.send_raw(raw)
    chain.mine()
    chain.resume_mining()
