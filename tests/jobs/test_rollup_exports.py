"""`chainkit audit export-chain`, `verify-chain` and `reconcile` on chains of rollups."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from chainkit.exports.tables import COLUMNS_SINCE_FORMAT_6 as NEW_COLUMNS
from chainkit.signatures import SigningKey
from chainkit_jobs.proof import prove_chain
from chainkit_jobs.sources import read_export
from support.audit.audit_exports import key_of, write_node
from support.chains.chain import LocalChain, dev_address
from support.chains.exported_chain import exported, publish, rows_of
from support.chains.nitro_chain import NitroChain
from support.chains.optimism_chain import OptimismChain
from support.chains.replayed_chain import ReplayedChain
from support.command_line import run
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.faults import result_changed

from .test_reconcile_real_chain import envelopes_of


def leave_out_what_follows(call: Any, result: Any) -> Any:
    """Receipts without type and filter, transactions without chain and list."""
    names = {"type", "logsBloom"} if isinstance(result, list) else {"chainId", "accessList"}
    parts = result if isinstance(result, list) else result["transactions"]
    if not all(isinstance(each, dict) for each in parts):
        return result
    told = [{name: each[name] for name in each if name not in names} for each in parts]
    return told if isinstance(result, list) else result | {"transactions": told}


LEFT_OUT = Fault(
    "what follows is left out",
    result_changed(leave_out_what_follows),
    methods=frozenset({"eth_getBlockByNumber", "eth_getBlockReceipts"}),
)


@pytest.mark.parametrize("rollup_type", [NitroChain, OptimismChain], ids=["Nitro", "OP stack"])
def test_audit__chain_of_a_rollup__is_proved_whole_and_its_nodes_are_judged(
    spark: SparkSession,
    local_chain: LocalChain,
    tmp_path: Path,
    rollup_type: type[ReplayedChain],
) -> None:
    keys = [key_of(1), key_of(2)]
    for number, key in enumerate(keys):
        local_chain.add_node(dev_address(3 + number), key.public_key, f"https://n{number}.example")
    publish(local_chain)
    whole, poor = tmp_path / "whole", tmp_path / "poor"
    with rollup_type(local_chain) as rollup, FaultProxy(rollup.url) as lacking:
        lacking.arm(LEFT_OUT)
        exported(local_chain, whole, url=rollup.url)
        exported(local_chain, poor, url=lacking.url)
        head_hash, types = rollup.head_hash, rollup.types
        eras = {
            ("depositNonce" in receipt, "depositReceiptVersion" in receipt)
            for block in rollup.blocks
            for receipt in block.receipts
            if receipt["type"] == "0x7e"
        }
        assert lacking.delivered[LEFT_OUT.name]

    proof = prove_chain(spark, read_export(whole, "chain"), bytes.fromhex(head_hash[2:]))

    assert proof.problems == () and proof.is_anchored
    assert proof.held == proof.proved
    assert {row["type"] for row in rows_of(whole, "transactions")} == types
    assert len(eras) == (3 if 0x7E in types else 0)
    for table in ("blocks", "transactions", "receipts", "logs"):
        assert rows_of(poor, table) == rows_of(whole, table)
    check_reconciled(whole, keys, head_hash, tmp_path)


def check_reconciled(chain: Path, keys: list[SigningKey], head_hash: str, folder: Path) -> None:
    """An honest node is clean beside one that lacks an envelope."""
    manifest = json.loads((chain / "manifest.json").read_text())
    shared = ("chain_id", "genesis_hash", "contracts", "from_block", "to_block", "to_block_hash")
    about = {name: manifest[name] for name in shared}
    honest, lacking = (envelopes_of(chain, key) for key in keys)
    nodes = [
        write_node(folder / "node-honest", honest, keys[0], **about),
        write_node(folder / "node-lacking", lacking[:-1], keys[1], **about),
    ]

    done = run(
        *("audit", "reconcile", "--chain", chain, "--out", folder / "audit", "--json"),
        *("--trust", head_hash, *(part for node in nodes for part in ("--node", node))),
    )

    assert done.code == 1, done.err
    assert [(n["node_id"], n["expected"], n["findings"]) for n in done.content["nodes"]] == [
        (100, 4, {}),
        (200, 4, {"ENVELOPE_MISSING": 1}),
    ]


def test_export_chain__folder_in_an_older_format__is_continued_and_proved(
    spark: SparkSession, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain)
    folder = tmp_path / "chain"
    exported(local_chain, folder, "--range-blocks", "2")
    make_older(folder)
    publish(local_chain)

    told = exported(local_chain, folder)

    assert told["kept"]
    assert json.loads((folder / "manifest.json").read_text())["format"] == 6
    proof = prove_chain(spark, read_export(folder, "chain"), local_chain.head().hash)
    assert proof.problems == () and proof.is_anchored
    assert proof.held == proof.proved


def make_older(folder: Path) -> None:
    """Make an export what an older version would have written: format 4, with fewer columns."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for name, about in manifest["files"].items():
        table = pq.read_table(folder / name)
        table = table.drop_columns([each for each in table.column_names if each in NEW_COLUMNS])
        pq.write_table(table, folder / name)
        about["bytes"] = (folder / name).stat().st_size
        about["sha256"] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    path.write_text(json.dumps(manifest | {"format": 4}))
