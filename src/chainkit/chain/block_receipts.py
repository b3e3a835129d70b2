"""The receipts of blocks: by block where the endpoint offers that method, else by transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import orjson

from chainkit.chain.client import BATCH_SIZE, RpcClient
from chainkit.chain.transport import LONGEST_ANSWER_BYTES
from chainkit.errors import MethodUnavailable, OversizedAnswer

Answered = TypeVar("Answered")

_ASK_AGAIN_SECONDS: Final = 600.0
"""How long an endpoint without ``eth_getBlockReceipts`` is not asked for this method: several nodes
may be behind one URL."""


def receipts_of_blocks(
    client: RpcClient, by_block: Callable[[], Answered], one_by_one: Callable[[], Answered]
) -> Answered:
    """Return what ``by_block`` returns, or ``one_by_one`` where the endpoint lacks the method.

    The client remembers that: of many blocks only the first is asked for in vain.
    """
    if time.monotonic() >= client.block_receipts_from:
        try:
            return by_block()
        except MethodUnavailable:
            client.block_receipts_from = time.monotonic() + _ASK_AGAIN_SECONDS
    return one_by_one()


def single_receipts(
    read: Callable[[Sequence[bytes]], list[Any]], blocks: Sequence[Sequence[bytes]]
) -> list[list[Any]]:
    """Return the receipts of blocks, each block as the hashes of its transactions, in their order.

    ``read`` asks for some transactions' receipts, and answers None for those that the endpoint does
    not know. Raises OversizedAnswer where all receipts are more bytes than one answer may be.
    """
    hashes = [each for block in blocks for each in block]
    found: list[Any] = []
    size = 0
    while len(found) < len(hashes):
        part = read(hashes[len(found) : len(found) + BATCH_SIZE])
        size += len(orjson.dumps(part))
        if size > LONGEST_ANSWER_BYTES:
            raise OversizedAnswer("single receipts", f"at most {LONGEST_ANSWER_BYTES} bytes", size)
        found += part
    receipts = iter(found)
    return [list(islice(receipts, len(block))) for block in blocks]
