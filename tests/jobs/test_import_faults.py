"""Each fault that an import names, once with its trigger and once with its near miss.

Sources are the real cryo's files, edited; what cryo's layout cannot hold is edited behind its
adapter.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BinaryType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from chainkit.cli.main import chainkit
from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.exports import tables
from chainkit_jobs.adapters.adapter import SourceFile, SourceTables
from chainkit_jobs.adapters.cells import Cell, fault, hex_text, number_text, raw_bytes, whole_number
from chainkit_jobs.adapters.cryo import Cryo
from chainkit_jobs.adapters.faults import Fault, FaultCode
from chainkit_jobs.adapters.importing import import_chain
from support.audit.imports import FIXTURES
from support.seeds import IS_SOAK

CRYO = FIXTURES / "cryo"
LAST = 22

Row = dict[str, Any]


@pytest.fixture
def record() -> DeploymentRecord:
    return read_deployment_record(CRYO / "deployment.json")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CRYO / "binary", tmp_path / "source"))


def edit(source: Path, table: str, block: int, change: Callable[[list[Row]], list[Row]]) -> None:
    """Replace a block's rows of a table, in the file that they are in."""
    for file in Cryo().files(source):
        if file.table == table and (file.first_block or 0) <= block <= (file.last_block or 0):
            path = source / file.name
            content = pq.read_table(path)
            rows = content.to_pylist()
            kept = [row for row in rows if row["block_number"] != block]
            changed = change([row for row in rows if row["block_number"] == block])
            pq.write_table(pa.Table.from_pylist(kept + changed, content.schema), path)


def with_values(**values: Any) -> Callable[[list[Row]], list[Row]]:
    """Change cells of a block's first row."""
    return lambda rows: [rows[0] | values, *rows[1:]]


def without_last(rows: list[Row]) -> list[Row]:
    return rows[:-1]


def kinds(faults: Sequence[Fault]) -> set[tuple[str, str, int, int | None]]:
    found = [(str(each.code), each.table, each.count, each.block) for each in faults]
    assert len(set(found)) == len(found)
    return set(found)


def test_command__edited_rows__names_counts_and_places_each_and_writes_nothing(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    edit(source, "transactions", 3, with_values(value_string=str(10**38)))
    edit(source, "transactions", 4, with_values(gas_limit=2**63))
    edit(source, "transactions", 5, with_values(transaction_hash=b"0x" + b"ab" * 32))
    edit(source, "transactions", 6, with_values(nonce=None))
    edit(source, "logs", 7, without_last)
    edit(source, "logs", 8, with_values(block_hash=b"\x01" * 32))
    edit(source, "logs", 9, lambda rows: rows * 3)
    edit(source, "logs", 10, with_values(chain_id=1))
    edit(source, "transactions", 11, with_values(from_address=b"\x01" * 19))
    edit(source, "blocks", 12, with_values(parent_hash=b"\x01" * 32))
    edit(source, "transactions", 14, lambda rows: [*rows, rows[2] | {"input": b"other"}])
    edit(source, "transactions", 17, without_last)
    edit(source, "blocks", 19, without_last)
    edit(source, "blocks", 20, without_last)
    arguments = ["audit", "import-chain", "--format", "cryo", "--source", str(source)]
    arguments += ["--deployment", str(CRYO / "deployment.json")]
    out = tmp_path / "chain"

    result = CliRunner(mix_stderr=False).invoke(chainkit, [*arguments, "--out", str(out), "--json"])

    told = json.loads(result.stdout)
    assert (result.exit_code, told["written"], out.exists()) == (1, None, False)
    faults = [Fault(**each) for each in told["faults"]]
    assert kinds(faults) == {
        ("BROKEN_LINK", "blocks", 1, 12),
        ("CONFLICTING_ROW", "transactions", 1, 14),
        ("DUPLICATE_ROW", "logs", 2, 9),
        ("HALF_WRITTEN", "logs", 1, 7),
        ("HALF_WRITTEN", "transactions", 1, 17),
        ("MISSING_BLOCK", "blocks", 2, 19),
        ("MISSING_VALUE", "transactions", 1, 6),
        ("OUT_OF_RANGE", "transactions", 2, 3),
        ("WRONG_BLOCK", "logs", 1, 8),
        ("WRONG_CHAIN", "logs", 1, 10),
        ("WRONG_ENCODING", "transactions", 1, 5),
        ("WRONG_LENGTH", "transactions", 1, 11),
    }
    [conflict] = [each for each in faults if each.code == FaultCode.CONFLICTING_ROW]
    assert conflict.file == "network_31337__transactions__00000008_to_00000015.parquet"
    assert "block_number 14, transaction_index 2" in conflict.expected
    [broken] = [each for each in faults if each.code == FaultCode.BROKEN_LINK]
    assert broken.got == "0x" + "01" * 32
    [half] = [each for each in faults if (each.code, each.block) == (FaultCode.HALF_WRITTEN, 7)]
    assert half.got == "0 logs with another bloom"


def with_more_that_is_right(source: SourceTables) -> SourceTables:
    """As a format that counts transactions: where the count is null, it tells nothing."""
    number = sf.col("number")
    counts = sf.when(number == 12, 0).when(number == 14, 7)
    blocks = source.blocks.withColumn("transaction_count", counts.cast("long"))
    return replace(source, receipts_are_derived=False, blocks=blocks)


def test_import__rows_that_only_look_wrong_and_counts_that_are_right__are_taken(
    spark: SparkSession, source: Path, record: DeploymentRecord, tmp_path: Path
) -> None:
    # Outside of the range that is asked for.
    edit(source, "blocks", 1, without_last)
    edit(source, "transactions", 2, with_values(from_address=b"short"))
    # The first block's parent is not there to be compared.
    edit(source, "blocks", 3, with_values(parent_hash=b"\x01" * 32))
    largest = {"value_string": str(10**38 - 1), "gas_limit": 2**63 - 1, "nonce": 2**64 - 1}
    edit(source, "transactions", 4, with_values(**largest, input=b"0x1234", to_address=b"\0" * 20))
    edit(source, "transactions", 7, with_values(from_address=b"0x" + b"ab" * 9))
    # The same event twice is no row twice.
    edit(source, "logs", 9, lambda rows: [*rows, rows[0] | {"log_index": 1}])

    changed = ChangedCryo(with_more_that_is_right)
    imported = import_chain(
        spark, changed, source, record, tmp_path / "chain", 10, from_block=3, to_block=LAST
    )

    assert imported.faults == ()
    assert imported.manifest is not None and imported.manifest.source == "changed"


def test_command__other_chain_and_range_beyond_the_source__names_both(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    other = json.loads((CRYO / "deployment.json").read_text())
    other |= {"chain_id": 1, "genesis_hash": "0x" + "01" * 32}
    (tmp_path / "record.json").write_text(json.dumps(other))
    arguments = ["audit", "import-chain", "--format", "cryo", "--source", str(source)]
    arguments += ["--deployment", str(tmp_path / "record.json"), "--out", str(tmp_path / "chain")]

    result = CliRunner(mix_stderr=False).invoke(
        chainkit, [*arguments, "--from-block", "0", "--to-block", str(LAST + 3)]
    )

    assert result.exit_code == 1
    words = [line.split() for line in result.stdout.splitlines()]
    codes = {tuple(line[:3]) for line in words if line and line[0].isupper()}
    assert codes == {
        ("MISSING_BLOCK", "blocks", "3"),
        *(("MISSING_FILE", table, "1") for table in ("blocks", "transactions", "logs")),
        # Counted by the names of files, then by rows; block 0 counts twice.
        *(("WRONG_CHAIN", table, "3") for table in ("blocks", "transactions", "logs")),
        ("WRONG_CHAIN", "blocks", str(LAST + 2)),
        ("WRONG_CHAIN", "transactions", "24"),
        ("WRONG_CHAIN", "logs", "23"),
    }
    assert "nothing was written" in result.stdout
    assert not (tmp_path / "chain").exists()


@dataclass(frozen=True)
class ChangedCryo:
    """cryo's rows, changed as those of a format that tells more."""

    change: Callable[[SourceTables], SourceTables]
    name: str = "changed"

    def files(self, directory: Path) -> Sequence[SourceFile]:
        return Cryo().files(directory)

    def read(self, spark: SparkSession, directory: Path) -> SourceTables:
        return self.change(Cryo().read(spark, directory))


def at(block: int, value: Column, name: str, height: str = "block_number") -> Column:
    return sf.when(sf.col(height) == block, value.cast("long")).otherwise(sf.col(name))


def with_faults_of_other_formats(source: SourceTables) -> SourceTables:
    number, height, index = sf.col("number"), sf.col("block_number"), sf.col("transaction_index")
    removed = sf.expr(fault(FaultCode.REMOVED_LOG, "removed: false", "'true'"))
    other_hash = sf.when(height == 9, sf.lit(b"\x01" * 32)).otherwise(sf.col("transaction_hash"))
    return replace(
        source,
        receipts_are_derived=False,
        blocks=source.blocks.withColumn(
            "transaction_count", sf.when(number == 10, 2).when(number == 8, 1).cast("long")
        ),
        transactions=source.transactions.withColumn(
            "row_chain_id", sf.lit(None).cast("decimal(38,0)")
        )
        .withColumn(
            "chain_id",
            sf.when(height == 7, sf.lit(5).cast("decimal(38,0)")).otherwise(sf.col("chain_id")),
        )
        .withColumn("gas_limit", at(6, sf.lit(None), "gas_limit")),
        receipts=source.receipts.where((height != 14) | (index != 6))
        .withColumn("transaction_hash", other_hash)
        .withColumn(
            "cumulative_gas_used",
            sf.when(height == 11, sf.lit(1)).when(height == 8, sf.col("gas_used")).cast("long"),
        ),
        logs=source.logs.withColumn("fault", sf.when(height == 8, removed)).withColumn(
            "log_index",
            sf.when(height == 4, sf.col("log_index") + 1).otherwise(sf.col("log_index")),
        ),
    )


def test_import__faults_of_formats_that_tell_more__are_named(
    spark: SparkSession, source: Path, record: DeploymentRecord, tmp_path: Path
) -> None:
    imported = import_chain(
        spark, ChangedCryo(with_faults_of_other_formats), source, record, tmp_path / "chain", 10
    )

    assert kinds(imported.faults) == {
        ("HALF_WRITTEN", "logs", 1, 4),
        ("HALF_WRITTEN", "receipts", 2, 11),
        ("HALF_WRITTEN", "transactions", 1, 10),
        ("MISSING_VALUE", "transactions", 1, 6),
        ("REMOVED_LOG", "logs", 1, 8),
        ("WRONG_BLOCK", "receipts", 1, 9),
        ("WRONG_CHAIN", "transactions", 1, 7),
    }


HEX_DIGITS = b"0123456789abcdefABCDEF"

BYTES = st.binary(max_size=10) | st.binary(min_size=4, max_size=4)
TEXTS = (
    BYTES.map(lambda value: "0x" + value.hex())
    | BYTES.map(bytes.hex)
    | BYTES.map(lambda value: "0x" + value.hex().upper())
    | st.text(max_size=12)
    | st.sampled_from(["", "0x", "0X00000000", "0x0", "0x0000000g", "0x00000000\n", " 0x00"])
)
EDGES = st.sampled_from([-1, 0, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**38 - 1])
NUMBERS = EDGES | st.integers(-(10**20), 10**38 - 1)
NUMBER_TEXTS = (
    (NUMBERS | st.just(10**38) | st.integers(10**37, 10**45)).map(str)
    | st.text(max_size=6)
    | st.sampled_from(["", "007", "1e5", "1.0", "+1", " 1", "0x1", "1_0", "٣"])
)
ROWS = st.tuples(
    st.none() | BYTES | st.lists(st.sampled_from(HEX_DIGITS), min_size=8, max_size=8).map(bytes),
    st.none() | TEXTS,
    st.none() | NUMBERS.map(Decimal),
    st.none() | NUMBER_TEXTS,
)
SCHEMA = StructType(
    [
        StructField("row", LongType()),
        StructField("raw", BinaryType()),
        StructField("text", StringType()),
        StructField("number", DecimalType(38, 0)),
        StructField("digits", StringType()),
    ]
)


def converted_raw(value: bytes | None) -> tuple[object, str | None]:
    if value is None:
        return None, "MISSING_VALUE"
    if len(value) == 4:
        return value, None
    digits = value.removeprefix(b"0x")
    is_hex = len(value) in (8, 10) and all(each in HEX_DIGITS for each in digits)
    return None, "WRONG_ENCODING" if is_hex else "WRONG_LENGTH"


def converted_text(value: str | None, length: int | None) -> tuple[object, str | None]:
    if value is None:
        return None, None if length is None else "MISSING_VALUE"
    digits = value[2:]
    if value[:2] != "0x" or len(digits) % 2 or set(digits) - set("0123456789abcdef"):
        return None, "WRONG_ENCODING"
    if length is not None and len(digits) != 2 * length:
        return None, "WRONG_LENGTH"
    return bytes.fromhex(digits), None


def fits(value: Decimal | None, end: int) -> tuple[object, str | None]:
    if value is None:
        return None, "MISSING_VALUE"
    return (value, None) if 0 <= value < end else (None, "OUT_OF_RANGE")


def converted_digits(value: str | None) -> tuple[object, str | None]:
    if value is None:
        return None, "MISSING_VALUE"
    digits = value.removeprefix("-")
    if not digits or set(digits) - set("0123456789"):
        return None, "WRONG_ENCODING"
    if value.startswith("-"):
        return None, "OUT_OF_RANGE"
    return fits(Decimal(value), 10**38)


def test_cells__any_values__are_converted_exactly_or_named(spark: SparkSession) -> None:
    cells: dict[str, tuple[Cell, str, Callable[[Any], tuple[object, str | None]]]] = {
        "raw": (raw_bytes("raw", 4), "raw", converted_raw),
        "text": (hex_text("text", 4), "text", lambda value: converted_text(value, 4)),
        "any": (hex_text("text", None, False), "text", lambda value: converted_text(value, None)),
        "int64": (whole_number("number", pa.int64()), "number", lambda v: fits(v, 2**63)),
        "uint64": (whole_number("number", tables.UINT64), "number", lambda v: fits(v, 2**64)),
        "wei": (number_text("digits", tables.WEI), "digits", converted_digits),
    }
    columns = [
        part.alias(f"{name} {kind}")
        for name, (cell, _, _) in cells.items()
        for kind, part in (("value", sf.expr(cell.value)), ("fault", sf.expr(cell.fault)["code"]))
    ]

    # Each example is a job of Spark's: few of them, with many values each.
    @settings(max_examples=40 if IS_SOAK else 2, deadline=None, database=None)
    @given(st.lists(ROWS, min_size=150, max_size=200))
    def check(rows: list[tuple[Any, ...]]) -> None:
        frame = spark.createDataFrame([(index, *row) for index, row in enumerate(rows)], SCHEMA)
        for converted in frame.select("*", *columns).collect():
            for name, (_, source, expected) in cells.items():
                value = converted[f"{name} value"]
                got = bytes(value) if isinstance(value, bytearray) else value
                told = (got, converted[f"{name} fault"])
                original = converted[source]
                assert told == expected(
                    bytes(original) if isinstance(original, bytearray) else original
                ), (name, original)

    check()
