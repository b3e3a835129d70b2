"""`chainkit audit export-chain` on a real anvil."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from chainkit.cli.main import chainkit
from chainkit.decode import decode_payload_event
from chainkit.envelope import quarantine_reason, sign_originator_envelope
from chainkit.envelope import unsigned_originator_envelope as unsigned
from chainkit.errors import RetryableChainError
from chainkit.execution import header_bytes, receipt_bytes, transaction_bytes, trie_root
from chainkit.exports import files_of, read_manifest
from chainkit.signatures import SigningKey, keccak256
from chainkit_jobs.chain_export.export import export_chain, resolve_range
from chainkit_jobs.sources import log_from_row
from support.audit_exports import key_of, write_node
from support.chain import Deployment, LocalChain, dev_address, redeployed
from support.command_line import Outcome, run
from support.every_type import send_every_type
from support.fault_proxy import Call, Fault, FaultProxy, Reply
from support.faults import error
from support.payloads import commit, identity_update

GROUP, INBOX = b"\x0a" * 32, b"\x0b" * 32


def publish(chain: LocalChain) -> None:
    for size in (100, 900, 5000):
        chain.publish_message(GROUP, commit(GROUP, size))
    chain.publish_identity_update(INBOX, identity_update(INBOX))
    chain.publish_message(GROUP, b"\xff not an envelope")
    chain.mine(2)


def arguments_of(chain: LocalChain, out: Path, *options: str, url: str | None = None) -> list[str]:
    where = ["--rpc", url or chain.url, "--deployment", str(chain.record_path)]
    return ["audit", "export-chain", *where, "--out", str(out), *options]


def export(chain: LocalChain, out: Path, *options: str, url: str | None = None) -> Outcome:
    return run(*arguments_of(chain, out, *options, url=url))


def exported(chain: LocalChain, out: Path, *options: str, url: str | None = None) -> Any:
    """Export, and return what --json told."""
    outcome = export(chain, out, "--json", *options, url=url)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.content


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    names = files_of(read_manifest(folder, "chain"), table)
    return [row for name in names for row in pq.read_table(folder / name).to_pylist()]


def contents_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# ------------------------------------------------------------------------- rows


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


# ------------------------------------------------------------------ growing, resumed


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


@pytest.fixture
def proxy(local_chain: LocalChain) -> Iterator[FaultProxy]:
    with FaultProxy(local_chain.url) as proxy:
        yield proxy


WHOLE = frozenset({"eth_getBlockReceipts"})


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


# ---------------------------------------------------------------- other endpoints


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


# ----------------------------------------------------------------------- refused


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


# ---------------------------------------------------------------------- reconciled


def envelopes_of(chain: Path, key: SigningKey) -> list[bytes]:
    """What an honest node serves of a chain export."""
    times = {row["number"]: row["timestamp"] for row in rows_of(chain, "blocks")}
    manifest = json.loads((chain / "manifest.json").read_text())
    contracts = {
        bytes.fromhex(manifest["contracts"][name][2:])
        for name in ("GroupMessages", "IdentityUpdates")
    }
    logs = [log_from_row(row) for row in rows_of(chain, "logs")]
    posted = [
        (decode_payload_event(log), log)
        for log in logs
        if log.address in contracts and len(log.data) > 3 * 32
    ]
    return [
        sign_originator_envelope(
            unsigned(event, times[log.block_number]), log.transaction_hash, key
        )
        for event, log in posted
        if quarantine_reason(event) is None
    ]


@pytest.mark.usefixtures("spark")
def test_reconcile__export_of_a_real_chain__honest_node_clean_and_other_found(
    local_chain: LocalChain, tmp_path: Path, spark: SparkSession
) -> None:
    keys = [key_of(1), key_of(2)]
    for number, key in enumerate(keys):
        local_chain.add_node(dev_address(3 + number), key.public_key, f"https://n{number}.example")
    publish(local_chain)
    chain = tmp_path / "chain"
    exported(local_chain, chain, "--range-blocks", "8")
    manifest = json.loads((chain / "manifest.json").read_text())
    shared = ("chain_id", "genesis_hash", "contracts", "from_block", "to_block", "to_block_hash")
    about = {name: manifest[name] for name in shared}
    honest, lacking = (envelopes_of(chain, key) for key in keys)
    nodes = [
        write_node(tmp_path / "honest", honest, keys[0], **about),
        write_node(tmp_path / "lacking", lacking[:-1], keys[1], **about),
    ]

    result = CliRunner(mix_stderr=False).invoke(
        chainkit,
        ["audit", "reconcile", "--chain", str(chain), "--out", str(tmp_path / "audit"), "--json"]
        + [part for node in nodes for part in ("--node", str(node))],
    )

    summary = json.loads(result.stdout)
    assert len(honest) == 4
    assert [(n["node_id"], n["expected"], n["findings"]) for n in summary["nodes"]] == [
        (100, 4, {}),
        (200, 4, {"ENVELOPE_MISSING": 1}),
    ]
    assert (summary["chain"]["payloads"], summary["chain"]["quarantined"]) == (5, 1)
