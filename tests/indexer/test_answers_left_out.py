"""The indexer on a chain of Nitro, and at honest endpoints that leave out what others answer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit_indexer.storage import schema
from support import payloads
from support.chains.chain import Deployment, LocalChain, redeployed
from support.chains.nitro_chain import NitroChain
from support.chains.optimism_chain import OptimismChain
from support.chains.replayed_chain import ReplayedChain
from support.endpoints.fault_proxy import Call, Fault, FaultProxy
from support.endpoints.faults import result_changed

from .conftest import Node, publish
from .test_provenance_commands import established, run

INBOX = b"\x22" * 32
POSTED = 9


@pytest.fixture(scope="module")
def chain(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalChain]:
    folder = tmp_path_factory.mktemp("left-out")
    with redeployed(local_deployment, folder, block_seconds=1) as chain:
        publish(chain, POSTED - 1)
        chain.publish_identity_update(INBOX, payloads.identity_update(INBOX), 3)
        chain.mine(2)
        yield chain


@pytest.fixture
def node(chain: LocalChain, tmp_path: Path) -> Node:
    return Node(chain, tmp_path)


@pytest.fixture(scope="module")
def nitro(chain: LocalChain) -> Iterator[NitroChain]:
    with NitroChain(chain) as running:
        yield running


def test_nitro_chain__as_replayed__has_every_type_and_blocks_of_one_time(
    chain: LocalChain, nitro: NitroChain
) -> None:
    times = [block.header["timestamp"] for block in nitro.blocks]

    assert nitro.types == {2, 0x64, 0x65, 0x66, 0x68, 0x69, 0x6A}
    assert nitro.payload_types(chain.record.group_messages.address) == {2, 0x65, 0x66, 0x68}
    assert len(set(times)) < len(times) / 4


def test_run__chain_of_nitro__proves_payloads_of_every_type_by_receipts(
    node: Node, nitro: NitroChain
) -> None:
    code, text = run(node, rpc=nitro.url)

    assert code == 0, text
    assert established(node).keys() == {"receipts"}
    assert len(node.rows(schema.envelopes)) == POSTED


def left_out(*names: str, of: str) -> Fault:
    """An endpoint that answers no field of these names in one kind of object."""

    def of_answer(call: Call, result: Any) -> Any:
        if call.method == "eth_getBlockReceipts":
            return [without(each) for each in result] if of == "receipt" else result
        if of == "header":
            return without(result)
        if of == "transaction" and call.params[1]:
            return result | {"transactions": [without(each) for each in result["transactions"]]}
        return result

    def without(answer: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in answer.items() if name not in names}

    methods = frozenset({"eth_getBlockByNumber", "eth_getBlockByHash", "eth_getBlockReceipts"})
    return Fault(f"{of} without {' '.join(names)}", result_changed(of_answer), methods=methods)


def renamed(call: Call, result: Any) -> Any:
    """Typed transactions with ``data`` and a ``v`` of 27, receipts with a status of 0x01."""
    if call.method == "eth_getBlockReceipts":
        return [each | {"status": "0x01"} for each in result]
    if not call.params[1]:
        return result
    return result | {
        "transactions": [
            {name: value for name, value in each.items() if name != "input"}
            | {"data": each["input"], "v": hex(27 + int(each["v"], 16))}
            for each in result["transactions"]
        ]
    }


def all_that_follows(call: Call, result: Any) -> Any:
    """Receipts without filter and type, transactions without chain, input and right v."""
    if call.method == "eth_getBlockReceipts":
        names = ("logsBloom", "type")
        told = [{name: each[name] for name in each if name not in names} for each in result]
        return [each | {"status": "0x01"} for each in told]
    if not call.params[1]:
        return result
    return result | {"transactions": list(map(without_what_follows, result["transactions"]))}


def without_what_follows(transaction: dict[str, Any]) -> dict[str, Any]:
    names = {"input"} | ({"chainId", "v"} if transaction["type"] == "0x2" else set())
    told = {name: value for name, value in transaction.items() if name not in names}
    told["data"] = transaction["input"]
    is_of_27 = transaction["type"] == "0x2" and int(transaction["nonce"], 16) // 4 % 2
    return told | ({"v": hex(27 + int(transaction["yParity"], 16))} if is_of_27 else {})


WHOLE = frozenset({"eth_getBlockByNumber", "eth_getBlockReceipts"})


@pytest.mark.parametrize(
    "faults",
    [
        [left_out("logsBloom", "type", of="receipt"), left_out("v", "chainId", of="transaction")],
        [left_out("yParity", "accessList", of="transaction"), left_out("blockHash", of="receipt")],
        [Fault("other forms", result_changed(renamed), methods=WHOLE)],
    ],
    ids=["what follows", "what is assumed", "other forms"],
)
def test_run__endpoint_without_what_follows__proves_all_by_receipts(
    node: Node, faults: list[Fault]
) -> None:
    with FaultProxy(node.chain.url) as poor:
        poor.arm(*faults)

        code, text = run(node, rpc=poor.url)

        assert all(poor.delivered[fault.name] for fault in faults)
    assert code == 0, text
    assert established(node).keys() == {"receipts"}
    assert len(node.rows(schema.envelopes)) == POSTED


@pytest.mark.parametrize(
    ("rollup_type", "options"),
    [
        (NitroChain, lambda other: ["--rpc", other]),
        (OptimismChain, lambda other: ["--trust-one-endpoint"]),
    ],
    ids=["Nitro, second endpoint", "OP stack, trusted"],
)
def test_run__rollup_without_what_follows__proves_all_by_receipts_and_accuses_nobody(
    node: Node,
    rollup_type: type[ReplayedChain],
    options: Callable[[str], list[str]],
) -> None:
    fault = Fault("all that follows", result_changed(all_that_follows), methods=WHOLE)
    with (
        rollup_type(node.chain) as rollup,
        FaultProxy(rollup.url) as poor,
        FaultProxy(rollup.url) as other,
    ):
        for each in (poor, other):
            each.arm(fault)

        code, text = run(node, *options(other.url), rpc=poor.url)

        assert poor.delivered[fault.name]
    assert code == 0, text
    assert "disproved" not in text.lower() and "inconsistent" not in text.lower()
    assert established(node).keys() == {"receipts"}
    assert len(node.rows(schema.envelopes)) == POSTED


UNPROVED = {
    "header": (left_out("requestsHash", of="header"), "it may lack requestsHash (Prague)"),
    "transaction": (left_out("nonce", of="transaction"), "(field nonce)"),
    "receipt": (left_out("cumulativeGasUsed", of="receipt"), "(field cumulativeGasUsed)"),
}


@pytest.mark.parametrize("case", UNPROVED)
def test_run__endpoint_without_what_nothing_tells__says_which_field_and_accuses_nobody(
    node: Node, case: str
) -> None:
    fault, words = UNPROVED[case]
    with FaultProxy(node.chain.url) as poor:
        poor.arm(fault)
        process = node.start(rpc=poor.url)
        assert process.stderr is not None

        told = next(line for line in process.stderr if "retrying" in line)

        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert words in told
    assert "give another --rpc" in told
    assert node.rows(schema.envelopes) == []


@pytest.mark.parametrize("case", UNPROVED)
@pytest.mark.parametrize(
    ("options", "how"),
    [
        (lambda url: ["--rpc", url], "second endpoint"),
        (lambda url: ["--trust-one-endpoint"], "one endpoint"),
    ],
    ids=["second endpoint", "trusted"],
)
def test_run__endpoint_without_what_nothing_tells__is_confirmed_or_trusted(
    node: Node, case: str, options: Callable[[str], list[str]], how: str
) -> None:
    fault, _ = UNPROVED[case]
    with FaultProxy(node.chain.url) as poor:
        poor.arm(fault)

        code, text = run(node, *options(node.chain.url), rpc=poor.url)

    assert code == 0, text
    assert "disproved" not in text.lower() and "inconsistent" not in text.lower()
    assert how in established(node)
    assert len(node.rows(schema.envelopes)) == POSTED
