"""`chainkit audit export-chain` on a real anvil."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from chainkit import tables
from chainkit.cli.main import chainkit
from chainkit.decode import decode_payload_event
from chainkit.envelope import quarantine_reason, sign_originator_envelope
from chainkit.envelope import unsigned_originator_envelope as unsigned
from chainkit.errors import ConfigurationError, RetryableChainError, StoreError
from chainkit.exports import read_manifest
from chainkit.signatures import SigningKey
from chainkit_jobs import export_chain as module
from chainkit_jobs.export_chain import export_chain, resolve_range
from chainkit_jobs.sources import log_from_row
from support.audit_exports import key_of, write_node
from support.chain import LocalChain, dev_address
from support.payloads import commit, identity_update

GROUP, INBOX = b"\x0a" * 32, b"\x0b" * 32


def publish(chain: LocalChain) -> None:
    for size in (100, 900, 5000):
        chain.publish_message(GROUP, commit(GROUP, size))
    chain.publish_identity_update(INBOX, identity_update(INBOX))
    chain.publish_message(GROUP, b"\xff not an envelope")
    chain.mine(2)


def export(chain: LocalChain, out: Path, *options: str) -> None:
    arguments = ["audit", "export-chain", "--rpc", chain.url, "--out", str(out), *options]
    result = CliRunner().invoke(chainkit, [*arguments, "--deployment", str(chain.record_path)])
    if result.exception is not None:
        raise result.exception


def test_export_chain__whole_deployment__holds_what_the_chain_answers(
    local_chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_BLOCKS", 3)
    publish(local_chain)
    head = local_chain.head()

    export(local_chain, tmp_path / "chain")

    manifest = read_manifest(tmp_path / "chain", "chain")
    first = local_chain.record.first_block
    assert (manifest.from_block, manifest.to_block) == (first, head.number)
    assert manifest.to_block_hash == "0x" + head.hash.hex()
    assert (manifest.first_block, manifest.sequence_before, manifest.sequence_after) == (
        first,
        0,
        5,
    )
    assert manifest.first_payload_block == local_chain.record.group_messages.block
    blocks, receipts, logs = (
        pq.read_table(tmp_path / "chain" / f"{name}.parquet").to_pylist()
        for name in ("blocks", "receipts", "logs")
    )
    numbers = range(first, head.number + 1)
    assert [row["number"] for row in blocks] == list(numbers)
    assert len(receipts) == sum(row["transaction_count"] for row in blocks)
    request = local_chain.endpoint.request
    answered = request("eth_getLogs", {"fromBlock": hex(first), "toBlock": hex(head.number)})
    assert [("0x" + row["data"].hex(), row["log_index"]) for row in logs] == [
        (log["data"], int(log["logIndex"], 16)) for log in answered
    ]
    last = request("eth_getBlockReceipts", hex(head.number - 2))[0]
    [stored] = [row for row in receipts if row["block_number"] == head.number - 2]
    assert stored["gas_used"] == int(last["gasUsed"], 16)
    assert int(stored["effective_gas_price"]) == int(last["effectiveGasPrice"], 16)


def test_export_chain__json__tells_range_and_rows(local_chain: LocalChain, tmp_path: Path) -> None:
    publish(local_chain)
    head = local_chain.head().number
    arguments = ["--rpc", local_chain.url, "--deployment", str(local_chain.record_path), "--json"]
    bounds = ["--from-block", str(head - 3), "--to-block", str(head - 2)]
    out = tmp_path / "chain"

    result = CliRunner(mix_stderr=False).invoke(
        chainkit, ["audit", "export-chain", *arguments, *bounds, "--out", str(out)]
    )

    told = json.loads(result.stdout)
    assert (told["from_block"], told["to_block"]) == (head - 3, head - 2)
    assert told["rows"] == {"blocks": 2, "receipts": 2, "logs": 2}
    manifest = read_manifest(out, "chain")
    assert (manifest.sequence_before, manifest.sequence_after) == (3, 5)


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
            endpoint, record, first, end, tmp_path / "chain", lambda done: disturb(local_chain)
        )

    assert list(tmp_path.glob("*chain*")) == []


def test_export_chain__reorg_of_an_earlier_chunk__breaks_the_link(
    local_chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_BLOCKS", 4)
    publish(local_chain)
    depth = local_chain.head().number - local_chain.record.first_block
    pending = [depth]

    def reorganise(done: int) -> None:
        if pending:
            local_chain.reorg(pending.pop())

    endpoint, record = local_chain.endpoint, local_chain.record
    first, end = resolve_range(endpoint, record, local_chain.head(), None, None)
    with pytest.raises(RetryableChainError, match="the chain was reorganised meanwhile"):
        export_chain(endpoint, record, first, end, tmp_path / "chain", reorganise)

    assert not (tmp_path / "chain").exists()


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
    with pytest.raises(ConfigurationError, match=message):
        export(local_chain, tmp_path / "chain", *options)


def test_export_chain__folder_exists__is_refused(local_chain: LocalChain, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="a folder that does not exist yet"):
        export(local_chain, tmp_path)


def envelopes_of(chain: Path, key: SigningKey) -> list[bytes]:
    """What an honest node serves of a chain export."""
    blocks = pq.read_table(chain / "blocks.parquet", schema=tables.BLOCKS).to_pylist()
    times = {row["number"]: row["timestamp"] for row in blocks}
    manifest = json.loads((chain / "manifest.json").read_text())
    contracts = {
        bytes.fromhex(manifest["contracts"][name][2:])
        for name in ("GroupMessages", "IdentityUpdates")
    }
    logs = [log_from_row(row) for row in pq.read_table(chain / "logs.parquet").to_pylist()]
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
    export(local_chain, chain)
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
    gas = [json.loads(line) for line in (tmp_path / "audit" / "gas.jsonl").read_text().splitlines()]
    assert sum(row["messages"] for row in gas) == 5
