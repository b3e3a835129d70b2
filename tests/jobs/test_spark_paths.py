"""Folders whose names are patterns to Spark, or no ASCII, are read as they are named."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from chainkit.contracts.deployment import read_deployment_record
from chainkit.errors import ConfigurationError
from chainkit_jobs.adapters.cryo import Cryo
from chainkit_jobs.adapters.ethereum_etl import EthereumEtl
from chainkit_jobs.adapters.importing import import_chain
from chainkit_jobs.spark_paths import spark_paths
from support.audit.etl_fixtures import ETHEREUM_ETL, NO_FAULTS, collect
from support.audit.imports import FIXTURES
from support.audit.reconcile_command import A, B, chain_of, node_of, reconcile

ODD = r"a [b] {c,d} *? \e é+%20"
"""Each character that a pattern of Hadoop gives a meaning to, and what a URI does."""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    folder = tmp_path / ODD
    folder.mkdir()
    return folder


def test_reconcile__folder_named_like_a_pattern__is_audited(spark: SparkSession, odd: Path) -> None:
    nodes = [node_of(odd, A), node_of(odd, B)]

    result = reconcile(chain_of(odd), nodes, odd / "audit", "--tables", "--work", str(odd / "work"))

    assert result.exit_code == 1, result.output
    assert "compared beside the envelopes: other columns of 2 nodes" in result.stdout


def test_import__cryo_in_a_folder_named_like_a_pattern__is_imported(
    spark: SparkSession, odd: Path
) -> None:
    source = shutil.copytree(FIXTURES / "cryo" / "binary", odd / "cryo")
    record = read_deployment_record(FIXTURES / "cryo" / "deployment.json")

    imported = import_chain(spark, Cryo(), source, record, odd / "chain", range_blocks=10)

    assert imported.faults == ()


@pytest.mark.parametrize("form", ["csv", "json", "stream"])
def test_read__etl_in_a_folder_named_like_a_pattern__has_every_row(
    spark: SparkSession, odd: Path, form: str
) -> None:
    source = shutil.copytree(ETHEREUM_ETL / form, odd / form)

    found = collect(EthereumEtl().read(spark, source))

    assert found.faults == NO_FAULTS
    assert all(found.rows.values())


@pytest.mark.usefixtures("spark")
def test_read__letter_beyond_ascii_in_a_locale_of_ascii__has_every_row(tmp_path: Path) -> None:
    path = tmp_path / "é" / "rows.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"number": [1, 2, 3]}), path)
    program = """
import sys
from pathlib import Path
from chainkit_jobs.spark.session import spark_session
from chainkit_jobs.spark_paths import spark_paths
with spark_session("local[1]") as spark:
    print(spark.read.parquet(*spark_paths(spark, [Path(sys.argv[1])])).count())
"""

    # In a process of its own: Java reads the locale where it starts.
    result = subprocess.run(
        [sys.executable, "-c", program, path],
        env=os.environ | {"LC_ALL": "C"},
        capture_output=True,
        check=False,
    )

    assert result.stdout == b"3\n", result.stderr.decode()


def test_paths__colon_in_a_pattern__is_refused_in_words(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match=r"folder /a:b/c\?: expected no colon beside"):
        spark_paths(spark, [Path("/a:b/c/d"), Path("/a:b/c?/d")])


def test_paths__java_started_elsewhere_in_a_locale_of_ascii__names_folder_and_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C")
    lang = SimpleNamespace(System=SimpleNamespace(getProperty=lambda _: "ANSI_X3.4-1968"))
    java = SimpleNamespace(java=SimpleNamespace(lang=lang))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=java))
    folder = tmp_path / "é"

    with pytest.raises(ConfigurationError) as raised:
        spark_paths(cast(SparkSession, spark), [tmp_path / "a.parquet", folder / "a.parquet"])

    assert str(raised.value) == (
        f"folder {folder}: expected a locale of UTF-8 for Java, such as LC_ALL=C.UTF-8, "
        "got ANSI_X3.4-1968 (LANG=C)"
    )
