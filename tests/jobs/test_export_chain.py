"""`chainkit audit export-chain` on a real anvil."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import RetryableChainError
from chainkit.ethereum import header_bytes, receipt_bytes, transaction_bytes, trie_root
from chainkit.signatures import keccak256
from chainkit_jobs.chain_export.export import export_chain, resolve_range
from support.audit.export_folders import contents_of
from support.chains.chain import Deployment, LocalChain, redeployed
from support.chains.every_type import send_every_type
from support.chains.exported_chain import (
    GROUP,
    WHOLE,
    arguments_of,
    export,
    exported,
    publish,
    rows_of,
)
from support.endpoints.fault_proxy import Fault, FaultProxy, Reply
from support.exports import read_manifest
from support.payloads import commit


@pytest.mark.parametrize("hardfork", ["prague", "osaka"])
def test_export_chain__transactions_of_every_type__rows_give_all_hashes_and_roots(
    local_deployment: Deployment, tmp_path: Path, hardfork: str
) -> None:
    with redeployed(local_deployment, tmp_path, "--hardfork", hardfork) as chain:
        publish(chain)
        types = send_every_type(chain.anvil)
        exported(chain, tmp_path / "chain", "--from-block", "0", "--range-blocks", "4")
    blocks, transactions, receipts, logs = (
        rows_of(tmp_path / "chain", name) for name in ("blocks", "transactions", "receipts", "logs")
    )

    assert [row["type"] for row in transactions[-5:]] == types
    assert len(logs) > 5
    for block in blocks:
        of_block = [
            [row for row in rows if row["block_number"] == block["number"]]
            for rows in (transactions, receipts, logs)
        ]
        sent = [transaction_bytes(row) for row in of_block[0]]
        got = [
            receipt_bytes(row, [log for log in of_block[2] if log["transaction_index"] == number])
            for number, row in enumerate(of_block[1])
        ]
        assert keccak256(header_bytes(block)) == block["hash"]
        assert [keccak256(each) for each in sent] == [r["transaction_hash"] for r in of_block[0]]
        # anvil's own root counts the blobs as a part of their transaction.
        has_blobs = any(row["type"] == 3 for row in of_block[0])
        assert (trie_root(sent) == block["transactions_root"]) != has_blobs
        assert trie_root(got) == block["receipts_root"]


def test_export_chain__whole_deployment__holds_what_the_chain_answers(
    local_chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_jobs.chain_export.export.CHUNK_BLOCKS", 3)
    publish(local_chain)
    head, first = local_chain.head(), local_chain.record.first_block

    told = exported(local_chain, tmp_path / "chain", "--range-blocks", "5")

    manifest = read_manifest(tmp_path / "chain", "chain")
    assert (manifest.from_block, manifest.to_block) == (first, head.number)
    assert manifest.to_block_hash == "0x" + head.hash.hex()
    counted = (manifest.first_block, manifest.sequence_before, manifest.sequence_after)
    assert counted == (first, 0, 5)
    assert manifest.first_payload_block == local_chain.record.group_messages.block
    numbers = range(first, head.number + 1)
    assert [row["number"] for row in rows_of(tmp_path / "chain", "blocks")] == list(numbers)
    request = local_chain.endpoint.request
    answered = request("eth_getLogs", {"fromBlock": hex(first), "toBlock": hex(head.number)})
    logs = rows_of(tmp_path / "chain", "logs")
    assert [("0x" + row["data"].hex(), row["log_index"]) for row in logs] == [
        (log["data"], int(log["logIndex"], 16)) for log in answered
    ]
    assert (told["fetched_blocks"], told["kept"]) == (len(numbers), [])
    assert (told["rows"]["blocks"], told["rows"]["logs"]) == (len(numbers), len(answered))
    assert told["rows"]["transactions"] == told["rows"]["receipts"]


def test_export_chain__bounds__hold_both_ends(local_chain: LocalChain, tmp_path: Path) -> None:
    publish(local_chain)
    head = local_chain.head().number
    bounds = ["--from-block", str(head - 3), "--to-block", str(head - 2)]

    told = exported(local_chain, tmp_path / "chain", *bounds)

    assert (told["from_block"], told["to_block"]) == (head - 3, head - 2)
    assert set(told["rows"].values()) == {2}
    manifest = read_manifest(tmp_path / "chain", "chain")
    assert (manifest.sequence_before, manifest.sequence_after) == (3, 5)


def test_export_chain__called_again__grows_and_then_says_that_nothing_is_new(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    ranges = ("--range-blocks", "4")
    exported(local_chain, tmp_path / "grown", *ranges)
    publish(local_chain)

    told = exported(local_chain, tmp_path / "grown")
    again = export(local_chain, tmp_path / "grown")

    exported(local_chain, tmp_path / "clean", *ranges)
    assert contents_of(tmp_path / "grown") == contents_of(tmp_path / "clean")
    assert told["kept"]
    assert again.code == 0
    assert "nothing new; " in again.out


@pytest.mark.parametrize("requests", [1, 3, 6])
def test_export_chain__killed__goes_on_and_holds_the_same_bytes(
    local_chain: LocalChain, proxy: FaultProxy, tmp_path: Path, requests: int
) -> None:
    publish(local_chain)
    local_chain.mine(5)
    options = ("--range-blocks", "2", "--parallel", "1")
    started: list[subprocess.Popen[bytes]] = []
    left = [requests]

    def kill(_: Any, reply: Reply) -> Reply:
        left[0] -= 1
        if left[0] == 0:
            os.kill(started[0].pid, signal.SIGKILL)
        return reply

    proxy.arm(Fault("kill", of_reply=kill, methods=WHOLE))
    arguments = arguments_of(local_chain, tmp_path / "out", *options, url=proxy.url)
    program = "from chainkit.cli.main import main; main()"
    # Until it is in the list nothing is asked: it has to start first.
    started.append(subprocess.Popen([sys.executable, "-c", program, *arguments]))
    assert started[0].wait(120) == -signal.SIGKILL
    has_published = (tmp_path / "out" / "manifest.json").exists()
    assert has_published or requests < 6
    if has_published:
        assert read_manifest(tmp_path / "out", "chain").to_block < local_chain.head().number

    told = exported(local_chain, tmp_path / "out", *options)

    exported(local_chain, tmp_path / "clean", *options)
    assert contents_of(tmp_path / "out") == contents_of(tmp_path / "clean")
    assert bool(told["kept"]) == has_published


def test_export_chain__reorg_between_runs__fetches_again_and_says_so(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain)
    ranges = ("--range-blocks", "3")
    exported(local_chain, tmp_path / "chain", *ranges)
    local_chain.reorg(6)
    local_chain.publish_message(GROUP, commit(GROUP, 50))

    outcome = export(local_chain, tmp_path / "chain")

    exported(local_chain, tmp_path / "clean", *ranges)
    assert outcome.code == 0
    assert "the chain was reorganised since the last run, fetching block" in outcome.err
    assert contents_of(tmp_path / "chain") == contents_of(tmp_path / "clean")


@pytest.mark.parametrize(
    "disturb", [lambda chain: chain.reorg(2), lambda chain: chain.rewind(2)], ids=["fork", "rewind"]
)
def test_export_chain__chain_changes_meanwhile__is_retryable_and_leaves_nothing(
    local_chain: LocalChain, tmp_path: Path, disturb: Callable[[LocalChain], None]
) -> None:
    publish(local_chain)
    endpoint, record = local_chain.endpoint, local_chain.record
    first, end = resolve_range(endpoint, record, local_chain.head(), None, None)

    with pytest.raises(RetryableChainError, match="the chain was reorganised meanwhile"):
        export_chain(
            endpoint,
            record,
            first,
            end,
            tmp_path / "chain",
            progress=lambda more, blocks: disturb(local_chain),
        )

    assert not (tmp_path / "chain").exists()


def test_export_chain__reorg_of_an_earlier_chunk__is_refused(
    local_chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_jobs.chain_export.export.CHUNK_BLOCKS", 1)
    publish(local_chain)
    depth = local_chain.head().number - local_chain.record.first_block
    pending = [depth]

    def reorganise(more: int, blocks: int) -> None:
        if pending:
            local_chain.reorg(pending.pop())

    endpoint, record = local_chain.endpoint, local_chain.record
    first, end = resolve_range(endpoint, record, local_chain.head(), None, None)
    # A block and its receipts may already be of two branches.
    with pytest.raises(RetryableChainError):
        out = tmp_path / "chain"
        export_chain(endpoint, record, first, end, out, parallel=1, progress=reorganise)

    assert not (tmp_path / "chain").exists()
