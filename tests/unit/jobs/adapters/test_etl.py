"""Which files ethereum-etl's adapter takes, and what their names tell."""

import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from chainkit.errors import StoreError
from chainkit_jobs.adapters.adapter import SourceFile
from chainkit_jobs.adapters.ethereum_etl import EthereumEtl
from chainkit_jobs.adapters.etl_layout import Kind
from support.audit.etl_fixtures import ETHEREUM_ETL, touch

TABLES = ("blocks", "transactions", "receipts", "logs")


def flat(folder: Path, *others: str) -> Path:
    return touch(folder, *(f"{table}.csv" for table in TABLES), *others)


def test_files__partitions_of_export_all__have_ranges() -> None:
    files = EthereumEtl().files(ETHEREUM_ETL / "export_all")

    assert len(files) == 12
    assert files[0] == SourceFile(
        "blocks/start_block=00000007/end_block=00000010/blocks_00000007_00000010.csv",
        "blocks",
        first_block=7,
        last_block=10,
    )
    ranges = [(file.first_block, file.last_block) for file in files if file.table == "logs"]
    assert ranges == [(7, 10), (11, 14), (15, 16)]


def test_files__partitions_by_date__have_day_and_range(tmp_path: Path) -> None:
    name = "{0}/date=2026-03-01/{0}_00000007_00000008.csv"
    touch(tmp_path, *(name.format(table) for table in TABLES))

    file = EthereumEtl().files(tmp_path)[0]

    assert (file.day, file.first_block, file.last_block) == (date(2026, 3, 1), 7, 8)


def test_files__day_that_no_calendar_has__refused(tmp_path: Path) -> None:
    touch(tmp_path, "blocks/date=2026-02-30/blocks_00000007_00000008.csv")

    with pytest.raises(StoreError, match="a day YYYY-MM-DD, got 2026-02-30"):
        EthereumEtl().files(tmp_path)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_files__single_commands__one_file_per_table(form: str) -> None:
    files = EthereumEtl().files(ETHEREUM_ETL / form)

    assert {(file.name, file.table, file.first_block) for file in files} == {
        (f"{table}.{form}", table, None) for table in TABLES
    }


def test_files__stream__holds_three_tables() -> None:
    files = EthereumEtl().files(ETHEREUM_ETL / "stream")

    assert [file.table for file in files] == ["blocks", "transactions", "logs"]
    assert {file.name for file in files} == {"stream.json"}


def test_files__stream_beside_tables__refused(tmp_path: Path) -> None:
    flat(tmp_path, "stream.json")

    with pytest.raises(StoreError, match=r"a stream alone, or no stream, got blocks\.csv"):
        EthereumEtl().files(tmp_path)


@pytest.mark.parametrize("table", TABLES)
def test_files__table_without_file__refused_with_command(tmp_path: Path, table: str) -> None:
    flat(tmp_path)
    (tmp_path / f"{table}.csv").unlink()

    with pytest.raises(StoreError, match=f"{table} .`ethereumetl export_all .*got none"):
        EthereumEtl().files(tmp_path)


def test_files__other_tables_and_lists__passed_over(tmp_path: Path) -> None:
    others = ("token_transfers.csv", "tokens_0_9.csv", "traces.json", "transaction_hashes.txt")
    flat(tmp_path, *others)

    assert {file.name for file in EthereumEtl().files(tmp_path)} == {f"{t}.csv" for t in TABLES}


@pytest.mark.parametrize("name", ["block.csv", "blocks_5.csv", "blocks_copy.csv", "stream.csv"])
def test_files__name_that_the_tool_never_gives__refused(tmp_path: Path, name: str) -> None:
    flat(tmp_path, name)

    with pytest.raises(StoreError, match=f"got {name}"):
        EthereumEtl().files(tmp_path)


def test_files__file_in_the_folder_of_another_range__refused(tmp_path: Path) -> None:
    flat(tmp_path, "blocks/start_block=00000000/end_block=00000009/blocks_00000000_00000008.csv")

    with pytest.raises(StoreError, match="a file of blocks 0 to 9"):
        EthereumEtl().files(tmp_path)


def test_files__leftovers_of_an_unfinished_export_all__refused(tmp_path: Path) -> None:
    flat(tmp_path, ".tmp/start_block=00000000/transaction_hashes_00000000_00000009.csv")

    with pytest.raises(StoreError, match=r"a finished export_all, .* got \.tmp/start_block"):
        EthereumEtl().files(tmp_path)


def test_files__empty_folder_tmp_of_a_finished_export_all__accepted(tmp_path: Path) -> None:
    flat(tmp_path)
    (tmp_path / ".tmp").mkdir()

    assert len(EthereumEtl().files(tmp_path)) == 4


@pytest.mark.parametrize("form", ["csv", "json"])
def test_files__copy_of_real_files__same_as_original(tmp_path: Path, form: str) -> None:
    copy = shutil.copytree(ETHEREUM_ETL / form, tmp_path / "copy")

    assert EthereumEtl().files(copy) == EthereumEtl().files(ETHEREUM_ETL / form)


@pytest.mark.parametrize(
    ("kind", "accepted", "refused"),
    [
        (Kind.TEXT, pa.string(), pa.binary()),
        (Kind.NUMBER, pa.decimal128(38, 9), pa.float64()),
        (Kind.NUMBER, pa.int64(), pa.float32()),
        (Kind.NUMBER, pa.string(), pa.decimal256(76, 0)),
        (Kind.TIME, pa.timestamp("us"), pa.timestamp("ns")),
        (Kind.TIME, pa.timestamp("ms", "UTC"), pa.date32()),
        (Kind.LIST, pa.list_(pa.string()), pa.list_(pa.binary())),
        (Kind.FLAG, pa.bool_(), pa.int64()),
    ],
)
def test_kind__type_of_a_parquet_column(
    kind: Kind, accepted: pa.DataType, refused: pa.DataType
) -> None:
    assert kind.accepts(accepted)
    assert not kind.accepts(refused)
