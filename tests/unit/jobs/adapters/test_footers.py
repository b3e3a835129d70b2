"""Parquet files of other writers: every spelling of a column is read, what Spark lacks is named."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.errors import StoreError
from chainkit_jobs.adapters.adapter import Adapter
from chainkit_jobs.adapters.aws import Aws
from chainkit_jobs.adapters.bigquery import BigQuery
from chainkit_jobs.adapters.cryo import Cryo
from chainkit_jobs.adapters.ethereum_etl import EthereumEtl
from chainkit_jobs.adapters.footers import READ_CODECS, column_types, plain_type
from support.audit.etl_fixtures import AWS, BIGQUERY, ETHEREUM_ETL
from support.audit.imports import FIXTURES
from support.audit.rewriting import REWRITERS

CRYO = FIXTURES / "cryo"
SOURCES: dict[str, tuple[Adapter, Path]] = {
    "cryo": (Cryo(), CRYO / "binary"),
    "bigquery": (BigQuery(), BIGQUERY / "parquet"),
    "aws": (Aws(), AWS / "documented"),
}


class NoSpark:
    """Fails the test that reaches it."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"Spark was reached: {name}")


def copied(name: str, folder: Path) -> tuple[Adapter, Path]:
    adapter, source = SOURCES[name]
    path = shutil.copytree(source, folder / "source")
    if name == "aws":
        shutil.copytree(AWS / "exact", path, dirs_exist_ok=True)
    return adapter, Path(path)


def refused(adapter: Adapter, folder: Path) -> StoreError:
    """Return why the source is refused, by the check alone and before Spark in a reading."""
    with pytest.raises(StoreError) as checked:
        adapter.check(folder)
    with pytest.raises(StoreError) as read:
        adapter.read(NoSpark(), folder)  # type: ignore[arg-type]
    assert str(read.value) == str(checked.value)
    return checked.value


def with_column(path: Path, name: str, column: pa.Array) -> None:
    table = pq.read_table(path)
    place = table.schema.get_field_index(name)
    pq.write_table(table.set_column(place, name, column), path)


@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
@pytest.mark.parametrize("codec", READ_CODECS)
@pytest.mark.parametrize("rewriter", REWRITERS)
def test_types__any_writer_and_codec__are_those_of_cryo(
    rewriter: str, codec: str, dictionary: bool, tmp_path: Path
) -> None:
    original = next((CRYO / "hex").glob("*__logs__*.parquet"))
    path = Path(shutil.copy(original, tmp_path))
    names = pq.read_schema(path).names

    REWRITERS[rewriter](path, codec, dictionary)

    assert column_types(path, "file", names) == column_types(original, "file", names)


@pytest.mark.parametrize(
    "type_",
    [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)
def test_plain_type__spelling_of_text__is_text_in_lists_too(type_: pa.DataType) -> None:
    assert plain_type(type_) == pa.string()
    assert plain_type(pa.large_list(type_)) == pa.list_(pa.string())


@pytest.mark.parametrize("type_", [pa.large_binary(), pa.binary_view(), pa.binary(32)], ids=str)
def test_plain_type__spelling_of_bytes__is_bytes(type_: pa.DataType) -> None:
    assert plain_type(type_) == pa.binary()


@pytest.mark.parametrize("name", SOURCES)
def test_check__any_one_file_with_brotli__is_named_with_its_codec(
    name: str, tmp_path: Path
) -> None:
    adapter, folder = copied(name, tmp_path)
    path = folder / sorted(file.name for file in adapter.files(folder))[-1]
    pq.write_table(pq.read_table(path, partitioning=None), path, compression="brotli")

    error = refused(adapter, folder)

    assert str(path) in error.subject
    assert "compressed by one of SNAPPY, GZIP, ZSTD, LZ4, UNCOMPRESSED" in str(error.expected)
    assert error.got == "BROTLI"
    assert "zstd" in error.place


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    "type_", [pa.float64(), pa.decimal256(50, 0), pa.uint16()], ids=["double", "decimal256", "u16"]
)
def test_check__number_of_another_type_in_the_last_table__is_named_before_spark(
    name: str, type_: pa.DataType, tmp_path: Path
) -> None:
    adapter, folder = copied(name, tmp_path)
    path = next(
        folder / file.name for file in reversed(adapter.files(folder)) if file.table == "logs"
    )
    rows = pq.read_table(path, partitioning=None).num_rows
    with_column(path, "log_index", pa.array([1] * rows).cast(type_))

    error = refused(adapter, folder)

    assert str(path) in error.subject
    assert "log_index" in str(error.expected)
    assert str(type_) in str(error.got)
    assert error.place


def test_check__text_of_ethereum_etl_without_a_column__is_named_before_spark(
    tmp_path: Path,
) -> None:
    folder = Path(shutil.copytree(ETHEREUM_ETL / "csv", tmp_path / "source"))
    path = next(folder.rglob("logs*.csv"))
    path.write_text(path.read_text().replace("log_index", "another", 1))

    assert str(path) in refused(EthereumEtl(), folder).subject
