"""Typed reads of the chain. Nothing reads "latest" but ``head``, to pin the other reads to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from chainkit.chain.client import RpcClient
from chainkit.chain.parsing import parse_bytes, parse_header, parse_integer, parse_log
from chainkit.errors import AccessRefused, RefusedRequest
from chainkit.types import BlockHeader, BlockReference, Log


class Endpoint(RpcClient):
    """A JSON-RPC endpoint whose every answer is checked against what was asked."""

    def chain_id(self) -> int:
        """Return the chain id (EIP-155)."""
        return self.parsed("eth_chainId", parse_integer, self.request("eth_chainId"))

    def head(self) -> BlockHeader:
        """Return the newest block: the one read that is not pinned."""
        return self.header("latest")

    def header(self, block: int | str) -> BlockHeader:
        """Return a header by height or tag. Raises InconsistentAnswer if there is none."""
        header = self.find_header(block)
        if header is None:
            raise self.inconsistent(f"block {block}", "a block", "nothing")
        return header

    def find_header(self, block: int | str) -> BlockHeader | None:
        """Return a header by height or tag, or None above the head."""
        return self.headers([block])[0]

    def headers(self, blocks: Sequence[int | str]) -> list[BlockHeader | None]:
        """Return headers by height or tag, None where the endpoint has no such block.

        Raises InconsistentAnswer where a header is of another height than asked for.
        """
        answers = self.batch(
            [("eth_getBlockByNumber", (_block_parameter(block), False)) for block in blocks]
        )
        return [self._header(block, answer) for block, answer in zip(blocks, answers, strict=True)]

    def _header(self, block: int | str, answer: Any) -> BlockHeader | None:
        if answer is None:
            return None
        header = self.parsed(f"block {block}", parse_header, answer)
        if isinstance(block, int) and header.number != block:
            raise self.inconsistent(f"block {block}", f"height {block}", header.number)
        return header

    def logs(
        self,
        first_block: int,
        last_block: int,
        addresses: Sequence[bytes],
        topics: Sequence[bytes] = (),
    ) -> list[Log]:
        """Return the logs of some contracts in a range, both ends included, in chain order.

        ``topics`` are alternatives for the first topic. Raises InconsistentAnswer for a log
        outside the range, of another contract, taken back, or given twice; and also where the
        endpoint refuses the range, because a replica that lags behind the head does so. Raises
        AccessRefused where HTTP refuses, because that is no matter of the range.
        """
        query = {
            "fromBlock": hex(first_block),
            "toBlock": hex(last_block),
            "address": [_hex(address) for address in addresses],
            **({"topics": [[_hex(topic) for topic in topics]]} if topics else {}),
        }
        subject = f"logs of blocks {first_block} to {last_block}"
        try:
            answer = self.request("eth_getLogs", query)
        except AccessRefused:
            raise
        except RefusedRequest as error:
            raise self.inconsistent(subject, "logs", error.got) from error
        logs = self.parsed(subject, lambda values: [parse_log(value) for value in values], answer)
        for log in logs:
            self._check_log(log, first_block, last_block, addresses)
        logs.sort(key=lambda log: (log.block_number, log.log_index))
        for earlier, later in pairwise(logs):
            if (earlier.block_number, earlier.log_index) == (later.block_number, later.log_index):
                raise self.inconsistent(subject, "each log once", f"two at {later.place}")
        return logs

    def _check_log(self, log: Log, first: int, last: int, addresses: Sequence[bytes]) -> None:
        if not first <= log.block_number <= last:
            raise self.inconsistent("log", f"a block from {first} to {last}", log.place)
        if log.address not in addresses:
            raise self.inconsistent("log", "a contract asked for", f"{_hex(log.address)}")
        if log.removed:
            raise self.inconsistent("log", "removed false", f"removed true at {log.place}")

    def call(self, address: bytes, data: bytes, block: BlockReference, sender: str = "") -> bytes:
        """Return what a contract answers to a call at a block, and nothing is changed.

        Raises RefusedRequest with the revert data in ``data`` where the contract reverts.
        """
        call = {"to": _hex(address), "data": _hex(data), **({"from": sender} if sender else {})}
        pinned = {"blockHash": _hex(block.hash), "requireCanonical": True}
        return self.parsed("eth_call", parse_bytes, self.request("eth_call", call, pinned))

    def code(self, address: bytes, block: BlockReference) -> bytes:
        """Return the runtime code at an address at a block; empty if there is no contract."""
        pinned = {"blockHash": _hex(block.hash), "requireCanonical": True}
        return self.parsed(
            "eth_getCode", parse_bytes, self.request("eth_getCode", _hex(address), pinned)
        )

    def receipt(self, transaction_hash: bytes) -> dict[str, Any] | None:
        """Return a transaction's receipt as the endpoint gave it, or None."""
        answer = self.request("eth_getTransactionReceipt", _hex(transaction_hash))
        if answer is not None and not isinstance(answer, dict):
            raise self.inconsistent("receipt", "an object", type(answer).__name__)
        return answer


def _block_parameter(block: int | str) -> str:
    return hex(block) if isinstance(block, int) else block


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
