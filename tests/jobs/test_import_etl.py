"""The adapter of ethereum-etl on what the real tool wrote of a chain on anvil."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from chainkit.contracts.deployment import read_deployment_record
from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.adapters.ethereum_etl import EthereumEtl
from chainkit_jobs.adapters.importing import import_chain
from support.audit.etl_fixtures import (
    ETHEREUM_ETL,
    FIRST,
    LAST,
    NO_FAULTS,
    RECORD,
    collect,
    expected_rows,
    plain,
)
from support.audit.imports import read_chain
from support.seeds import only_in_soak

Row = dict[str, str]
Change = Callable[[list[Row]], None]


def copy(tmp_path: Path, form: str) -> Path:
    return shutil.copytree(ETHEREUM_ETL / form, tmp_path / form)


def change_csv(path: Path, change: Change) -> None:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    change(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def change_json(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("form", ["csv", "json", "export_all", "stream"])
def test_read__files_of_the_real_tool__are_what_the_node_said(
    spark: SparkSession, form: str
) -> None:
    source = EthereumEtl().read(spark, ETHEREUM_ETL / form)

    found = collect(source)
    assert found.faults == NO_FAULTS
    for table in CHAIN_TABLES:
        assert found.rows[table] == expected_rows(table)
    assert source.receipts_are_derived is (form == "stream")


def test_fixture__covers_what_differs_between_types() -> None:
    transactions, logs = expected_rows("transactions"), expected_rows("logs")

    assert {row["type"] for row in transactions} == {0, 1, 2, 3, 4}
    assert {row["to_address"] is None for row in transactions} == {True, False}
    assert {row["status"] for row in expected_rows("receipts")} == {0, 1}
    assert {len(row["topics"]) for row in logs} >= {0, 4}
    assert any(int(float(row["value"])) != row["value"] for row in transactions)


# Writing and checking is the same for all formats: cryo and AWS show it.
@only_in_soak
def test_import__partitions_of_export_all__becomes_a_chain_export(
    spark: SparkSession, tmp_path: Path
) -> None:
    imported = import_chain(
        spark,
        EthereumEtl(),
        ETHEREUM_ETL / "export_all",
        read_deployment_record(RECORD),
        tmp_path / "chain",
        range_blocks=6,
        from_block=FIRST,
    )

    assert imported.faults == ()
    assert imported.manifest is not None
    assert (imported.manifest.source, imported.manifest.to_block) == ("ethereum-etl", LAST)
    exported = read_chain(tmp_path / "chain")
    for table in CHAIN_TABLES:
        rows = [{name: plain(value) for name, value in row.items()} for row in exported[table]]
        assert rows == expected_rows(table)


@only_in_soak
def test_import__a_block_twice_and_one_not_at_all__named_and_nothing_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    def change(rows: list[Row]) -> None:
        rows[5:6] = [rows[4]]

    folder = copy(tmp_path, "csv")
    change_csv(folder / "blocks.csv", change)

    imported = import_chain(
        spark,
        EthereumEtl(),
        folder,
        read_deployment_record(RECORD),
        tmp_path / "chain",
        range_blocks=6,
        from_block=FIRST,
    )

    assert imported.manifest is None
    found = {(str(fault.code), fault.table, fault.block) for fault in imported.faults}
    assert {("DUPLICATE_ROW", "blocks", 11), ("MISSING_BLOCK", "blocks", 12)} <= found


def test_read__wrong_cells_of_csv__each_named_and_null(spark: SparkSession, tmp_path: Path) -> None:
    folder = copy(tmp_path, "csv")

    def blocks(rows: list[Row]) -> None:
        rows[0]["miner"] = "0x" + "AB" * 20
        rows[1]["gas_used"] = "0x10"
        rows[2]["parent_hash"] = rows[2]["parent_hash"][:-2]
        rows[3]["base_fee_per_gas"] = "1e9"
        rows[4]["gas_limit"] = str(2**63)
        rows[5]["timestamp"] = ""
        rows[6]["gas_limit"] = str(2**63 - 1)
        rows[7]["base_fee_per_gas"] = str(10**38 - 1)

    def transactions(rows: list[Row]) -> None:
        rows[0]["value"] = "-1"
        rows[1]["value"] = str(10**38)
        rows[2]["nonce"] = str(2**64)
        rows[3]["nonce"] = str(2**64 - 1)
        rows[4]["value"] = str(10**38 - 1)
        rows[5]["transaction_type"] = ""

    def receipts(rows: list[Row]) -> None:
        rows[0]["status"] = ""
        rows[1]["transaction_hash"] = "0x" + "77" * 32

    def logs(rows: list[Row]) -> None:
        rows[0]["topics"] = rows[0]["topics"][:-2]
        rows[1]["topics"] = rows[1]["topics"][2:]
        for row, removed in zip(rows, ("", "false", "true", "False", ""), strict=False):
            row["removed"] = removed

    for table, change in (("transactions", transactions), ("receipts", receipts), ("logs", logs)):
        change_csv(folder / f"{table}.csv", change)
    change_csv(folder / "blocks.csv", blocks)
    with (folder / "blocks.csv").open("a") as file:
        file.write("17,0xab\n")

    read = collect(EthereumEtl().read(spark, folder))

    digits, wei = "0x and lower-case hex digits", 10**38 - 1
    found = read.faults
    assert found["blocks"] == [
        ("MISSING_VALUE", "timestamp: a value"),
        ("OUT_OF_RANGE", f"gas_limit: a whole number from 0 to {2**63 - 1} as decimal digits"),
        ("WRONG_ENCODING", "a whole row in each line"),
        ("WRONG_ENCODING", f"base_fee_per_gas: a whole number from 0 to {wei} as decimal digits"),
        ("WRONG_ENCODING", f"gas_used: a whole number from 0 to {2**63 - 1} as decimal digits"),
        ("WRONG_ENCODING", f"miner: 20 bytes as {digits}"),
        ("WRONG_LENGTH", f"parent_hash: 32 bytes as {digits}"),
    ]
    value = ("OUT_OF_RANGE", f"value: a whole number from 0 to {wei} as decimal digits")
    nonce = ("OUT_OF_RANGE", f"nonce: a whole number from 0 to {2**64 - 1} as decimal digits")
    assert found["transactions"] == [nonce, value, value]
    assert found["receipts"] == [
        ("MISSING_VALUE", "status: a value"),
        ("MISSING_VALUE", "transaction_hash: of a row in transactions"),
    ]
    assert found["logs"] == [
        ("REMOVED_LOG", "removed: false"),
        ("WRONG_ENCODING", f"topics: each 32 bytes as {digits}"),
        ("WRONG_LENGTH", f"topics: each 32 bytes as {digits}"),
    ]
    rows = {row["number"]: row for row in read.rows["blocks"]}
    assert rows[7]["miner"] is None and rows[7]["hash"] is not None
    assert rows[13]["gas_limit"] == 2**63 - 1
    assert {row["nonce"] for row in read.rows["transactions"]} >= {2**64 - 1}


def test_read__wrong_cells_of_json__named(spark: SparkSession, tmp_path: Path) -> None:
    folder = copy(tmp_path, "json")

    def transactions(rows: list[dict[str, Any]]) -> None:
        rows[0]["value"] = 1.5e18
        rows[1]["value"] = 10**30 + 1

    def logs(rows: list[dict[str, Any]]) -> None:
        rows[0]["topics"] = None
        rows[1]["topics"][0] = None

    change_json(folder / "transactions.json", transactions)
    change_json(folder / "logs.json", logs)
    with (folder / "blocks.json").open("a") as file:
        file.write('{"number": 17, "hash": "0x\n')

    read = collect(EthereumEtl().read(spark, folder))

    found = read.faults
    assert found["blocks"] == [("WRONG_ENCODING", "a whole row in each line")]
    assert [code for code, expected in found["transactions"]] == ["WRONG_ENCODING"]
    assert [code for code, expected in found["logs"]] == ["MISSING_VALUE", "WRONG_ENCODING"]
    assert read.rows["transactions"][1]["value"] == 10**30 + 1


def test_read__partition_of_an_older_version__columns_found_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = copy(tmp_path, "export_all")
    [path] = folder.glob("blocks/*/*/blocks_00000011_00000014.csv")
    later = ("withdrawals_root", "withdrawals", "blob_gas_used", "excess_blob_gas")

    def older(rows: list[Row]) -> None:
        rows[:] = [{name: row[name] for name in reversed(row) if name not in later} for row in rows]

    change_csv(path, older)

    read = collect(EthereumEtl().read(spark, folder))

    nothing = dict.fromkeys(name for name in later if name != "withdrawals")
    assert read.rows["blocks"] == [
        row | nothing if 11 <= row["number"] <= 14 else row for row in expected_rows("blocks")
    ]
    assert read.faults == NO_FAULTS


def test_read__transaction_twice__its_receipt_once(spark: SparkSession, tmp_path: Path) -> None:
    folder = copy(tmp_path, "csv")
    change_csv(folder / "transactions.csv", lambda rows: rows.append(rows[0]))

    read = collect(EthereumEtl().read(spark, folder))

    assert len(read.rows["transactions"]) == len(expected_rows("transactions")) + 1
    assert read.rows["receipts"] == expected_rows("receipts")
