"""Whole blocks from an endpoint: bodies, then receipts by block, or one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chainkit.chain import Endpoint
from chainkit.chain.block_receipts import receipts_of_blocks, single_receipts
from chainkit_jobs.chain_export.batches import Batches
from chainkit_jobs.chain_export.block_rows import Body, parse_body, parse_receipts
from chainkit_jobs.chain_export.json_rows import Row


@dataclass(frozen=True, slots=True)
class BlockRows:
    """One block as rows of the four tables."""

    block: Row
    transactions: Sequence[Row]
    receipts: Sequence[Row]
    logs: Sequence[Row]


class BlockReader:
    """Reads blocks, from any number of threads."""

    def __init__(self, endpoint: Endpoint, chain_id: int) -> None:
        """Take the endpoint and its chain; no request is made yet."""
        self._endpoint = endpoint
        self._chain_id = chain_id
        self._batches = Batches()

    def blocks(self, numbers: Sequence[int]) -> Iterator[BlockRows]:
        """Return the blocks of some heights, each proved to be consistent in itself.

        Raises InconsistentAnswer that names the block and the field, Unconfirmed where a field is
        left out, or the endpoint's ChainError.
        """
        answers = self._batches.results(self._endpoint.full_blocks, numbers)
        bodies = [
            parse_body(f"block {number} at {self._endpoint.name}", number, self._chain_id, answer)
            for number, answer in zip(numbers, answers, strict=True)
        ]
        for body, answer in zip(bodies, self._receipts(bodies), strict=True):
            receipts, logs = parse_receipts(body, answer)
            yield BlockRows(body.block, body.transactions, receipts, logs)

    def _receipts(self, bodies: Sequence[Body]) -> list[Any]:
        heights = [body.block["number"] for body in bodies]
        hashes = [[row["transaction_hash"] for row in body.transactions] for body in bodies]
        return receipts_of_blocks(
            self._endpoint,
            lambda: self._batches.results(self._endpoint.block_receipts, heights),
            lambda: single_receipts(
                lambda part: self._batches.results(self._endpoint.receipts, part), hashes
            ),
        )
