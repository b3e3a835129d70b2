"""`chainkit audit cost`, held against the same figures computed in plain Python."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from chainkit.errors import MalformedLog, StoreError
from chainkit_jobs.cli.cost import cost_command
from chainkit_jobs.cost.job import cost_tables, read_chain
from chainkit_jobs.cost.outputs import write_costs
from chainkit_jobs.cost.schema import CUTS, TABLES
from support.audit.cost_oracle import FIRST, LAST, contract_of, expected_cut, expected_variants
from support.chains.cost_chain import (
    CONTRACTS,
    PAYER,
    START,
    STRANGER,
    Paid,
    Row,
    Sent,
    block,
    call_data,
    post,
    write_cost_chain,
)
from support.seeds import IS_SOAK

# Each test runs a dozen stages or more, which a machine with other work takes minutes for.
pytestmark = pytest.mark.timeout(900)

OTHER_PAYER = b"\x55" * 20


def blocks_of(seconds: int = 1_801) -> list[Row]:
    return [
        block(n, START + n * seconds, gas_limit=30_000_000 + n, gas_used=9_000_000 + n)
        for n in range(FIRST, LAST + 1)
    ]


def traffic() -> list[Paid]:
    """Every kind of transaction, and enough messages of one size for an outlier."""
    generator = random.Random(5)
    alike = [
        post(n, 1 + n % LAST, generator.randbytes(300), gas=60_000 + n % 5, price=10**30 + n)
        for n in range(1, 31)
    ]
    sizes = [0, 1, 2, 31, 32, 255, 256, 24_576]
    updates = [
        post(40 + n, 7, generator.randbytes(size), contract="IdentityUpdates", l1_gas=7 * n)
        for n, size in enumerate(sizes)
    ]
    group, update, registry = CONTRACTS.values()
    shared = (Sent("GroupMessages", b"a" * 70, 101), Sent("IdentityUpdates", b"b" * 9, 102))
    return [
        *alike,
        *updates,
        post(60, 9, b"x" * 300, gas=990_000, payer=OTHER_PAYER, l1_fee=10**33 + 1),
        Paid(61, 9, STRANGER, b"\x01" * 90, gas=200_001, sent=shared, payer=OTHER_PAYER),
        Paid(62, 9, STRANGER, b"\x02" * 4, sent=(Sent("GroupMessages", b"relayed", 103),)),
        Paid(63, 3, None, b"code", gas=2**54 + 1, created=group, emits=("GroupMessages",)),
        Paid(64, 3, registry, b"\xde\xad\xbe\xef", status=0, gas=30_000, l1_fee=5),
        Paid(65, 4, registry, b"\xde\xad", gas=25_000),
        Paid(66, 4, update, call_data("pause()"), gas=31_000, emits=("IdentityUpdates",)),
        Paid(67, 4, STRANGER, b"", emits=("NodeRegistry", "GroupMessages")),
        Paid(68, 4, STRANGER, b"nothing of ours"),
        Paid(69, 4, None, b"another contract", created=STRANGER),
    ]


def run(spark: SparkSession, chain: Path, out: Path) -> Row:
    with cost_tables(spark, read_chain(chain)) as costs:
        return write_costs(out, costs)


def rows(out: Path, name: str) -> list[Row]:
    found: list[Row] = pq.read_table(out / f"{name}.parquet").to_pylist()
    return found


def check_cut(out: Path, name: str, paid: Sequence[Paid], blocks: Sequence[Row]) -> None:
    expected = expected_cut(name, paid, blocks)
    got = rows(out, name)
    assert [
        {key: row[key] for key in wanted} for row, wanted in zip(got, expected, strict=True)
    ] == (expected)


@pytest.fixture(scope="module")
def scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Row]:
    root = tmp_path_factory.mktemp("cost")
    write_cost_chain(root / "chain", blocks_of(), traffic())
    options = ["--chain", str(root / "chain"), "--out", str(root / "out"), "--json"]
    result = CliRunner(mix_stderr=False).invoke(cost_command, options)
    assert result.exit_code == 0, result.stderr
    return root, json.loads(result.stdout)


@pytest.mark.parametrize("name", CUTS)
def test_cut__every_kind_of_transaction__is_as_plain_python_says(
    scene: tuple[Path, Row], name: str
) -> None:
    check_cut(scene[0] / "out", name, traffic(), blocks_of())


def test_cut__ratios__are_their_rows_integers(scene: tuple[Path, Row]) -> None:
    for row in rows(scene[0] / "out", "functions"):
        exact = Fraction(int(row["wei"]), row["gas"])
        assert Fraction(-1, 2000) < Fraction(row["price"]) - exact <= Fraction(1, 2000)
    [whole] = rows(scene[0] / "out", "total")
    assert whole["gas"] > 2**54
    assert whole["l1_share"] is not None


def test_hours__share_of_the_limit__counts_every_block_of_the_hour(
    scene: tuple[Path, Row],
) -> None:
    for row in rows(scene[0] / "out", "hours"):
        inside = [b for b in blocks_of() if b["timestamp"] // 3600 * 3600 == row["hour"]]
        assert row["blocks"] == len(inside)
        assert row["gas_limit"] == sum(b["gas_limit"] for b in inside)
        assert row["chain_gas"] == sum(b["gas_used"] for b in inside)


def test_blocks__used_ones__have_their_own_gas_and_limit(scene: tuple[Path, Row]) -> None:
    ours = [paid for paid in traffic() if contract_of(paid) is not None]
    got = rows(scene[0] / "out", "blocks")
    assert [row["number"] for row in got] == sorted({paid.block for paid in ours})
    for row in got:
        assert row["gas"] == sum(paid.gas for paid in ours if paid.block == row["number"])
        assert row["gas_limit"] == 30_000_000 + row["number"]


def test_variants__the_same_messages__cost_what_the_formulas_say(scene: tuple[Path, Row]) -> None:
    got = {
        (row["variant"], row["rules"], row["size_from"]): (row["gas"], int(row["wei"]))
        for row in rows(scene[0] / "out", "variants")
    }
    assert got == expected_variants(traffic())
    ours = next(entry for entry in scene[1]["variants"] if entry["variant"] == "ours")
    carrying = [paid for paid in traffic() if paid.sent]
    assert ours["observed_gas"] == sum(paid.gas - (paid.l1_gas or 0) for paid in carrying)


def test_lists__shared_failed_and_outliers__name_the_transactions(scene: tuple[Path, Row]) -> None:
    paid = {each.number: each.hash for each in traffic()}
    out = scene[0] / "out"
    assert [row["transaction_hash"] for row in rows(out, "shared")] == [paid[61]]
    assert [row["transaction_hash"] for row in rows(out, "failed")] == [paid[64]]
    [outlier] = rows(out, "outliers")
    assert (outlier["transaction_hash"], outlier["gas"]) == (paid[60], 990_000)
    assert outlier["gas_median"] == 60_002
    assert (outlier["least_gas"], outlier["most_gas"]) == (60_002 - 3_600, 60_002 + 3_600)


def test_json_lines__beside_each_table__hold_the_same_rows(scene: tuple[Path, Row]) -> None:
    out = scene[0] / "out"
    for name, schema in TABLES.items():
        lines = [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]
        stored = rows(out, name)
        assert len(lines) == len(stored) == scene[1]["rows"][name]
        for line, row in zip(lines, stored, strict=True):
            assert not any(isinstance(value, float) for value in line.values())
            for key in schema.names:
                value = row[key]
                text = "0x" + value.hex() if isinstance(value, bytes) else value
                assert line[key] == (format(text, "f") if isinstance(text, Decimal) else text)


def test_busiest__most_gas__is_the_creations_block_hour_and_day(scene: tuple[Path, Row]) -> None:
    busiest = scene[1]["busiest"]
    second = blocks_of()[3 - FIRST]["timestamp"]
    assert busiest["block"]["number"] == 3
    assert busiest["hour"]["hour"] == second // 3600 * 3600
    assert busiest["day"]["day"] == second // 86400 * 86400


@contextmanager
def setting(spark: SparkSession, **values: str) -> Any:
    names = {name.replace("__", "."): value for name, value in values.items()}
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, str(value))


def test_write__another_partitioning__gives_the_same_bytes(
    scene: tuple[Path, Row], spark: SparkSession
) -> None:
    root = scene[0]
    with setting(
        spark,
        spark__sql__shuffle__partitions="5",
        spark__sql__adaptive__enabled="true",
        spark__sql__files__maxPartitionBytes="2000",
    ):
        run(spark, root / "chain", root / "again")

    names = sorted(path.name for path in (root / "out").iterdir())
    assert names == sorted(path.name for path in (root / "again").iterdir())
    for name in names:
        assert (root / "out" / name).read_bytes() == (root / "again" / name).read_bytes(), name


@st.composite
def some_traffic(draw: st.DrawFn) -> list[Paid]:
    amounts = st.integers(1, 2**40)
    prices = st.integers(0, 10**20)
    made = []
    for number in range(1, draw(st.integers(1, 25)) + 1):
        paid = post(
            number,
            draw(st.integers(FIRST, LAST)),
            draw(st.binary(max_size=80)),
            contract=draw(st.sampled_from(["GroupMessages", "IdentityUpdates"])),
            gas=draw(amounts),
            price=draw(prices),
            payer=draw(st.sampled_from([PAYER, OTHER_PAYER])),
            l1_fee=draw(st.none() | prices),
        )
        if draw(st.integers(0, 4)) == 0:
            paid = replace(paid, status=0, sent=())
        elif draw(st.integers(0, 4)) == 0:
            more = Sent("GroupMessages", draw(st.binary(max_size=9)), 1000 + number)
            paid = replace(paid, to=STRANGER, sent=(*paid.sent, more))
        made.append(paid)
    return made


@settings(
    max_examples=20 if IS_SOAK else 1,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(paid=some_traffic())
def test_cut__any_traffic__is_as_plain_python_says(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, paid: list[Paid]
) -> None:
    root = tmp_path_factory.mktemp("any")
    write_cost_chain(root / "chain", blocks_of(), paid, chunks=2)
    with cost_tables(spark, read_chain(root / "chain")) as costs:
        write_costs(root / "out", costs)
    for name in CUTS:
        check_cut(root / "out", name, paid, blocks_of())


# ------------------------------------------------------------------ what ends the job


@pytest.mark.parametrize(
    "paid",
    [
        [post(1, 1, b"x", gas=10**6, price=10**33)],
        [post(n, 1, b"x", gas=10**5, price=6 * 10**32) for n in (1, 2)],
        [post(1, 1, b"x", gas=10**5, price=9 * 10**32, l1_fee=10**37)],
    ],
    ids=["product", "sum", "fee"],
)
def test_cost__wei_beyond_38_digits__is_refused(
    spark: SparkSession, tmp_path: Path, paid: list[Paid]
) -> None:
    write_cost_chain(tmp_path / "chain", blocks_of(), paid)
    with pytest.raises(StoreError, match=r"below 10\*\*38"):
        run(spark, tmp_path / "chain", tmp_path / "out")
    assert not (tmp_path / "out").exists()


Change = Callable[[list[Paid]], Row]


def malformed_log(paid: list[Paid]) -> Row:
    [log] = paid[0].logs()
    return {"logs": [log | {"data": log["data"][:-1]}]}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda _: {"transactions": []}, "the row in transactions of every"),
        (lambda _: {"receipts": []}, "the receipt of every"),
        (lambda paid: {"receipts": [paid[0].receipt()] * 2}, "each transaction and receipt once"),
        (lambda _: {"blocks": blocks_of()[:-1] + blocks_of()[:1]}, "each block from 1 to 30 once"),
        (
            lambda _: {"blocks": [block | {"gas_limit": None} for block in blocks_of()]},
            "the gas limit of every block, got 30 without",
        ),
    ],
    ids=["no transaction", "no receipt", "two receipts", "a block twice", "no gas limit"],
)
def test_cost__an_export_that_lacks_or_repeats_rows__is_refused(
    spark: SparkSession, tmp_path: Path, change: Change, match: str
) -> None:
    paid = [post(1, 1, b"x")]
    write_cost_chain(tmp_path / "chain", blocks_of(), paid, change=change(paid))
    with pytest.raises(StoreError, match=match):
        run(spark, tmp_path / "chain", tmp_path / "out")


def test_cost__a_payload_log_that_does_not_decode__is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    paid = [post(1, 1, b"x")]
    write_cost_chain(tmp_path / "chain", blocks_of(), paid, change=malformed_log(paid))
    with pytest.raises(MalformedLog, match="payload logs that decode"):
        run(spark, tmp_path / "chain", tmp_path / "out")


def test_cost_command__a_chain_without_traffic__exits_0_with_zeros(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_cost_chain(tmp_path / "chain", blocks_of(), [])
    options = ["--chain", str(tmp_path / "chain"), "--out", str(tmp_path / "out")]

    result = CliRunner().invoke(cost_command, options)

    assert result.exit_code == 0, result.output
    assert "0 messages in 0 transactions, blocks 1 to 30" in result.output
    [whole] = rows(tmp_path / "out", "total")
    assert (whole["gas"], whole["wei"], whole["gas_p50"], whole["l1_wei"]) == (0, 0, None, None)


def test_cost_command__json__is_the_summary_with_text_for_wei(scene: tuple[Path, Row]) -> None:
    root, told = scene

    assert told == json.loads((root / "out" / "summary.json").read_text())
    wei = sum(paid.gas * paid.price for paid in traffic() if contract_of(paid) is not None)
    assert told["total"]["wei"] == str(wei)
