"""`chainkit audit export-chain` from endpoints that limit, lack or lose something, and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.audit.export_folders import contents_of
from support.chains.chain import LocalChain
from support.chains.exported_chain import WHOLE, export, exported, publish
from support.endpoints.fault_proxy import Call, Fault, FaultProxy, Reply
from support.endpoints.faults import error
from support.exports import read_manifest


def test_export_chain__endpoint_without_block_receipts__gives_the_same_bytes(
    local_chain: LocalChain, proxy: FaultProxy, tmp_path: Path
) -> None:
    publish(local_chain)
    words = "the method eth_getBlockReceipts does not exist/is not available"
    proxy.arm(Fault("no block receipts", error(-32601, words), methods=WHOLE))

    exported(local_chain, tmp_path / "one-by-one", url=proxy.url)

    exported(local_chain, tmp_path / "clean")
    assert contents_of(tmp_path / "one-by-one") == contents_of(tmp_path / "clean")
    assert proxy.calls["eth_getTransactionReceipt"] > 5


def test_export_chain__endpoint_asks_for_a_pause__waits_and_goes_on(
    local_chain: LocalChain, proxy: FaultProxy, tmp_path: Path
) -> None:
    def limited(_: Any, reply: Reply) -> Reply:
        return Reply(b"", status=429, headers=(("Retry-After", "0"),))

    proxy.arm(Fault("rate limit", of_reply=limited, methods=WHOLE), times=2)

    exported(local_chain, tmp_path / "chain", url=proxy.url)

    assert proxy.delivered["rate limit"] == 2


def test_export_chain__endpoint_takes_few_calls_at_once__asks_in_smaller_batches(
    local_chain: LocalChain, proxy: FaultProxy, tmp_path: Path
) -> None:
    def refuse(request: Any, reply: Reply) -> Reply:
        if not isinstance(request, list) or len(request) <= 3:
            return reply
        about = {"code": -32600, "message": "batch too large"}
        return Reply(json.dumps({"jsonrpc": "2.0", "id": None, "error": about}).encode())

    proxy.arm(Fault("batch limit", of_reply=refuse))

    exported(local_chain, tmp_path / "small", url=proxy.url)

    exported(local_chain, tmp_path / "clean")
    assert contents_of(tmp_path / "small") == contents_of(tmp_path / "clean")
    assert proxy.delivered["batch limit"] > 0


def test_export_chain__endpoint_dies__ends_with_2_and_leaves_what_was_published(
    local_chain: LocalChain, proxy: FaultProxy, tmp_path: Path
) -> None:
    publish(local_chain)
    ranges = ("--range-blocks", "2", "--parallel", "1")
    asked: list[Call] = []

    def die(call: Call, answer: Any) -> Any:
        asked.append(call)
        return error(-32603, "gone")(call, answer) if len(asked) > 5 else answer

    proxy.arm(Fault("death", die, methods=WHOLE))

    outcome = export(local_chain, tmp_path / "chain", *ranges, url=proxy.url)
    proxy.refuse_connections()
    dead = export(local_chain, tmp_path / "chain", *ranges, url=proxy.url)

    assert (outcome.code, dead.code) == (2, 2)
    assert "gone" in outcome.err
    assert "connection refused" in dead.err
    reached = read_manifest(tmp_path / "chain", "chain").to_block
    assert local_chain.record.first_block <= reached < local_chain.head().number
    told = exported(local_chain, tmp_path / "chain")
    assert told["kept"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to-block", "100000"), "--to-block: expected at most the head"),
        (("--from-block", "5", "--to-block", "4"), "--from-block: expected at most the last block"),
    ],
)
def test_export_chain__impossible_range__is_refused(
    local_chain: LocalChain, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    outcome = export(local_chain, tmp_path / "chain", *options)

    assert outcome.code == 2
    assert message in outcome.err


def test_export_chain__folder_of_something_else__is_refused_and_unchanged(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    (tmp_path / "chain").mkdir()
    (tmp_path / "chain" / "notes.txt").write_text("mine")

    outcome = export(local_chain, tmp_path / "chain")

    assert outcome.code == 2
    assert "expected an export, or an empty folder, got notes.txt" in outcome.err
    assert contents_of(tmp_path / "chain") == {"notes.txt": b"mine"}


@pytest.mark.parametrize("parallel", ["0", "17"])
def test_export_chain__impolite__is_refused(
    local_chain: LocalChain, tmp_path: Path, parallel: str
) -> None:
    assert export(local_chain, tmp_path / "chain", "--parallel", parallel).code == 2
