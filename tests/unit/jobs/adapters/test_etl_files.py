"""Wrong files of the ethereum-etl family are refused before Spark reads them."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from chainkit.errors import StoreError
from chainkit_jobs.adapters.adapter import SourceFile
from chainkit_jobs.adapters.aws import Aws
from chainkit_jobs.adapters.checks import Bounds
from chainkit_jobs.adapters.ethereum_etl import EthereumEtl
from chainkit_jobs.adapters.etl_files import Family
from chainkit_jobs.adapters.etl_layout import BLOCKS, LOGS, RECEIPTS, WITH_RECEIPTS
from chainkit_jobs.adapters.file_checks import Span, file_faults
from support.audit.etl_fixtures import AWS, ETHEREUM_ETL

NO_SPARK = cast(SparkSession, None)
COLUMNS = {"blocks": BLOCKS, "receipts": RECEIPTS, "transactions": WITH_RECEIPTS, "logs": LOGS}
FAMILY = Family("tool", COLUMNS, "tool export", "`tool exact`")


def read(path: Path, table: str) -> None:
    groups = FAMILY.groups(path.parent, [SourceFile(path.name, table)])
    FAMILY.read(NO_SPARK, path.parent, table, groups[table])


def accepted(path: Path, table: str) -> bool:
    """Whether nothing but the missing Spark stops the reading."""
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute"):
        read(path, table)
    return True


def csv_without(folder: Path, column: str) -> Path:
    lines = (ETHEREUM_ETL / "csv" / "receipts.csv").read_text().splitlines()
    index = lines[0].split(",").index(column)
    path = folder / "receipts.csv"
    kept = [
        ",".join(cell for number, cell in enumerate(line.split(",")) if number != index)
        for line in lines
    ]
    path.write_text("\n".join(kept) + "\n")
    return path


def test_csv__without_a_needed_column__refused_with_command(tmp_path: Path) -> None:
    path = csv_without(tmp_path, "effective_gas_price")

    expected = "the columns of `tool export`, got none of the name effective_gas_price"
    with pytest.raises(StoreError, match=expected):
        read(path, "receipts")


def test_csv__without_a_column_of_rollups__accepted(tmp_path: Path) -> None:
    assert accepted(csv_without(tmp_path, "l1_fee"), "receipts")


def test_csv__cut_off_in_its_last_line__refused(tmp_path: Path) -> None:
    whole = (ETHEREUM_ETL / "csv" / "blocks.csv").read_bytes()
    path = tmp_path / "blocks.csv"
    path.write_bytes(whole)
    assert accepted(path, "blocks")

    path.write_bytes(whole[:-1].rstrip())
    with pytest.raises(StoreError, match="a file whose last line is whole"):
        read(path, "blocks")


def test_csv__empty_as_the_tool_writes_a_table_without_rows__accepted(tmp_path: Path) -> None:
    path = tmp_path / "logs.csv"
    path.touch()

    assert accepted(path, "logs")


def test_csv__column_twice__refused(tmp_path: Path) -> None:
    path = tmp_path / "receipts.csv"
    path.write_text(",".join([*RECEIPTS, "status"]) + "\n")

    with pytest.raises(StoreError, match="each column once"):
        read(path, "receipts")


def test_csv__not_text__refused(tmp_path: Path) -> None:
    path = tmp_path / "receipts.csv"
    path.write_bytes(b"\xff\xfe\x00\n")

    with pytest.raises(StoreError, match="UTF-8 text"):
        read(path, "receipts")


def test_json__without_what_may_be_empty__accepted(tmp_path: Path) -> None:
    path = tmp_path / "receipts.json.gz"
    empty = {name for name, column in RECEIPTS.items() if column.may_be_empty}
    assert "contract_address" in empty
    with gzip.open(path, "wt") as file:
        file.write(json.dumps({name: "1" for name in RECEIPTS if name not in empty}) + "\n")

    assert accepted(path, "receipts")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (json.dumps({name: "1" for name in RECEIPTS if name != "gas_used"}), "name gas_used"),
        ("[1]", "a JSON object in each line, got list"),
        ('{"gas_used": ', "UTF-8 text, one row a line"),
        ("[" * 100_000, "UTF-8 text, one row a line"),
    ],
)
def test_json__first_line_that_is_no_row__refused(tmp_path: Path, line: str, expected: str) -> None:
    path = tmp_path / "receipts.json"
    path.write_text(line + "\n")

    with pytest.raises(StoreError, match=expected):
        read(path, "receipts")


def parquet(path: Path, **columns: pa.DataType) -> Path:
    types: dict[str, Any] = {name: pa.string() for name in LOGS} | {"topics": pa.list_(pa.string())}
    del types["removed"]
    types |= columns
    pq.write_table(pa.schema(list(types.items())).empty_table(), path)
    return path


def test_parquet__column_of_another_type__refused(tmp_path: Path) -> None:
    assert accepted(parquet(tmp_path / "logs.parquet"), "logs")
    path = parquet(tmp_path / "logs.parquet", data=pa.binary())

    with pytest.raises(StoreError, match="data as string, got binary"):
        read(path, "logs")


def test_parquet__type_unlike_the_first_files__refused(tmp_path: Path) -> None:
    parquet(tmp_path / "0.parquet", log_index=pa.int64())
    parquet(tmp_path / "1.parquet", log_index=pa.decimal128(20, 0))
    files = [SourceFile(name, "logs") for name in ("0.parquet", "1.parquet")]

    with pytest.raises(StoreError, match=r"log_index of type int64, as 0\.parquet has it"):
        FAMILY.groups(tmp_path, files)


def test_table__both_as_parquet_and_as_text__refused(tmp_path: Path) -> None:
    parquet(tmp_path / "0.parquet")
    (tmp_path / "1.csv").touch()
    files = [SourceFile(name, "logs") for name in ("0.parquet", "1.csv")]

    with pytest.raises(StoreError, match="files of logs in one form"):
        FAMILY.groups(tmp_path, files)


def test_parquet__no_parquet__refused(tmp_path: Path) -> None:
    path = tmp_path / "logs.parquet"
    path.write_bytes(b"PAR1")

    with pytest.raises(StoreError, match="expected Parquet"):
        read(path, "logs")


def test_aws__transactions_as_documented__refused_for_their_double_of_wei() -> None:
    [path] = (AWS / "documented" / "transactions").glob("date=2026-03-01/*.parquet")

    with pytest.raises(StoreError, match=r"value as integer, .* got double") as refused:
        read(path, "transactions")

    assert refused.value.place == "exact ones: `tool exact`"


def test_aws__transactions_with_exact_amounts__accepted() -> None:
    [path] = (AWS / "exact" / "transactions").glob("date=2026-03-01/*.parquet")

    assert accepted(path, "transactions")


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def day_faults(first_of_second_day: str, last: str, *, asked: bool = False) -> list[str]:
    """The import's words about two days whose blocks are 7 to 9 and 10 to 16."""
    times = {1: ("2026-03-01 10:00:00", "2026-03-01 23:59:59"), 2: (first_of_second_day, last)}
    files = Aws().files(AWS / "documented")
    spans = {
        ("blocks", file.name): Span(*numbers, *(seconds(time) for time in times[day]))
        for file in files
        for day, numbers in ((1, (7, 9)), (2, (10, 16)))
        if file.table == "blocks" and file.day is not None and file.day.day == day
    }
    faults = file_faults(files, spans, Bounds(7, 16), 31337, asked)
    return [f"{fault.code} {fault.table} {fault.file}" for fault in faults]


SECOND_DAY = "blocks blocks/date=2026-03-02/part-00000-fixture-c000.snappy.parquet"


def test_aws__day_with_a_block_of_the_day_before__named() -> None:
    assert day_faults("2026-03-01 23:59:59", "2026-03-02 23:50:00") == [f"RANGE_END {SECOND_DAY}"]


def test_aws__day_from_its_first_second_to_its_last_minutes__fine() -> None:
    assert day_faults("2026-03-02 00:00:00", "2026-03-02 23:50:00") == []


def test_aws__last_day_that_ends_early__named_unless_asked_for() -> None:
    half = ("2026-03-02 00:00:00", "2026-03-02 12:00:00")

    assert day_faults(*half) == [f"HALF_WRITTEN {SECOND_DAY}"]
    assert day_faults(*half, asked=True) == []


def copy_names(folder: Path, *, but: str = "") -> Path:
    for file in EthereumEtl().files(ETHEREUM_ETL / "export_all"):
        if not but or but not in file.name:
            path = folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    return folder


def range_faults(folder: Path) -> set[str]:
    files = EthereumEtl().files(folder)
    spans = {
        ("blocks", file.name): Span(file.first_block or 0, file.last_block or 0, None, None)
        for file in files
        if file.table == "blocks"
    }
    faults = file_faults(files, spans, Bounds(7, 16), 31337, True)
    return {f"{fault.code} {fault.table} {fault.block}" for fault in faults}


def test_export_all__all_partitions__fine(tmp_path: Path) -> None:
    assert range_faults(copy_names(tmp_path)) == set()


def test_export_all__partition_missing__named(tmp_path: Path) -> None:
    folder = copy_names(tmp_path, but="logs_00000011_00000014")

    assert range_faults(folder) == {"MISSING_FILE logs 11"}


def test_export_all__partitions_that_overlap__named(tmp_path: Path) -> None:
    name = "logs/start_block=00000009/end_block=00000012/logs_00000009_00000012.csv"
    path = copy_names(tmp_path) / name
    path.parent.mkdir(parents=True)
    path.touch()

    assert "OVERLAPPING_FILES logs 9" in range_faults(tmp_path)
