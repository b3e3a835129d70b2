"""The adapters of BigQuery's and AWS's public datasets, on files of their documented schemas."""

import csv
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from chainkit.contracts.deployment import read_deployment_record
from chainkit.errors import StoreError
from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.adapters.aws import Aws
from chainkit_jobs.adapters.bigquery import BigQuery
from chainkit_jobs.adapters.importing import import_chain
from support.audit.etl_fixtures import (
    AWS,
    BIGQUERY,
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

AWS_UNTOLD = {
    "blocks": ("difficulty", "withdrawals_root", "blob_gas_used", "excess_blob_gas"),
    "transactions": ("max_fee_per_blob_gas", "blob_versioned_hashes"),
    "receipts": (),
    "logs": (),
}
"""Columns that the other two formats hold, and this layout does not, or only as a double."""


def exact_aws(tmp_path: Path) -> Path:
    """The documented layout, but for the amounts of wei."""
    folder = shutil.copytree(AWS / "documented", tmp_path / "eth")
    return shutil.copytree(AWS / "exact", folder, dirs_exist_ok=True)


def change_parquet(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


@pytest.mark.parametrize("form", ["parquet", "json", "csv"])
def test_read__bigquery__is_what_the_node_said(spark: SparkSession, form: str) -> None:
    source = BigQuery().read(spark, BIGQUERY / form)

    found = collect(source)
    assert found.faults == NO_FAULTS
    for table in CHAIN_TABLES:
        assert found.rows[table] == expected_rows(table)
    assert source.receipts_are_derived


def test_read__aws_with_exact_amounts__is_what_the_node_said(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = collect(Aws().read(spark, exact_aws(tmp_path)))

    assert found.faults == NO_FAULTS
    for table in CHAIN_TABLES:
        assert found.rows[table] == expected_rows(table, AWS_UNTOLD[table])


def test_read__aws_as_documented__refused_for_its_double(spark: SparkSession) -> None:
    with pytest.raises(StoreError, match="rounds whole numbers above") as refused:
        Aws().read(spark, AWS / "documented")

    assert "--format bigquery" in refused.value.place


def test_import__aws_by_days__becomes_a_chain_export(spark: SparkSession, tmp_path: Path) -> None:
    record = read_deployment_record(RECORD)

    imported = import_chain(
        spark, Aws(), exact_aws(tmp_path), record, tmp_path / "chain", 6, from_block=FIRST
    )

    assert imported.faults == ()
    assert imported.manifest is not None and imported.manifest.to_block == LAST
    exported = read_chain(tmp_path / "chain")
    for table, rows in exported.items():
        written = [{name: plain(value) for name, value in row.items()} for row in rows]
        assert written == expected_rows(table, AWS_UNTOLD[table])


@only_in_soak
def test_import__aws_without_a_day_of_logs_and_of_blocks__named(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, record = exact_aws(tmp_path), read_deployment_record(RECORD)
    shutil.rmtree(folder / "logs" / "date=2026-03-01")
    shutil.rmtree(folder / "blocks" / "date=2026-03-02")

    imported = import_chain(spark, Aws(), folder, record, tmp_path / "chain", 6, from_block=FIRST)

    found = {(str(fault.code), fault.table, fault.block) for fault in imported.faults}
    assert {("HALF_WRITTEN", "logs", 7), ("MISSING_BLOCK", "blocks", 9)} <= found


def test_read__wrong_cells_of_parquet__named(spark: SparkSession, tmp_path: Path) -> None:
    folder = shutil.copytree(BIGQUERY / "parquet", tmp_path / "parquet")

    def blocks(rows: list[dict[str, Any]]) -> None:
        rows[0]["timestamp"] = rows[0]["timestamp"].replace(microsecond=500_000)
        rows[1]["timestamp"] = rows[1]["timestamp"].replace(year=1969)
        rows[2]["gas_used"] = -1
        rows[3]["timestamp"] = None

    def transactions(rows: list[dict[str, Any]]) -> None:
        rows[0]["value"] += Decimal("0.5")
        rows[1]["receipt_status"] = None
        # An old node did not tell the price that was paid: it is the one that was offered.
        assert rows[3]["transaction_type"] == 0
        rows[3]["receipt_effective_gas_price"] = None
        assert rows[5]["transaction_type"] == 2
        rows[5]["receipt_effective_gas_price"] = None

    change_parquet(folder / "blocks" / "000000000000.parquet", blocks)
    change_parquet(folder / "transactions" / "000000000000.parquet", transactions)

    read = collect(BigQuery().read(spark, folder))

    found = read.faults
    times = "timestamp: whole seconds from 1970 on, UTC"
    assert found["blocks"] == [
        ("MISSING_VALUE", "timestamp: a value"),
        ("OUT_OF_RANGE", f"gas_used: a whole number from 0 to {2**63 - 1}"),
        ("OUT_OF_RANGE", times),
        ("WRONG_ENCODING", times),
    ]
    # A receipt's fault is collect of the transaction's row, which holds the receipt.
    assert found["transactions"] == [
        ("MISSING_VALUE", "receipt_effective_gas_price: a value"),
        ("MISSING_VALUE", "receipt_status: a value"),
        ("WRONG_ENCODING", f"value: a whole number from 0 to {10**38 - 1}"),
    ]
    assert read.rows["receipts"][3]["effective_gas_price"] == 3 * 10**9


def test_read__times_as_text__only_whole_seconds_of_a_named_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    codes = {
        "2026-03-01 23:58:00 UTC": None,
        "2026-03-01T23:58:00Z": None,
        "2026-03-01 23:58:00.000000 UTC": None,
        "1772409480": None,
        "2026-03-01 23:58:00": "WRONG_ENCODING",
        "2026-03-01 23:58:00.5 UTC": "WRONG_ENCODING",
        "2026-02-30 23:58:00 UTC": "WRONG_ENCODING",
        "2026-03-01 23:58:00 CET": "WRONG_ENCODING",
        "1969-12-31 23:59:59 UTC": "OUT_OF_RANGE",
        "-1": "OUT_OF_RANGE",
    }
    folder = shutil.copytree(BIGQUERY / "csv", tmp_path / "csv")
    path = folder / "blocks-000000000000.csv"
    with path.open(newline="") as file:
        row = next(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerows(row | {"timestamp": time, "size": n} for n, time in enumerate(codes))

    rows = BigQuery().read(spark, folder).blocks.select("timestamp", "fault.code").collect()

    assert {(row["timestamp"], row["code"]) for row in rows} == {
        (1772409480 if code is None else None, code) for code in codes.values()
    }
    assert [row["code"] for row in rows] == list(codes.values())


def test_fixture__last_block_is_near_the_end_of_its_day() -> None:
    folder = AWS / "documented" / "blocks"
    [path] = folder.glob("date=2026-03-03/*.parquet")

    last = pc.max(pq.read_table(path)["timestamp"]).as_py()

    assert (last.hour, last.minute) == (23, 50)
