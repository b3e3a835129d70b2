"""Typed reads of the chain. Only ``head`` and ``head_of`` read "latest", to pin others to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chainkit.chain.block_proof import prove_header
from chainkit.chain.client import BATCH_SIZE, RpcClient
from chainkit.chain.logs import LogFilter, parse_wanted_logs
from chainkit.chain.parsing import parse_header, parse_integer, parse_next_base_fee
from chainkit.chain.transport import RpcCall
from chainkit.errors import AccessRefused, RefusedRequest, WrongChain
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x, parse_bytes
from chainkit.types import BlockHeader, BlockReference, Log

ContractCall = tuple[bytes, bytes]
"""A contract's address and the calldata."""

Message = Mapping[str, str]
"""A call as ``eth_call`` takes it: ``from``, ``to``, ``data``; ``value`` and ``gas`` if needed."""

StateOverrides = Mapping[str, Any]
"""By address, 0x-prefixed: the ``code`` or ``stateDiff`` that is supposed for one call."""


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
        answers = self.batch([_header_call(block) for block in blocks])
        return [self._header(block, answer) for block, answer in zip(blocks, answers, strict=True)]

    def _header(self, block: int | str, answer: Any) -> BlockHeader | None:
        if answer is None:
            return None
        header = self.parsed(f"block {block}", parse_header, answer)
        if isinstance(block, int) and header.number != block:
            raise self.inconsistent(f"block {block}", f"height {block}", header.number)
        return prove_header(self, header, answer)

    def logs(
        self,
        first_block: int,
        last_block: int,
        addresses: Sequence[bytes],
        topics: Sequence[bytes] = (),
        argument: bytes = b"",
    ) -> list[Log]:
        """Return the logs of some contracts in a range, both ends included, in chain order.

        ``topics`` are alternatives for the first topic; ``argument`` is the first indexed argument
        (32 bytes), empty for any. Raises InconsistentAnswer for a log outside the range, of
        another contract, taken back, or given twice, and RangeRefused where the endpoint wants a
        narrower range.
        """
        wanted = LogFilter(tuple(addresses), tuple(topics), argument)
        query = wanted.query(fromBlock=hex(first_block), toBlock=hex(last_block))
        answer = self.request("eth_getLogs", query)
        return parse_wanted_logs(self, answer, wanted, first_block, last_block)

    def blocks_with_logs(
        self, first: int, last: int, wanted: LogFilter
    ) -> tuple[list[BlockHeader | None], list[Log]]:
        """Return all headers, and the wanted logs, of a range of blocks, both ends included.

        The end of the range and the logs come in one batch: a replica that does not have the end
        cannot answer for it. Raises RangeRefused where the endpoint wants a narrower range.
        """
        split = max(first, last - BATCH_SIZE + 2)
        headers = self.headers(range(first, split))
        query = wanted.query(fromBlock=hex(first), toBlock=hex(last))
        rest = range(split, last + 1)
        *answers, logs = self.batch([*map(_header_call, rest), ("eth_getLogs", (query,))])
        headers += [self._header(block, each) for block, each in zip(rest, answers, strict=True)]
        return headers, parse_wanted_logs(self, logs, wanted, first, last)

    def logs_of(self, headers: Sequence[BlockHeader], wanted: LogFilter) -> list[Log]:
        """Return the wanted logs of blocks asked for by hash, in chain order."""
        return self.logs_and_results(headers, wanted, ())[0]

    def logs_and_results(
        self, headers: Sequence[BlockHeader], wanted: LogFilter, calls: Sequence[ContractCall]
    ) -> tuple[list[Log], list[bytes]]:
        """Return logs as ``logs_of`` does, and what contracts answer at the last of the blocks.

        In one batch if there are fewer than BATCH_SIZE, which takes less time than two. Raises
        RefusedRequest, and there are no logs either, where one of the calls is refused.
        """
        queries = [wanted.query(blockHash=hex0x(header.hash)) for header in headers]
        states = [_call_at(headers[-1].reference, *each) for each in calls]
        answers = self.batch([*(("eth_getLogs", (query,)) for query in queries), *states])
        logs = [
            log
            for header, answer in zip(headers, answers[: len(headers)], strict=True)
            for log in parse_wanted_logs(self, answer, wanted, header.number, header.number)
        ]
        results = answers[len(headers) :]
        return logs, [self.parsed("eth_call", parse_bytes, result) for result in results]

    def call(self, address: bytes, data: bytes, block: BlockReference, sender: str = "") -> bytes:
        """Return a contract's answer to a call at a block; the call changes nothing.

        Raises RefusedRequest with the revert data in ``data`` where the contract reverts.
        """
        method, parameters = _call_at(block, address, data, sender)
        return self.parsed(method, parse_bytes, self.request(method, *parameters))

    def call_message(
        self, message: Message, block: BlockReference, overrides: StateOverrides | None = None
    ) -> bytes:
        """Return the answer to a message at a block, with some state replaced.

        Errors are those of ``call``; an endpoint without support for overrides may refuse them, or
        ignore them.
        """
        supposed = [overrides] if overrides else []
        answer = self.request("eth_call", message, _pinned(block), *supposed)
        return self.parsed("eth_call", parse_bytes, answer)

    def estimate_gas(self, message: Message, block: BlockReference) -> int:
        """Return the gas that a message would use at a block; errors as ``call``."""
        return self._quantity("eth_estimateGas", message, _pinned(block))

    def trace_call(
        self, message: Message, block: BlockReference, options: Mapping[str, Any]
    ) -> Any:
        """Return a tracer's result for a message at a block, as the endpoint gave it."""
        return self.request("debug_traceCall", message, _pinned(block), options)

    def trace_call_by_height(
        self, message: Message, block: BlockReference, options: Mapping[str, Any]
    ) -> Any:
        """Trace as ``trace_call`` at the block's height, for an endpoint that takes no hash here.

        The caller proves that the height is still this block's.
        """
        return self.request("debug_traceCall", message, hex(block.number), options)

    def calls(self, calls: Sequence[ContractCall], block: BlockReference) -> list[bytes]:
        """Return the answers of contracts to many calls at a block, in the order of the calls.

        Errors are those of ``call``: where one call is refused, all are refused.
        """
        answers = self.batch([_call_at(block, *each) for each in calls])
        return [self.parsed("eth_call", parse_bytes, answer) for answer in answers]

    def code(self, address: bytes, block: BlockReference) -> bytes:
        """Return the runtime code at an address at a block; empty if there is no contract."""
        answer = self.request("eth_getCode", hex0x(address), _pinned(block))
        return self.parsed("eth_getCode", parse_bytes, answer)

    def storage(self, address: bytes, slot: int, block: BlockReference) -> int:
        """Return one 32-byte slot of a contract's storage at a block, as an unsigned integer."""
        place = (hex0x(address), f"0x{slot:064x}", _pinned(block))
        answer = self.request("eth_getStorageAt", *place)
        return int.from_bytes(self.parsed("eth_getStorageAt", parse_bytes, answer), "big")

    def balance(self, account: str, block: BlockReference) -> int:
        """Return what an account, a checksummed address, owns at a block, in wei."""
        return self._quantity("eth_getBalance", account, _pinned(block))

    def transaction_count(self, account: str, block: BlockReference) -> int:
        """Return how many transactions of an account were mined up to a block: its next nonce.

        ``account`` is a checksummed address.
        """
        return self._quantity("eth_getTransactionCount", account, _pinned(block))

    def pending_transaction_count(self, account: str) -> int:
        """Return the same with those that wait in the endpoint's pool: no block can pin these."""
        return self._quantity("eth_getTransactionCount", account, "pending")

    def next_base_fee(self, block: BlockReference) -> int:
        """Return the base fee of the block after this one, in wei per gas (EIP-1559).

        By height: the method takes no hash. Raises RefusedRequest where the chain has none.
        """
        history = self.request("eth_feeHistory", "0x1", hex(block.number), [])
        return self.parsed("eth_feeHistory", parse_next_base_fee, history)

    def priority_fee(self) -> int:
        """Return the tip that the endpoint proposes, in wei per gas."""
        return self._quantity("eth_maxPriorityFeePerGas")

    def fee_recipient(self, block: BlockReference) -> bytes:
        """Return the address, 20 bytes, that a block's fees went to."""
        answer = self.request("eth_getBlockByHash", hex0x(block.hash), False)
        return self.parsed("block", lambda found: parse_bytes(found["miner"], 20), answer)

    def send_raw(self, raw: bytes) -> None:
        """Hand over a signed transaction (EIP-2718). Raises RefusedRequest where it is refused."""
        self.request("eth_sendRawTransaction", hex0x(raw))

    def receipt(self, transaction_hash: bytes) -> dict[str, Any] | None:
        """Return a transaction's receipt as the endpoint gave it, or None."""
        return self._object("receipt", "eth_getTransactionReceipt", transaction_hash)

    def head_of(self, chain_id: int) -> BlockHeader:
        """Return the newest block of a chain, in one request. Raises WrongChain for another."""
        found, head = self.batch([("eth_chainId", ()), _header_call("latest")])
        served = self.parsed("eth_chainId", parse_integer, found)
        if served != chain_id:
            raise WrongChain(f"chain id at {self.name}", chain_id, served)
        return prove_header(self, self.parsed("block latest", parse_header, head), head)

    def tagged_header(self, tag: Literal["safe", "finalized"]) -> BlockHeader | None:
        """Return the newest block with a tag, or None where the chain has no such block."""
        try:
            return self.find_header(tag)
        except AccessRefused:
            raise
        except RefusedRequest:
            return None

    def transaction(self, transaction_hash: bytes) -> dict[str, Any] | None:
        """Return a transaction as the endpoint gave it, mined or waiting, or None."""
        return self._object("transaction", "eth_getTransactionByHash", transaction_hash)

    def _object(self, subject: str, method: str, of: bytes) -> dict[str, Any] | None:
        answer = self.request(method, hex0x(of))
        if answer is not None and not isinstance(answer, dict):
            raise self.inconsistent(subject, "an object", type(answer).__name__)
        return answer

    def transactions(self, hashes: Sequence[bytes]) -> list[Any]:
        """Return transactions as the endpoint gave them, in one batch; None for an unknown one."""
        return self.batch([("eth_getTransactionByHash", (hex0x(each),)) for each in hashes])

    def receipts(self, hashes: Sequence[bytes]) -> list[Any]:
        """Return receipts as the endpoint gave them, in one batch; None for an unknown receipt."""
        return self.batch([("eth_getTransactionReceipt", (hex0x(each),)) for each in hashes])

    def full_blocks(self, numbers: Sequence[int]) -> list[Any]:
        """Return blocks of some heights with their transactions, as the endpoint gave them."""
        return self.batch([("eth_getBlockByNumber", (hex(each), True)) for each in numbers])

    def block_receipts(self, numbers: Sequence[int]) -> list[Any]:
        """Return the receipts of blocks of some heights, as the endpoint gave them.

        By height: not every endpoint takes a hash. Each receipt names the hash of its block.
        """
        return self.batch([("eth_getBlockReceipts", (hex(each),)) for each in numbers])

    def raw_transactions(self, hashes: Sequence[bytes]) -> list[bytes | None]:
        """Return signed transactions as they were sent, None where the endpoint knows none.

        Raises InconsistentAnswer where a transaction does not hash to the requested hash,
        RefusedRequest where the endpoint does not offer the method.
        """
        answers = self.batch([("eth_getRawTransactionByHash", (hex0x(each),)) for each in hashes])
        return [self._raw(each, answer) for each, answer in zip(hashes, answers, strict=True)]

    def _quantity(self, method: str, *parameters: Any) -> int:
        return self.parsed(method, parse_integer, self.request(method, *parameters))

    def _raw(self, transaction_hash: bytes, answer: Any) -> bytes | None:
        # geth answers "0x" where others answer null.
        if answer is None or answer == "0x":
            return None
        subject = f"raw transaction {hex0x(transaction_hash)}"
        raw = self.parsed(subject, parse_bytes, answer)
        if (found := keccak256(raw)) != transaction_hash:
            raise self.inconsistent(subject, "bytes of that hash", f"those of {hex0x(found)}")
        return raw


def _header_call(block: int | str) -> tuple[str, tuple[str, bool]]:
    return "eth_getBlockByNumber", (hex(block) if isinstance(block, int) else block, False)


def _call_at(block: BlockReference, address: bytes, data: bytes, sender: str = "") -> RpcCall:
    call = {"to": hex0x(address), "data": hex0x(data), **({"from": sender} if sender else {})}
    return "eth_call", (call, _pinned(block))


def _pinned(block: BlockReference) -> dict[str, Any]:
    return {"blockHash": hex0x(block.hash), "requireCanonical": True}
