"""A server that replays an anvil's chain as a rollup would have it; its subclasses say which.

Hashes and roots are computed anew, by encoders of this file; what contracts answer is anvil's.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import rlp

from chainkit.errors import RefusedRequest
from chainkit.ethereum import trie_root
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from support.chains.chain import LocalChain
from support.chains.sealed import resealed

Answer = dict[str, Any]

DEPOSIT = 0x7E


@dataclass(frozen=True)
class Sent:
    """A transaction as anvil mined it."""

    answer: Answer
    encoded: bytes
    receipt: Answer
    is_payload: bool


@dataclass(frozen=True)
class Replayed:
    """A transaction as the rollup has it."""

    answer: Answer
    encoded: bytes
    sent: Sent | None = None
    """Anvil's in its place; None where anvil has none: then the transaction does nothing."""
    in_receipt: Answer = field(default_factory=dict)
    """Fields of its receipt that anvil's has not."""


@dataclass
class Block:
    header: Answer
    transactions: list[Answer]
    receipts: list[Answer]


def encoded_fields(type_: int, values: Sequence[str | bytes | int | None]) -> bytes:
    """Return a transaction's encoding; text is hex of bytes, and None no bytes."""
    items = [_bytes(each) if each is None or isinstance(each, str) else each for each in values]
    return bytes([type_]) + bytes(rlp.encode(items))


def number_of(value: str | None) -> int:
    return int(value or "0x0", 16)


def _bytes(text: str | None) -> bytes:
    return bytes.fromhex((text or "0x")[2:])


def _encoded_receipt(receipt: Answer) -> bytes:
    logs = [
        [_bytes(log["address"]), list(map(_bytes, log["topics"])), _bytes(log["data"])]
        for log in receipt["logs"]
    ]
    items: list[Any] = [number_of(receipt[name]) for name in ("status", "cumulativeGasUsed")]
    items += [_bytes(receipt["logsBloom"]), logs]
    type_ = number_of(receipt["type"])
    if type_ == DEPOSIT and "depositReceiptVersion" in receipt:
        items += [number_of(receipt[name]) for name in ("depositNonce", "depositReceiptVersion")]
    encoded = bytes(rlp.encode(items))
    return bytes([type_]) + encoded if type_ else encoded


def _receipt(replayed: Replayed, cumulative_gas: str) -> Answer:
    nothing = {
        "status": "0x1",
        "gasUsed": "0x0",
        "effectiveGasPrice": "0x0",
        "contractAddress": None,
        "logsBloom": "0x" + "00" * 256,
        "logs": [],
    }
    told = {name: replayed.answer[name] for name in ("type", "from", "to")}
    mined = replayed.sent.receipt if replayed.sent else nothing
    return mined | told | {"cumulativeGasUsed": cumulative_gas} | replayed.in_receipt


class ReplayedChain(ThreadingHTTPServer):
    """Use as a context manager; it serves the blocks that the chain has when it begins."""

    daemon_threads = True

    def __init__(self, chain: LocalChain) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._chain = chain
        self.blocks: list[Block] = []
        for number in range(chain.head().number + 1):
            self.blocks.append(self._replayed(number))
        self._heights = {each.header["hash"]: n for n, each in enumerate(self.blocks)}
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def transactions_of(self, number: int, sent: Sequence[Sent]) -> Iterator[Replayed]:
        """Return the rollup's transactions of a block, in their order."""
        raise NotImplementedError

    def header_of(self, block: Answer) -> Answer:
        """Return anvil's block with the header's fields as the rollup has them."""
        raise NotImplementedError

    def fields_beside(self) -> Answer:
        """Return fields that the rollup's endpoints answer with a header, and no hash needs."""
        return {}

    @property
    def chain_id(self) -> int:
        return self._chain.record.chain_id

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def head_hash(self) -> str:
        return str(self.blocks[-1].header["hash"])

    @property
    def types(self) -> set[int]:
        return {int(each["type"], 16) for block in self.blocks for each in block.transactions}

    def payload_types(self, address: bytes) -> set[int]:
        """The types of the transactions with logs of a contract."""
        return {
            int(receipt["type"], 16)
            for block in self.blocks
            for receipt in block.receipts
            if any(log["address"] == hex0x(address) for log in receipt["logs"])
        }

    def result(self, method: str, params: list[Any]) -> Any:
        if method == "eth_getBlockByNumber":
            return self._answered(self._height(params[0]), params[1])
        if method == "eth_getBlockByHash":
            return self._answered(self._heights.get(params[0]), params[1])
        if method == "eth_getBlockReceipts":
            height = self._height(params[0])
            return None if height is None else self.blocks[height].receipts
        if method == "eth_getLogs":
            return self._logs(*params)
        if method == "eth_getTransactionReceipt":
            return self._named(params[0], "receipts", "transactionHash")
        if method == "eth_getTransactionByHash":
            return self._named(params[0], "transactions", "hash")
        return self._chain.anvil.request(method, *map(self._of_anvil, params))

    def _replayed(self, number: int) -> Block:
        ask = self._chain.anvil.request
        block = ask("eth_getBlockByNumber", hex(number), True)
        if number == 0:
            return Block(block, [], [])
        receipts = ask("eth_getBlockReceipts", hex(number))
        payloads = {hex0x(each.address) for each in self._chain.record.sequenced_logs}
        sent = [
            Sent(
                transaction,
                self._chain.raw_transaction(_bytes(transaction["hash"])),
                receipt,
                transaction["to"] in payloads,
            )
            for transaction, receipt in zip(block["transactions"], receipts, strict=True)
        ]
        return self._sealed(block, list(self.transactions_of(number, sent)))

    def _sealed(self, block: Answer, replayed: Sequence[Replayed]) -> Block:
        gas, receipts = "0x0", []
        for each in replayed:
            gas = each.sent.receipt["cumulativeGasUsed"] if each.sent else gas
            receipts.append(_receipt(each, gas))
        header = resealed(
            self.header_of(block),
            parentHash=self.blocks[-1].header["hash"],
            transactionsRoot=hex0x(trie_root([each.encoded for each in replayed])),
            receiptsRoot=hex0x(trie_root(list(map(_encoded_receipt, receipts)))),
        )
        place = {"blockHash": header["hash"], "blockNumber": header["number"]}
        transactions = []
        for index, (each, receipt) in enumerate(zip(replayed, receipts, strict=True)):
            own = place | {"transactionIndex": hex(index)}
            hash_ = hex0x(keccak256(each.encoded))
            transactions.append(each.answer | own | {"hash": hash_})
            own |= {"transactionHash": hash_}
            receipt |= own
            receipt["logs"] = [log | own for log in receipt["logs"]]
        return Block(header | self.fields_beside(), transactions, receipts)

    def _height(self, block: str) -> int | None:
        if not block.startswith("0x"):
            found = self._chain.anvil.request("eth_getBlockByNumber", block, False)
            return None if found is None else int(found["number"], 16)
        return int(block, 16) if int(block, 16) < len(self.blocks) else None

    def _answered(self, height: int | None, is_whole: bool) -> Any:
        if height is None:
            return None
        block = self.blocks[height]
        shown = block.transactions if is_whole else [each["hash"] for each in block.transactions]
        return block.header | {"transactions": shown}

    def _logs(self, query: Answer) -> list[Answer]:
        if (block_hash := query.get("blockHash")) is not None:
            heights = range(self._heights[block_hash], self._heights[block_hash] + 1)
        else:
            heights = range(int(query["fromBlock"], 16), int(query["toBlock"], 16) + 1)
        return [
            log
            for height in heights
            for receipt in self.blocks[height].receipts
            for log in receipt["logs"]
            if _is_wanted(log, query)
        ]

    def _named(self, hash_: str, part: str, name: str) -> Answer | None:
        found = (each for block in self.blocks for each in getattr(block, part))
        return next((each for each in found if each[name] == hash_), None)

    def _of_anvil(self, parameter: Any) -> Any:
        """Return a parameter in which a block is anvil's."""
        if isinstance(parameter, dict) and parameter.get("blockHash") in self._heights:
            height = self._heights[parameter["blockHash"]]
            return parameter | {"blockHash": hex0x(self._chain.endpoint.header(height).hash)}
        return parameter


def _is_wanted(log: Answer, query: Answer) -> bool:
    addresses, topics = query.get("address"), query.get("topics")
    if addresses and log["address"] not in addresses:
        return False
    return not topics or bool(log["topics"] and log["topics"][0] in topics[0])


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ReplayedChain

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_batch = isinstance(request, list)
        answers = [self._answer(call) for call in (request if is_batch else [request])]
        body = json.dumps(answers if is_batch else answers[0]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, call: Answer) -> Answer:
        answer = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            return answer | {"result": self.server.result(call["method"], call.get("params", []))}
        except RefusedRequest as error:
            return answer | {"error": {"code": -32602, "message": str(error.got)}}

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
