"""The names and columns of cryo's files are checked before Spark reads a row."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.errors import StoreError
from chainkit_jobs.adapters.adapter import SourceFile
from chainkit_jobs.adapters.cryo import Cryo
from chainkit_jobs.adapters.cryo_files import COMMAND
from support.audit.imports import FIXTURES

FIXTURE = FIXTURES / "cryo"
NO_SPARK: Any = None
"""A folder is refused before Spark is asked for anything."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE / "binary", tmp_path / "source"))


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def test_files__of_cryo__tell_table_range_and_chain() -> None:
    found = Cryo().files(FIXTURE / "binary")

    assert len(found) == 9
    assert found[0] == SourceFile(
        "network_31337__blocks__00000000_to_00000007.parquet", "blocks", 0, 7, None, 31337
    )
    assert {file.table for file in found} == {"blocks", "logs", "transactions"}
    assert [(file.first_block, file.last_block) for file in found[-3:]] == [
        (0, 7),
        (8, 15),
        (16, 22),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ethereum__blocks__20000000_to_20000999.parquet", (20_000_000, 20_000_999, 1)),
        ("base__blocks__00000000_to_00000999.parquet", (0, 999, None)),
        ("network_7__blocks__mine__00000001_to_00000002.parquet", (1, 2, 7)),
        ("sub/network_7__blocks__123456789_to_123456799.parquet", (123456789, 123456799, 7)),
    ],
)
def test_files__other_names_of_cryo__are_read(
    source: Path, name: str, expected: tuple[int, int, int | None]
) -> None:
    (source / "sub").mkdir()
    first = next(source.glob("*blocks*"))
    shutil.copy(first, source / name)

    [found] = [file for file in Cryo().files(source) if file.name == name]

    assert (found.first_block, found.last_block, found.chain_id) == expected


def test_files__other_dataset__is_passed_over(source: Path) -> None:
    before = Cryo().files(source)
    (source / "network_31337__traces__00000000_to_00000007.parquet").touch()

    assert Cryo().files(source) == before


def test_files__name_that_cryo_never_gives__is_refused(source: Path) -> None:
    (source / "part-0000.parquet").touch()

    with pytest.raises(StoreError, match=r"as cryo names its files, got part-0000\.parquet"):
        Cryo().files(source)


@pytest.mark.parametrize("table", ["blocks", "logs", "transactions"])
def test_files__none_of_a_table__are_refused(source: Path, table: str) -> None:
    for path in source.glob(f"*__{table}__*"):
        path.unlink()

    with pytest.raises(StoreError, match=f"Parquet files of cryo's {table} .*, got none"):
        Cryo().files(source)


def test_read__default_columns__names_the_command_that_gives_the_rest() -> None:
    with pytest.raises(StoreError, match="parent_hash, state_root") as caught:
        Cryo().read(NO_SPARK, FIXTURE / "default")

    assert COMMAND in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda table: table.set_column(
                table.schema.get_field_index("gas_used"),
                "gas_used",
                table["gas_used"].cast("double"),
            ),
            "gas_used of type uint64, got double",
        ),
        (
            lambda table: table.set_column(
                0, "block_hash", pa.array(["0x"] * len(table), pa.large_string())
            ),
            r"all bytes raw, or all of them text \(--hex\), got both",
        ),
        (lambda table: table.drop_columns(["logs_bloom"]), "none of the name logs_bloom"),
    ],
    ids=["double", "mixed", "missing"],
)
def test_read__other_columns__are_refused_with_the_file(
    source: Path, change: Callable[[pa.Table], pa.Table], message: str
) -> None:
    path = source / "network_31337__blocks__00000000_to_00000007.parquet"
    rewrite(path, change)

    with pytest.raises(StoreError, match=message) as caught:
        Cryo().read(NO_SPARK, source)

    assert path.name in str(caught.value)


def test_read__one_file_with_text_among_binary__is_refused(source: Path) -> None:
    for path in source.glob("*blocks__00000016*"):
        path.unlink()
    hex_file = next((FIXTURE / "hex").glob("*blocks*"))
    shutil.copy(hex_file, source / "network_31337__blocks__00000016_to_00000022.parquet")

    with pytest.raises(StoreError, match="block_hash of type binary, got string"):
        Cryo().read(NO_SPARK, source)


def test_read__no_parquet__is_refused_with_the_file(source: Path) -> None:
    path = source / "network_31337__blocks__00000000_to_00000007.parquet"
    path.write_bytes(b"PAR1")

    with pytest.raises(StoreError, match=r"00000000_to_00000007\.parquet: expected Parquet"):
        Cryo().read(NO_SPARK, source)
