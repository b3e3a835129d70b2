"""The audit's report tells the same costs as `chainkit audit cost` writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from chainkit_jobs.cost.digest import LARGEST, CostDigest, digest, read_digest
from chainkit_jobs.cost.job import cost_tables, read_chain
from chainkit_jobs.cost.outputs import write_costs
from support.chains.cost_chain import (
    CONTRACTS,
    START,
    Paid,
    Row,
    Sent,
    block,
    post,
    write_cost_chain,
)

pytestmark = pytest.mark.timeout(900)

STRANGER = b"\x99" * 20


def blocks_of(seconds: int) -> list[Row]:
    return [block(n, START + n * seconds) for n in range(1, 31)]


def traffic() -> list[Paid]:
    """More payers and functions than a report shows, shared and failed transactions."""
    registry = CONTRACTS["NodeRegistry"]
    payers = [
        post(n, n, bytes(n), payer=bytes([n]) * 20, gas=50_000 + 10 * (n % 7)) for n in range(1, 21)
    ]
    unknown = [Paid(100 + n, n, registry, bytes([n]) * 4, gas=30_000) for n in range(1, 21)]
    shared = (Sent("GroupMessages", b"a" * 70, 101), Sent("IdentityUpdates", b"b" * 9, 102))
    return [
        *payers,
        *unknown,
        Paid(200, 9, STRANGER, b"\x01" * 90, gas=200_001, sent=shared),
        replace(post(201, 9, b"fails"), status=0, sent=()),
    ]


@pytest.fixture(scope="module")
def told(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[CostDigest, Path, dict[str, Any]]:
    """A digest, and the folder and the summary of `audit cost`, of one chain export."""
    root = tmp_path_factory.mktemp("cost")
    write_cost_chain(root / "chain", blocks_of(1_801), traffic())
    with cost_tables(spark, read_chain(root / "chain")) as costs:
        return digest(costs), root / "out", write_costs(root / "out", costs)


def rows(folder: Path, table: str) -> list[Row]:
    found: list[Row] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return found


@pytest.mark.parametrize("table", ["contracts", "sizes", "samples"])
def test_digest__short_table__holds_all_of_its_rows(
    told: tuple[CostDigest, Path, dict[str, Any]], table: str
) -> None:
    assert list(getattr(told[0], table)) == rows(told[1], table) != []


@pytest.mark.parametrize("table", ["functions", "payers"])
def test_digest__long_table__holds_the_rows_with_most_gas_and_counts_the_others(
    told: tuple[CostDigest, Path, dict[str, Any]], table: str
) -> None:
    whole = rows(told[1], table)
    # A stable sort: of rows with the same gas, the first by its keys.
    largest = sorted(whole, key=lambda row: -row["gas"])[:LARGEST]

    assert list(getattr(told[0], table)) == largest
    assert told[0].counts[table] == len(whole) > LARGEST


def test_digest__half_a_day__is_told_by_the_hour_and_as_in_the_summary(
    told: tuple[CostDigest, Path, dict[str, Any]],
) -> None:
    found, folder, summary = told

    assert (found.time, list(found.times)) == ("hour", rows(folder, "hours"))
    assert found.total == summary["total"]
    assert list(found.variants) == summary["variants"]
    assert found.headroom == summary["headroom"]
    assert found.busiest == {what: summary["busiest"][what] for what in ("block", "hour")}


def test_read_digest__a_month_without_traffic__is_of_days_and_zeros(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_cost_chain(tmp_path, blocks_of(86_400), [])

    found = read_digest(spark, read_chain(tmp_path))

    assert isinstance(found, CostDigest)
    assert (found.time, found.times, found.functions) == ("day", (), ())
    assert (found.total["gas"], found.counts["payers"]) == (0, 0)
    assert found.busiest == {"block": None, "day": None}


def test_read_digest__a_receipt_is_missing__says_so_instead_of_ending_the_audit(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_cost_chain(tmp_path, blocks_of(1), [post(1, 1, b"x")], change={"receipts": []})

    found = read_digest(spark, read_chain(tmp_path))

    assert isinstance(found, str)
    assert "expected the receipt of every transaction that it holds, got 1 without" in found
