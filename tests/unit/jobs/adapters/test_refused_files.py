"""`chainkit audit import-chain` refuses another type or codec by name, before Spark starts.

Spark's reader of rows answers a type that does not fit with NULL or another number.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit_jobs.cli.import_chain import FORMATS
from support.audit.etl_fixtures import AWS, BIGQUERY, ETHEREUM_ETL, RECORD
from support.audit.imports import FIXTURES
from support.command_line import Outcome, run

CRYO = FIXTURES / "cryo"
PARQUET = {"aws": AWS / "documented", "bigquery": BIGQUERY / "parquet", "cryo": CRYO / "binary"}
TEXTS = {"bigquery": BIGQUERY / "csv", "ethereum-etl": ETHEREUM_ETL / "csv"}


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(master: str) -> NoReturn:
        raise AssertionError("Spark is started")

    monkeypatch.setattr("chainkit_jobs.cli.import_chain.spark_session", start)


def copy(source: Path, folder: Path) -> Path:
    copied = Path(shutil.copytree(source, folder / "source"))
    if source == PARQUET["aws"]:
        shutil.copytree(AWS / "exact", copied, dirs_exist_ok=True)
    return copied


def import_of(name: str, source: Path) -> Outcome:
    record = CRYO / "deployment.json" if name == "cryo" else RECORD
    paths = ("--source", str(source), "--deployment", str(record))
    return run(
        *("audit", "import-chain", "--format", name, *paths, "--out", str(source.parent / "out"))
    )


def refused(name: str, source: Path, *words: str) -> bool:
    outcome = import_of(name, source)
    assert "Traceback" not in outcome.err
    return outcome.code == 2 and all(word in outcome.err for word in words)


def with_double(table: pa.Table) -> pa.Table:
    index = table.schema.get_field_index("gas_used")
    return table.set_column(index, "gas_used", table["gas_used"].cast("double"))


REWRITES: dict[str, tuple[Callable[[pa.Table], pa.Table], str, tuple[str, ...]]] = {
    "double": (with_double, "zstd", ("gas_used", "double")),
    "brotli": (
        lambda table: table,
        "brotli",
        ("BROTLI", "one of SNAPPY, GZIP, ZSTD, LZ4, UNCOMPRESSED"),
    ),
}


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("name", PARQUET)
def test_command__parquet_of_another_type_or_codec__is_named_before_spark_starts(
    name: str, rewrite: str, tmp_path: Path
) -> None:
    source = copy(PARQUET[name], tmp_path)
    blocks = [
        path for path in source.rglob("*.parquet") if "blocks" in str(path.relative_to(source))
    ]
    # Each file is looked at.
    path = max(blocks)
    change, codec, words = REWRITES[rewrite]
    content = pq.read_table(path, partitioning=None, coerce_int96_timestamp_unit="us")
    pq.write_table(change(content), path, compression=codec)

    assert refused(name, source, path.relative_to(source).as_posix(), *words)


@pytest.mark.parametrize("name", TEXTS)
def test_command__text_without_a_column__is_named_before_spark_starts(
    name: str, tmp_path: Path
) -> None:
    source = copy(TEXTS[name], tmp_path)
    [path] = source.glob("blocks*.csv")
    head, rest = path.read_text().split("\n", 1)
    path.write_text(head.replace("gas_used", "gas_spent") + "\n" + rest)

    assert refused(name, source, path.name, "gas_used")


def test_tables__each_format_of_the_command__is_in_one() -> None:
    assert {*PARQUET, *TEXTS} == set(FORMATS)


@pytest.mark.parametrize(("name", "source"), [*PARQUET.items(), *TEXTS.items()])
def test_command__files_as_they_were_written__spark_is_started(
    name: str, source: Path, tmp_path: Path
) -> None:
    assert "Spark is started" in import_of(name, copy(source, tmp_path)).err
