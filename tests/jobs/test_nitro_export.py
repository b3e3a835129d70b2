"""`chainkit audit export-chain` and `verify-chain` on a chain of Nitro."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from chainkit.exports.tables import COLUMNS_SINCE_FORMAT_6 as NEW_COLUMNS
from chainkit_jobs.proof import prove_chain
from chainkit_jobs.sources import read_export
from support.chains.chain import LocalChain
from support.chains.exported_chain import exported, publish, rows_of
from support.chains.nitro_chain import NitroChain
from support.endpoints.fault_proxy import Fault, FaultProxy
from support.endpoints.faults import result_changed


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


def test_export_chain__chain_of_nitro__is_proved_whole_whatever_the_endpoint_leaves_out(
    spark: SparkSession, local_chain: LocalChain, tmp_path: Path
) -> None:
    publish(local_chain)
    with NitroChain(local_chain) as nitro, FaultProxy(nitro.url) as poor:
        poor.arm(LEFT_OUT)
        exported(local_chain, tmp_path / "whole", "--from-block", "1", url=nitro.url)
        exported(local_chain, tmp_path / "poor", "--from-block", "1", url=poor.url)
        head_hash, types = bytes.fromhex(nitro.head_hash[2:]), nitro.types
        assert poor.delivered[LEFT_OUT.name]

    proof = prove_chain(spark, read_export(tmp_path / "whole", "chain"), head_hash)

    assert proof.problems == () and proof.is_anchored
    assert proof.held == proof.proved
    tables = ("blocks", "transactions", "receipts", "logs")
    assert {row["type"] for row in rows_of(tmp_path / "whole", "transactions")} == types
    for table in tables:
        assert rows_of(tmp_path / "poor", table) == rows_of(tmp_path / "whole", table)


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
