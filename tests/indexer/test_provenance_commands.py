"""The commands of an operator whose endpoints prove nothing: refused, confirmed, trusted."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit_indexer.storage import schema
from support.chains.chain import LocalChain
from support.endpoints.fault_proxy import Call, Fault, FaultProxy
from support.endpoints.faults import error, result_changed

from .conftest import Node, chainkit, publish

BY_BLOCK, ONE = "eth_getBlockReceipts", "eth_getTransactionReceipt"
NO_RECEIPTS = Fault(
    "no receipts",
    error(-32601, "the method does not exist/is not available"),
    methods=frozenset({BY_BLOCK, ONE}),
)


@pytest.fixture
def poor(local_chain: LocalChain) -> Iterator[FaultProxy]:
    """An endpoint that offers no receipts."""
    with FaultProxy(local_chain.url) as running:
        running.arm(NO_RECEIPTS)
        yield running


@pytest.fixture
def other(local_chain: LocalChain) -> Iterator[FaultProxy]:
    """Another one, which is another host by its port."""
    with FaultProxy(local_chain.url) as running:
        running.arm(NO_RECEIPTS)
        yield running


def on_another_branch(call: Call, block: Any) -> Any:
    """Each block but the first has another hash; a field that nobody knows keeps it possible."""
    if int(block["number"], 16) == 0:
        return block
    return block | {"hash": "0x" + "ee" * 32, "newRoot": "0x" + "07" * 32}


ANOTHER_BRANCH = Fault(
    "another branch",
    result_changed(on_another_branch),
    methods=frozenset({"eth_getBlockByNumber"}),
)


def established(node: Node) -> dict[str, int]:
    done = chainkit("index", "status", "--database", str(node.database), "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)["blocks_established"]
    return found


def run(node: Node, *options: str, **changes: object) -> tuple[int, str]:
    process = node.start("--until-idle", *options, **changes)
    _, text = process.communicate(timeout=60)
    return process.returncode, text


def test_run__one_host_without_receipts__ends_at_once_and_says_what_helps(
    node: Node, poor: FaultProxy
) -> None:
    publish(node.chain, 2)

    code, text = run(node, rpc=poor.url)

    assert code == 2
    assert f"one that offers {BY_BLOCK} or {ONE}, or two of different hosts" in text
    assert "--trust-one-endpoint" in text
    assert node.rows(schema.envelopes) == []


def test_run__one_host_without_receipts_by_block__proves_by_single_receipts(node: Node) -> None:
    words = f"Method {BY_BLOCK} is not supported"
    publish(node.chain, 3)
    with FaultProxy(node.chain.url) as proxy:
        proxy.arm(Fault(words, error(-32004, words), methods=frozenset({BY_BLOCK})))

        code, text = run(node, rpc=proxy.url)

        assert code == 0, text
        assert proxy.calls[ONE] >= 3
        in_vain = proxy.calls[BY_BLOCK]
    assert established(node).keys() == {"receipts"}
    assert len(node.rows(schema.envelopes)) == 3
    # The start asks once, and tells the pages.
    assert in_vain == 1


def test_run__two_hosts_without_receipts__signs_what_both_say(
    node: Node, poor: FaultProxy, other: FaultProxy
) -> None:
    publish(node.chain, 3)

    code, text = run(node, "--rpc", other.url, rpc=poor.url)

    assert code == 0, text
    assert ", by second endpoint" in text
    assert established(node).keys() == {"second endpoint"}
    assert len(node.rows(schema.envelopes)) == 3
    assert other.calls["eth_getLogs"] > 0


def test_run__other_host_on_another_chain__is_told_with_both_blocks(node: Node) -> None:
    publish(node.chain, 2)
    with FaultProxy(node.chain.url) as elsewhere:
        elsewhere.arm(ANOTHER_BRANCH)
        process = node.start("--rpc", elsewhere.url)
        assert process.stderr is not None

        told = next(line for line in process.stderr if "two chains" in line)

        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    head = node.chain.head()
    assert f"block {head.number} is 0x{head.hash.hex()} at {node.chain.url}" in told
    assert f"0x{'ee' * 32} at {elsewhere.url}" in told
    assert established(node).keys() == {"receipts"}


def test_prove__after_one_endpoint_was_trusted__proves_all_and_signs_nothing_again(
    node: Node, poor: FaultProxy, tmp_path: Path
) -> None:
    publish(node.chain, 3)
    code, text = run(node, "--trust-one-endpoint", rpc=poor.url)
    assert code == 0, text
    trusted = established(node)
    assert trusted.keys() == {"one endpoint"}
    before = node.payload_rows()
    export = tmp_path / "export"
    arguments = ("--database", str(node.database))
    assert chainkit("index", "export", *arguments, "--out", str(export)).returncode == 0
    [said] = json.loads((export / "manifest.json").read_text())["established"]
    assert said["how"] == "one endpoint"
    arguments += ("--deployment", str(node.chain.record_path), "--rpc", node.chain.url)

    done = chainkit("index", "prove", *arguments, "--json")

    assert done.returncode == 0, done.stderr
    blocks = trusted["one endpoint"]
    found = json.loads(done.stdout)
    assert (found["blocks"], found["receipts"], found["differences"]) == (blocks, blocks, [])
    assert established(node) == {"receipts": blocks}
    assert node.payload_rows() == before
    again = chainkit("index", "prove", *arguments)
    assert (again.returncode, again.stdout) == (0, "all blocks are proved by their receipts\n")


def test_run__blocks_that_one_endpoint_was_trusted_for__are_proved_while_it_follows(
    node: Node, poor: FaultProxy
) -> None:
    publish(node.chain, 3)
    code, text = run(node, "--trust-one-endpoint", "--finality", "1", rpc=poor.url)
    assert code == 0, text
    blocks = established(node)["one endpoint"]
    before = node.payload_rows()

    process = node.start("--finality", "1")
    assert process.stderr is not None
    told = next(line for line in process.stderr if "were compared" in line)
    publish(node.chain, 1, start=3)
    next(line for line in process.stderr if "envelopes" in line)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    assert "are proved" in told
    found = established(node)
    # The block that was the newest of the first run may be final and proved by now, or not yet.
    assert sum(found.values()) == blocks + 1
    assert found["receipts"] >= blocks
    assert [
        rows[: len(old)] for rows, old in zip(node.payload_rows(), before, strict=True)
    ] == before


def test_prove__beside_a_running_indexer__is_refused(node: Node) -> None:
    publish(node.chain, 1)
    process = node.start()
    assert process.stderr is not None
    next(line for line in process.stderr if "idle at the head" in line)

    done = chainkit(
        *("index", "prove", "--database", str(node.database), "--rpc", node.chain.url),
        *("--deployment", str(node.chain.record_path)),
    )

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert done.returncode == 2
    assert "expected no other indexer, got process" in done.stderr
