"""Which files the adapter of AWS's public dataset takes."""

from datetime import date
from pathlib import Path

import pytest

from chainkit.errors import StoreError
from chainkit_jobs.adapters.aws import Aws

TABLES = ("blocks", "transactions", "logs")
NAME = "part-00000-805de656-8631-4f64-83b6-62610ff9d4ca-c000.snappy.parquet"


def days(folder: Path, *others: str) -> Path:
    for name in (*(f"{table}/date=2026-03-01/{NAME}" for table in TABLES), *others):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def test_files__one_day__has_it(tmp_path: Path) -> None:
    files = Aws().files(days(tmp_path))

    assert [file.table for file in files] == sorted(TABLES)
    assert {file.day for file in files} == {date(2026, 3, 1)}


def test_files__other_tables_and_sparks_markers__passed_over(tmp_path: Path) -> None:
    folder = "logs/date=2026-03-01"
    days(tmp_path, f"traces/date=2026-03-01/{NAME}", f"{folder}/_SUCCESS", f"{folder}/.x.crc")

    assert len(Aws().files(tmp_path)) == 3


@pytest.mark.parametrize(
    "name",
    [
        f"logs/date=2026-03-01/{NAME}.6eF7a1b2",
        f"logs/date=2026-03-01/_temporary/0/{NAME}",
        f"logs/date=2026-03-01/_{NAME}",
        f"logs/{NAME}",
        f"logs/date=2026-3-1/{NAME}",
        f"v1.0/eth/logs/date=2026-03-01/{NAME}",
        "logs/date=2026-03-01/logs.csv",
    ],
)
def test_files__anything_else__refused(tmp_path: Path, name: str) -> None:
    days(tmp_path, name)

    with pytest.raises(StoreError, match=r"TABLE/date=YYYY-MM-DD/NAME\.parquet") as refused:
        Aws().files(tmp_path)

    assert refused.value.got == name


def test_files__day_that_no_calendar_has__refused(tmp_path: Path) -> None:
    days(tmp_path, f"logs/date=2026-02-29/{NAME}")

    with pytest.raises(StoreError, match="a day YYYY-MM-DD, got 2026-02-29"):
        Aws().files(tmp_path)


def test_files__day_of_a_leap_year__accepted(tmp_path: Path) -> None:
    days(tmp_path, f"logs/date=2028-02-29/{NAME}")

    assert date(2028, 2, 29) in {file.day for file in Aws().files(tmp_path)}


@pytest.mark.parametrize("table", TABLES)
def test_files__table_without_file__refused_with_command(tmp_path: Path, table: str) -> None:
    days(tmp_path)
    (tmp_path / table / "date=2026-03-01" / NAME).unlink()

    with pytest.raises(StoreError, match=f"{table} .`aws s3 sync .*got none"):
        Aws().files(tmp_path)
