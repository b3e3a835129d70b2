"""Public reports of endpoints: docs/endpoints.md lists each with its result.

A case is an endpoint's answer, and what an Endpoint makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from chainkit.chain import ANY_LOG, Endpoint, RetryPolicy
from chainkit.chain.block_proof import proved_logs
from chainkit.chain.sending import SignedTransaction, send_transaction
from chainkit.errors import (
    ChainError,
    Disproved,
    EndpointFault,
    InconsistentAnswer,
    OutcomeUnknown,
    RangeRefused,
    RefusedRequest,
    Unprovable,
)
from chainkit.signatures import keccak256
from chainkit_indexer.follow.receipt_proof import ReceiptProof
from support.chains.sealed import BareLog, BareTransaction, seal
from support.endpoints.fake_endpoint import FakeProvider, RpcError
from support.project import ROOT

LOG = BareLog(b"\xaa" * 20, (b"\x01" * 32,), b"x")
BLOCK = seal(7, b"\x06" * 32, 7, [BareTransaction("one", (LOG,)), BareTransaction("two")])
ADDRESS = b"\xaa" * 20
SLOW = "Request timeout on the free tier, please upgrade your tier to the paid one"
ABSENT_BLOCK = (
    "One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found"
)
RAW = SignedTransaction(b"\x02raw", keccak256(b"\x02raw"))


def logs(endpoint: Endpoint) -> Any:
    return endpoint.logs(1, 9, [ADDRESS])


def proof(endpoint: Endpoint) -> Any:
    header = endpoint.header(7)
    return [len(each) for each in proved_logs(endpoint, [header], ANY_LOG, 31337)]


def told_none(endpoint: Endpoint) -> Any:
    """Compare the receipts of the block with an answer to eth_getLogs that holds no log."""
    return ReceiptProof(ANY_LOG, [0], 31337).prove(endpoint, [endpoint.header(7)], [])


def final(endpoint: Endpoint) -> Any:
    return endpoint.tagged_header("finalized")


def receipt(endpoint: Endpoint) -> Any:
    return endpoint.receipt(RAW.hash)


def sending(endpoint: Endpoint) -> Any:
    return send_transaction(endpoint, RAW)


def answers(**changed: Any) -> dict[str, Any]:
    """The answers about the block, with some in their place."""
    return {
        "eth_getBlockByNumber": lambda height, whole: BLOCK.answer(whole),
        "eth_getBlockReceipts": list(BLOCK.receipts),
    } | changed


def with_transaction(**fields: Any) -> dict[str, Any]:
    def block(height: str, whole: bool) -> Any:
        answer = BLOCK.answer(whole)
        if whole:
            first, *others = answer["transactions"]
            answer = answer | {"transactions": [first | fields, *others]}
        return answer

    return answers(eth_getBlockByNumber=block)


def without(name: str) -> dict[str, Any]:
    receipts = [
        {key: value for key, value in each.items() if key != name} for each in BLOCK.receipts
    ]
    return answers(eth_getBlockReceipts=receipts)


@dataclass(frozen=True)
class Report:
    """An issue, and what its answers come to here."""

    issue: str
    read: Callable[[Endpoint], Any]
    answers: Mapping[str, Any]
    expected: Any
    """A value, or the type of an error."""


def error(method: str, code: int, message: str) -> dict[str, Any]:
    return {method: RpcError(code, message)}


REPORTS = [
    Report("openethereum/parity-ethereum#7689", receipt, {"eth_getTransactionReceipt": None}, None),
    Report("paradigmxyz/reth#23394", proof, answers(eth_getBlockReceipts=[]), Unprovable),
    Report(
        "ethereum/go-ethereum#18448", proof, answers(eth_getBlockReceipts=None), InconsistentAnswer
    ),
    Report(
        "erigontech/erigon#2633",
        proof,
        answers(eth_getBlockReceipts=[BLOCK.receipts[0], None]),
        Unprovable,
    ),
    Report(
        "enviodev/hyperindex#1498",
        told_none,
        answers(),
        Disproved,
    ),
    Report("hiero-ledger/hiero-json-rpc-relay#1647", proof, without("type"), [1]),
    Report(
        "hyperlane-xyz/hyperlane-monorepo#9224",
        proof,
        with_transaction(type="0x71", v=None),
        Unprovable,
    ),
    Report("0xPolygon/bor#1880", proof, with_transaction(type="0x7f"), Unprovable),
    Report("foundry-rs/foundry#6997", proof, with_transaction(type="0x58", v=None), Unprovable),
    Report(
        "ethereum/go-ethereum#24078",
        lambda endpoint: endpoint.blocks_with_logs(8, 9, ANY_LOG)[0],
        {"eth_getBlockByNumber": None, "eth_getLogs": []},
        [None, None],
    ),
    Report(
        "hoprnet/hoprnet#2736",
        logs,
        error("eth_getLogs", -32000, ABSENT_BLOCK),
        InconsistentAnswer,
    ),
    Report(
        "enviodev/hyperindex#605",
        logs,
        error(
            "eth_getLogs",
            -32000,
            "block range is larger than max block range, block range = 5120, "
            "max block range = 5000",
        ),
        RangeRefused,
    ),
    Report(
        "ethereum/execution-apis#879",
        final,
        error("eth_getBlockByNumber", -39001, "Unknown block"),
        None,
    ),
    Report(
        "blockscout/blockscout#9225",
        final,
        error("eth_getBlockByNumber", -32000, "'safe' tag not supported on pre-merge network"),
        None,
    ),
    Report(
        "ethereum/go-ethereum#27799",
        final,
        error("eth_getBlockByNumber", -32000, "finalized block not found"),
        None,
    ),
    Report("foundry-rs/foundry#16883", final, {"eth_getBlockByNumber": None}, None),
    Report(
        "enviodev/hyperindex#715",
        lambda endpoint: endpoint.header(7),
        error("eth_getBlockByNumber", 30, SLOW),
        EndpointFault,
    ),
    Report(
        "NethermindEth/nethermind#4148",
        sending,
        error("eth_sendRawTransaction", -32000, "AlreadyKnown")
        | {"eth_getTransactionByHash": None},
        OutcomeUnknown,
    ),
    Report(
        "MetaMask/metamask-extension#5336",
        sending,
        error("eth_sendRawTransaction", -32000, "nonce too low")
        | {"eth_getTransactionByHash": None},
        OutcomeUnknown,
    ),
    Report(
        "xchainjs/xchainjs-lib#242",
        sending,
        error("eth_sendRawTransaction", -32000, "intrinsic gas too low")
        | {"eth_getTransactionByHash": None},
        RefusedRequest,
    ),
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.issue)
def test_read__answer_of_a_public_report__is_what_the_guide_says(report: Report) -> None:
    endpoint = Endpoint(FakeProvider(report.answers), "reported", RetryPolicy(attempts=1))

    if isinstance(report.expected, type) and issubclass(report.expected, ChainError | Unprovable):
        with pytest.raises(report.expected) as raised:
            report.read(endpoint)
        assert type(raised.value) is report.expected
    else:
        assert report.read(endpoint) == report.expected


def test_guide__reports__are_those_that_are_replayed() -> None:
    listed = re.findall(r"^\| (\S+#\d+) \|", (ROOT / "docs/endpoints.md").read_text(), re.MULTILINE)

    assert listed == [report.issue for report in REPORTS]
