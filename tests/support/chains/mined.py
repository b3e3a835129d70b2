"""An anvil that mines on request: transactions in a chosen order, and the outcome of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import rlp
from eth_abi import encode
from eth_utils import keccak

from chainkit.text.hexadecimal import hex0x, parse_bytes
from localnet.accounts import development_account
from localnet.anvil import Anvil
from support.solidity import Question, RawLog, StorageQuestion, Transaction, types_of

GAS_LIMIT = 50_000_000  # a payload of 1 MiB takes about 28 million
FEE = 10**11  # in wei, above what any base fee of a few hundred blocks can reach

ZERO = "0x" + "00" * 20


@dataclass(frozen=True)
class Outcome:
    """The logs of a mined transaction, or the data with which it reverted."""

    refusal: bytes | None
    logs: tuple[RawLog, ...]


class MinedChain:
    """One anvil; nothing happens on it between two calls of ``mine``."""

    def __init__(self, anvil: Anvil) -> None:
        self._anvil = anvil
        self.request = anvil.request
        self.accounts = [development_account(number).address.lower() for number in range(8)]

    def height(self) -> int:
        return int(self.request("eth_blockNumber"), 16)

    def next_address(self, distance: int = 0) -> str:
        """The address of the contract that account 0 deploys next, or so many later."""
        nonce = int(self.request("eth_getTransactionCount", self.accounts[0], "latest"), 16)
        sender = parse_bytes(self.accounts[0])
        return "0x" + keccak(rlp.encode([sender, nonce + distance]))[12:].hex()

    def deploy(self, creation: bytes) -> str:
        sent = self._send({"from": self.accounts[0], "data": hex0x(creation)})
        self.request("evm_mine")
        receipt = self.request("eth_getTransactionReceipt", sent)
        assert receipt["status"] == "0x1", receipt
        return str(receipt["contractAddress"])

    def mine(self, transactions: Sequence[Transaction]) -> list[str]:
        """Put the transactions into one block, in this order, and return their hashes."""
        sent = [
            self._send({"from": item.sender, "to": item.to, "data": hex0x(item.data)})
            for item in transactions
        ]
        self.request("evm_mine")
        return sent

    def reorg(self, blocks: Sequence[Sequence[str]]) -> None:
        """Replace as many blocks as given; each holds the transactions of these hashes."""
        raw = [
            [self.request("eth_getRawTransactionByHash", sent), offset]
            for offset, block in enumerate(blocks)
            for sent in block
        ]
        self.request("anvil_reorg", len(blocks), raw)

    def outcomes(self, number: int, sent: Sequence[str]) -> list[Outcome]:
        """The outcomes of a block's transactions, which are exactly these in this order."""
        receipts = self.request("eth_getBlockReceipts", hex(number))
        found = [receipt["transactionHash"] for receipt in receipts]
        assert found == list(sent), f"block {number}: expected {list(sent)}, got {found}"
        reverted = [item["transactionHash"] for item in receipts if item["status"] == "0x0"]
        options = {"tracer": "callTracer", "tracerConfig": {"onlyTopCall": True}}
        traces = self._batch([("debug_traceTransaction", [item, options]) for item in reverted])
        data = {
            item: parse_bytes(trace["result"].get("output", "0x"))
            for item, trace in zip(reverted, traces, strict=True)
        }
        return [
            Outcome(data.get(receipt["transactionHash"]), tuple(map(raw_log, receipt["logs"])))
            for receipt in receipts
        ]

    def logs(self, first_block: int) -> list[dict[str, Any]]:
        """All logs from a block on, of any contract, as the endpoint answers."""
        found: list[dict[str, Any]] = self.request("eth_getLogs", {"fromBlock": hex(first_block)})
        return found

    def answers(self, questions: Sequence[Question | StorageQuestion]) -> list[bytes]:
        """The present answers of the contracts, or the data with which they revert."""
        answers = self._batch([question.request for question in questions])
        return [
            parse_bytes(answer["result"] if "result" in answer else answer["error"]["data"])
            for answer in answers
        ]

    def snapshot(self) -> str:
        return str(self.request("evm_snapshot"))

    def mine_nothing(self) -> None:
        self.request("evm_mine")

    def revert(self, snapshot: str) -> None:
        assert self.request("evm_revert", snapshot) is True

    def forget_pending(self) -> None:
        self.request("anvil_dropAllTransactions")

    def _send(self, transaction: dict[str, str]) -> str:
        fees = {"maxFeePerGas": hex(FEE), "maxPriorityFeePerGas": hex(1), "gas": hex(GAS_LIMIT)}
        return str(self.request("eth_sendTransaction", transaction | fees))

    def _batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        """The answers as they come: chainkit's own batch raises where one of them is an error."""
        if not calls:
            return []
        answers = self._anvil.endpoint.transport.make_batch_request(calls)
        assert isinstance(answers, list) and len(answers) == len(calls), answers
        return answers


def raw_log(log: dict[str, Any]) -> RawLog:
    topics = tuple(parse_bytes(topic, 32) for topic in log["topics"])
    return RawLog(log["address"], topics, parse_bytes(log["data"]))


@contextmanager
def mined_chain() -> Iterator[MinedChain]:
    # Old states stay in memory or go: one that anvil wrote to disk comes back without any code.
    options = ("--no-mining", "--order", "fifo", "--hardfork", "cancun", "--prune-history", "500")
    with Anvil(*options, "--gas-limit", str(10 * GAS_LIMIT), "--no-request-size-limit") as anvil:
        yield MinedChain(anvil)


def deploy_compiled(chain: MinedChain, contract: Any, types: str = "()", *arguments: Any) -> str:
    """Deploy one of Ape's containers; ``types`` are the constructor's."""
    bytecode = contract.contract_type.deployment_bytecode.bytecode
    return chain.deploy(parse_bytes(bytecode) + encode(types_of(types), arguments))
