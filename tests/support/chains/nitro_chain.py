"""A server that replays an anvil's chain as a chain of Arbitrum Nitro would have it.

Each block begins with an internal transaction. Payloads come in unsigned, contract and retry
transactions, as layer 1 and ArbOS send them, or in signed ones; beside them stand deposits,
submissions of retryables and other retries. Headers end with the base fee, and several blocks have
one timestamp. Hashes and roots are computed anew; what contracts answer is anvil's.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import Any, Self

import rlp

from chainkit.errors import RefusedRequest
from chainkit.ethereum import trie_root
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from support.chains.chain import LocalChain
from support.chains.sealed import resealed

Answer = dict[str, Any]

SECONDS_WITH_ONE_TIME = 10
_AFTER_LONDON = (
    *("withdrawals", "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot"),
    *("requestsHash", "totalDifficulty"),
)
_NITRO: Answer = {"l1BlockNumber": "0x7", "sendCount": "0x0", "sendRoot": "0x" + "00" * 32}
_ARBOS = "0x00000000000000000000000000000000000a4b05"

_FIELDS: Mapping[int, str] = {
    0x64: "chainId requestId from to value",
    0x65: "chainId from nonce maxFeePerGas gas to value input",
    0x66: "chainId requestId from maxFeePerGas gas to value input",
    0x68: "chainId nonce from maxFeePerGas gas to value input"
    " ticketId refundTo maxRefund submissionFeeRefund",
    0x69: "chainId requestId from l1BaseFee depositValue maxFeePerGas gas retryTo retryValue"
    " beneficiary maxSubmissionFee refundTo retryData",
    0x6A: "chainId input",
}
"""Type to the fields of its RLP (go-ethereum of Nitro, core/types/arb_types.go)."""
_BYTES = frozenset(
    [
        "requestId",
        "from",
        "to",
        "input",
        "ticketId",
        "refundTo",
        "retryTo",
        "beneficiary",
        "retryData",
    ]
)
_OF_LAYER_1: Answer = {
    "requestId": "0x" + "0a" * 32,
    "ticketId": "0x" + "0b" * 32,
    "refundTo": "0x" + "0c" * 20,
    "maxRefund": "0x3e8",
    "submissionFeeRefund": "0x0",
    "l1BaseFee": "0x64",
    "depositValue": hex(2**70),
    "retryTo": None,
    "retryValue": "0x0",
    "beneficiary": "0x" + "0d" * 20,
    "maxSubmissionFee": "0x258",
    "retryData": "0x01020304",
}


def _nitro_transaction(type_: int, told: Answer) -> tuple[Answer, bytes]:
    """Return a transaction as a node answers it, and its encoding."""
    names = _FIELDS[type_].split()
    own = {name: _OF_LAYER_1[name] for name in names if name in _OF_LAYER_1}
    price = told.get("maxFeePerGas") or told["gasPrice"]
    # The RPC of an unsigned one has its fee cap as gasPrice alone.
    fees = {"gasPrice": price} | ({"maxFeePerGas": price} if type_ != 0x65 else {})
    everything = told | own | fees | {"maxFeePerGas": price}
    items = [_item(name, everything[name]) for name in names]
    encoded = bytes([type_]) + bytes(rlp.encode(items))
    signature = dict.fromkeys(("v", "r", "s"), "0x0")
    common = ("chainId", "from", "to", "gas", "value", "input", "nonce")
    answer = {name: told[name] for name in common} | own | fees | signature
    return answer | {"type": hex(type_), "hash": hex0x(keccak256(encoded))}, encoded


def _item(name: str, value: str | None) -> bytes | int:
    if name in _BYTES:
        return bytes.fromhex((value or "0x")[2:])
    return int(value or "0x0", 16)


def _encoded_receipt(receipt: Answer) -> bytes:
    hexed: Callable[[str], bytes] = lambda text: bytes.fromhex(text[2:])  # noqa: E731
    logs = [
        [hexed(log["address"]), list(map(hexed, log["topics"])), hexed(log["data"])]
        for log in receipt["logs"]
    ]
    numbers = [int(receipt[name], 16) for name in ("status", "cumulativeGasUsed")]
    encoded = bytes(rlp.encode([*numbers, hexed(receipt["logsBloom"]), logs]))
    type_ = int(receipt["type"], 16)
    return bytes([type_]) + encoded if type_ else encoded


@dataclass
class _Block:
    header: Answer
    transactions: list[Answer]
    receipts: list[Answer]


@dataclass
class _Replay:
    """The blocks so far."""

    chain: LocalChain
    blocks: list[_Block] = field(default_factory=list)
    types: Any = field(default_factory=lambda: cycle((0x65, 0x66, 0x68, None)))
    others: Any = field(default_factory=lambda: cycle((0x68, 0x69, 0x64)))

    def add(self, number: int) -> None:
        ask = self.chain.anvil.request
        block = ask("eth_getBlockByNumber", hex(number), True)
        if number == 0:
            self.blocks.append(_Block(block, [], []))
            return
        receipts = ask("eth_getBlockReceipts", hex(number))
        pairs = [self._begin(number)]
        for transaction, receipt in zip(block["transactions"], receipts, strict=True):
            pairs += self._converted(transaction, receipt)
        self.blocks.append(self._sealed(block, pairs))

    def _begin(self, number: int) -> tuple[Answer, bytes, Answer | None]:
        told = {"from": _ARBOS, "to": _ARBOS, "input": hex0x(number.to_bytes(36, "big"))}
        return (*_nitro_transaction(0x6A, self._nothing() | told), None)

    def _nothing(self) -> Answer:
        zeros = dict.fromkeys(("gas", "gasPrice", "value", "nonce"), "0x0")
        return zeros | {"chainId": hex(self.chain.record.chain_id), "input": "0x"}

    def _converted(
        self, transaction: Answer, receipt: Answer
    ) -> list[tuple[Answer, bytes, Answer | None]]:
        payloads = {hex0x(each.address) for each in self.chain.record.sequenced_logs}
        is_payload = transaction["to"] in payloads
        type_ = next(self.types) if is_payload else None
        if type_ is None:
            raw = self.chain.raw_transaction(bytes.fromhex(transaction["hash"][2:]))
            found = (transaction, raw)
        else:
            found = _nitro_transaction(type_, transaction)
        pairs: list[tuple[Answer, bytes, Answer | None]] = [(*found, receipt)]
        if is_payload:
            told = {"from": "0x" + "0e" * 20, "to": "0x" + "0f" * 20, "gas": "0x5208"}
            number = hex(int(transaction["nonce"], 16))
            others = self._nothing() | told | {"nonce": number, "value": transaction["nonce"]}
            pairs.append((*_nitro_transaction(next(self.others), others), None))
        return pairs

    def _sealed(
        self, block: Answer, pairs: Sequence[tuple[Answer, bytes, Answer | None]]
    ) -> _Block:
        gas, receipts = "0x0", []
        for transaction, _, receipt in pairs:
            gas = receipt["cumulativeGasUsed"] if receipt else gas
            receipts.append(_receipt(transaction, receipt, gas))
        time = int(block["timestamp"], 16)
        header = {name: value for name, value in block.items() if name not in _AFTER_LONDON}
        header = resealed(
            header,
            parentHash=self.blocks[-1].header["hash"],
            transactionsRoot=hex0x(trie_root([encoded for _, encoded, _ in pairs])),
            receiptsRoot=hex0x(trie_root(list(map(_encoded_receipt, receipts)))),
            timestamp=hex(time - time % SECONDS_WITH_ONE_TIME),
        )
        place = {"blockHash": header["hash"], "blockNumber": header["number"]}
        transactions = []
        for index, ((transaction, _, _), receipt) in enumerate(zip(pairs, receipts, strict=True)):
            own = place | {"transactionIndex": hex(index)}
            transactions.append(transaction | own)
            own |= {"transactionHash": transaction["hash"]}
            receipt |= own
            receipt["logs"] = [log | own for log in receipt["logs"]]
        return _Block(header | _NITRO, transactions, receipts)


def _receipt(transaction: Answer, receipt: Answer | None, cumulative_gas: str) -> Answer:
    nothing = {
        "status": "0x1",
        "gasUsed": "0x0",
        "effectiveGasPrice": "0x0",
        "contractAddress": None,
        "logsBloom": "0x" + "00" * 256,
        "logs": [],
    }
    told = {name: transaction[name] for name in ("type", "from", "to")}
    own = {"gasUsedForL1": "0x0", "cumulativeGasUsed": cumulative_gas}
    return (receipt or nothing) | told | own


class NitroChain(ThreadingHTTPServer):
    """Use as a context manager; it serves the blocks that the chain has when it begins."""

    daemon_threads = True

    def __init__(self, chain: LocalChain) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._chain = chain
        replay = _Replay(chain)
        for number in range(chain.head().number + 1):
            replay.add(number)
        self.blocks = replay.blocks
        self._heights = {each.header["hash"]: n for n, each in enumerate(self.blocks)}
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

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
    server: NitroChain

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
