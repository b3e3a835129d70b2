r"""Drills a reorg on anvil: replaces the newest blocks, loses some transactions, moves the others.

    ape run reorg --network http://127.0.0.1:8545 --depth 5 --drop 3 --json

A lost transaction takes its sender's later ones with it (their nonces no longer fit), so only a
sender's last ones are dropped. The other transactions are mined again in another order and in new
blocks. The result is then read from the chain, not taken from the plan.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from chainkit.chain import Endpoint
from chainkit.errors import ChainError, ConfigurationError, TransactionFailed
from chainkit.text.hexadecimal import hex0x, parse_bytes
from scripts._connection import connected, network_option
from scripts._mining import mining_stopped, replace_blocks

_REQUEST_BYTES = 2 * 1024 * 1024
"""The largest request that anvil accepts, unless it was started without that limit."""


@dataclass(frozen=True, slots=True)
class Mined:
    """A transaction of the blocks that are to be replaced."""

    hash: str
    sender: str
    nonce: int
    block_hash: str
    raw: str
    """The signed transaction, 0x-prefixed."""


Placement = tuple[str, int]
"""A raw transaction, and the block for it: 0 is the oldest of the replaced ones."""


def check_anvil(endpoint: Endpoint) -> None:
    """Raise ConfigurationError if the endpoint is not anvil: nothing else may be reorganised."""
    version = str(endpoint.request("web3_clientVersion"))
    if not version.lower().startswith("anvil/"):
        raise ConfigurationError(f"client at {endpoint.name}", "anvil", version)


def newest(endpoint: Endpoint, depth: int) -> list[Mined]:
    """Return the transactions of the newest ``depth`` blocks in chain order."""
    head = endpoint.head().number
    if depth >= head:
        raise ConfigurationError("depth", f"less than the height {head}", depth)
    heights = range(head - depth + 1, head + 1)
    blocks = endpoint.full_blocks(heights)
    found = [transaction for block in blocks for transaction in block["transactions"]]
    raws = endpoint.raw_transactions([parse_bytes(item["hash"]) for item in found])
    if endpoint.head().number != head:
        # A block that anvil was mining when its mining was stopped.
        return newest(endpoint, depth)
    return [_mined(endpoint, item, raw) for item, raw in zip(found, raws, strict=True)]


def _mined(endpoint: Endpoint, item: dict[str, Any], raw: bytes | None) -> Mined:
    if raw is None:
        raise endpoint.inconsistent(f"raw transaction {item['hash']}", "a mined one", "none")
    nonce = int(item["nonce"], 16)
    return Mined(item["hash"], item["from"], nonce, item["blockHash"], hex0x(raw))


def choose_dropped(found: Sequence[Mined], drop: int, chance: random.Random) -> set[str]:
    """Choose the hashes to drop: always a sender's last transaction that is still kept."""
    if drop > len(found):
        raise ConfigurationError("drop", f"at most {len(found)} transactions", drop)
    kept: dict[str, list[Mined]] = {}
    for item in sorted(found, key=lambda item: item.nonce):
        kept.setdefault(item.sender, []).append(item)
    dropped = set()
    for _ in range(drop):
        sender = chance.choice(sorted(sender for sender, items in kept.items() if items))
        dropped.add(kept[sender].pop().hash)
    return dropped


def place(kept: Sequence[Mined], depth: int, chance: random.Random) -> list[Placement]:
    """Distribute transactions over the new blocks, each sender's in the order of their nonces."""
    senders = [item.sender for item in kept]
    chance.shuffle(senders)
    waiting = {
        sender: iter(sorted((item for item in kept if item.sender == sender), key=_nonce))
        for sender in set(senders)
    }
    blocks = sorted(chance.randrange(depth) for _ in kept)
    return [
        (next(waiting[sender]).raw, block) for sender, block in zip(senders, blocks, strict=True)
    ]


def _nonce(item: Mined) -> int:
    return item.nonce


def reorganise(endpoint: Endpoint, depth: int, drop: int | None, share: float, seed: int) -> Any:
    """Replace the newest ``depth`` blocks and return the outcome of their transactions.

    Drops ``drop`` transactions, or the part ``share`` of them where ``drop`` is None.
    """
    check_anvil(endpoint)
    chance = random.Random(seed)
    with mining_stopped(endpoint):
        found = newest(endpoint, depth)
        count = round(len(found) * share) if drop is None else drop
        dropped = choose_dropped(found, count, chance)
        placements = place([item for item in found if item.hash not in dropped], depth, chance)
        _replace(endpoint, depth, placements)
        return outcome(endpoint, found, depth)


def _replace(endpoint: Endpoint, depth: int, placements: Sequence[Placement]) -> None:
    size = sum(len(raw) for raw, _ in placements)
    try:
        replace_blocks(endpoint, depth, placements)
    except ChainError as error:
        if size < _REQUEST_BYTES:
            raise
        expected = f"blocks whose transactions fit into {_REQUEST_BYTES} bytes"
        raise ConfigurationError("depth", expected, f"{size} in {depth} blocks") from error


def outcome(endpoint: Endpoint, before: Sequence[Mined], depth: int) -> dict[str, Any]:
    """Read from the chain what became of the transactions that were in the replaced blocks."""
    answers = endpoint.receipts([bytes.fromhex(item.hash[2:]) for item in before])
    receipts = dict(zip(before, answers, strict=True))
    remined = [item for item, receipt in receipts.items() if receipt]
    for item in remined:
        if receipts[item]["blockHash"] == item.block_hash:
            raise TransactionFailed(f"block {item.block_hash}", "a replaced block", "the same")
    head = endpoint.head()
    return {
        "depth": depth,
        "dropped": [item.hash for item in before if not receipts[item]],
        "remined": [item.hash for item in remined],
        "new_head": {"number": head.number, "hash": "0x" + head.hash.hex()},
    }


@click.command()
@network_option
@click.option("--depth", required=True, type=click.IntRange(min=1), help="Blocks to replace.")
@click.option("--drop", type=click.IntRange(min=0), help="Transactions to drop.")
@click.option(
    "--drop-share",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of transactions to drop, without --drop.",
)
@click.option("--seed", default=7, show_default=True, help="Same seed and chain, same reorg.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a script.")
def cli(
    network: str, depth: int, drop: int | None, drop_share: float, seed: int, as_json: bool
) -> None:
    """Reorganise the newest blocks of an anvil chain.

    Example: ape run reorg --network http://127.0.0.1:8545 --depth 5 --drop 3
    """
    with connected(network) as provider:
        endpoint = Endpoint.connect(provider.http_uri)
        result = reorganise(endpoint, depth, drop, drop_share, seed)
    if as_json:
        click.echo(json.dumps(result, indent=2, sort_keys=True))
        return
    dropped, remined = len(result["dropped"]), len(result["remined"])
    head = result["new_head"]
    click.echo(f"replaced {depth} blocks: {dropped} transactions dropped, {remined} mined again")
    click.echo(f"new head: block {head['number']} {head['hash']}")
