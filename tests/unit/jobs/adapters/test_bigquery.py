"""Which files BigQuery's adapter takes."""

from pathlib import Path

import pytest

from chainkit.errors import StoreError
from chainkit_jobs.adapters.bigquery import BigQuery
from support.audit.etl_fixtures import BIGQUERY, touch

TABLES = ("blocks", "transactions", "logs")


@pytest.mark.parametrize(
    "name",
    [
        "{}/000000000000.parquet",
        "{}/anything at all.json",
        "{}-000000000000.json.gz",
        "{}_000000000001.csv.gz",
        "{}000000000000.csv",
        "{}.parquet",
        "2026-03/{}/000000000000.parquet",
    ],
)
def test_files__names_of_an_export__tell_the_table(tmp_path: Path, name: str) -> None:
    touch(tmp_path, *(name.format(table) for table in TABLES))

    files = BigQuery().files(tmp_path)

    assert {(file.name, file.table) for file in files} == {
        (name.format(table), table) for table in TABLES
    }
    assert all(file.first_block is None and file.day is None for file in files)


@pytest.mark.parametrize("name", ["receipts/0.parquet", "blocks_old/0.csv", "my-blocks.json"])
def test_files__name_that_tells_no_table__refused(tmp_path: Path, name: str) -> None:
    touch(tmp_path, name)

    with pytest.raises(StoreError, match=f"TABLE one of blocks, transactions, logs, got {name}"):
        BigQuery().files(tmp_path)


def test_files__what_is_no_data__passed_over(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{table}.csv" for table in TABLES), "README.md", "blocks.sql")

    assert len(BigQuery().files(tmp_path)) == 3


@pytest.mark.parametrize("table", TABLES)
def test_files__table_without_file__refused_with_command(tmp_path: Path, table: str) -> None:
    touch(tmp_path, *(f"{other}.csv" for other in TABLES if other != table))

    with pytest.raises(StoreError, match=f"{table} .`bq extract .*got none"):
        BigQuery().files(tmp_path)


@pytest.mark.parametrize("form", ["parquet", "json", "csv"])
def test_files__fixtures__one_per_table(form: str) -> None:
    assert [file.table for file in BigQuery().files(BIGQUERY / form)] == sorted(TABLES)
