"""A source that other tools wrote again is imported as it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from chainkit.contracts.deployment import read_deployment_record
from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.adapters.aws import Aws
from chainkit_jobs.adapters.bigquery import BigQuery
from chainkit_jobs.adapters.cryo import Cryo
from chainkit_jobs.adapters.footers import READ_CODECS
from chainkit_jobs.adapters.importing import import_chain
from support.audit.etl_fixtures import AWS, BIGQUERY, NO_FAULTS, collect, expected_rows
from support.audit.imports import FIXTURES, answered_rows
from support.audit.rewriting import REWRITERS, rewrite_each
from support.seeds import only_in_soak

CRYO = FIXTURES / "cryo"
RECORD = read_deployment_record(CRYO / "deployment.json")


def head_hash(spark: SparkSession, source: Path, out: Path) -> str:
    imported = import_chain(spark, Cryo(), source, RECORD, out, range_blocks=100)
    assert imported.faults == ()
    assert imported.manifest is not None
    return imported.manifest.to_block_hash


def last_hash() -> str:
    return "0x" + answered_rows(CRYO / "answers.json")["blocks"][-1]["hash"].hex()


def test_import__each_file_of_cryo_by_another_tool_and_codec__has_the_same_head(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(CRYO / "binary", tmp_path / "source"))
    rewrite_each(source)

    assert head_hash(spark, source, tmp_path / "chain") == last_hash()


@only_in_soak
@pytest.mark.parametrize("codec", READ_CODECS)
@pytest.mark.parametrize("rewriter", REWRITERS)
def test_import__cryo_by_one_tool_and_codec__has_the_same_head(
    spark: SparkSession, rewriter: str, codec: str, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(CRYO / "binary", tmp_path / "source"))
    for number, path in enumerate(sorted(source.glob("*.parquet"))):
        REWRITERS[rewriter](path, codec, number % 2 == 0)

    assert head_hash(spark, source, tmp_path / "chain") == last_hash()


@only_in_soak
@pytest.mark.parametrize("rewriter", REWRITERS)
def test_read__bigquery_by_another_tool__is_what_the_node_said(
    spark: SparkSession, rewriter: str, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(BIGQUERY / "parquet", tmp_path / "source"))
    for path in source.rglob("*.parquet"):
        REWRITERS[rewriter](path, "ZSTD", True)

    found = collect(BigQuery().read(spark, source))

    assert found.faults == NO_FAULTS
    for table in CHAIN_TABLES:
        assert found.rows[table] == expected_rows(table)


@only_in_soak
def test_read__aws_by_each_tool_in_turn__is_what_aws_wrote(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(AWS / "documented", tmp_path / "source"))
    shutil.copytree(AWS / "exact", source, dirs_exist_ok=True)
    before = collect(Aws().read(spark, source)).rows
    rewrite_each(source)

    found = collect(Aws().read(spark, source))

    assert found.faults == NO_FAULTS
    assert found.rows == before
