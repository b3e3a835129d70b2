"""From sorted batches to blocks, and from blocks to few rows."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.proof.block import check_block
from chainkit_jobs.proof.collector import Collector
from chainkit_jobs.proof.job import check_batches
from chainkit_jobs.proof.result import (
    MOST_PROBLEMS,
    Counts,
    Gap,
    GapCode,
    Problem,
    ProblemCode,
    Unproved,
)
from chainkit_jobs.proof.stream import DEMAND, blocks_of
from chainkit_jobs.proof.tally import TALLIES, Tally, sum_of
from support.audit.chain_proofs import claims_of
from support.chains.proved_chain import ProvedChain, every_kind, number_column, proved_chain

UNITED = pa.schema(
    [
        ("block_number", pa.int64()),
        ("kind", pa.int32()),
        ("demanded", pa.binary()),
        *((table, pa.struct(list(schema))) for table, schema in CHAIN_TABLES.items()),
    ]
)


def united(chain: ProvedChain) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"block_number": number, "kind": DEMAND, "demanded": chain.hash_of(number)}
        for number in range(chain.first_block, chain.last_block + 1)
    ]
    for kind, table in enumerate(CHAIN_TABLES, start=1):
        for row in chain.rows[table]:
            rows.append({"block_number": row[number_column(table)], "kind": kind, table: row})
    return sorted(rows, key=lambda row: (row["block_number"], row["kind"]))


def batches_of(rows: Sequence[dict[str, Any]], size: int) -> list[pa.RecordBatch]:
    return [
        pa.RecordBatch.from_pylist(list(rows[start : start + size]), schema=UNITED)
        for start in range(0, len(rows), size)
    ]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_group__batches_of_any_size__give_the_same_whole_blocks(size: int) -> None:
    chain = proved_chain(every_kind(2), 1, 4)

    blocks = list(blocks_of(batches_of(united(chain), size)))

    assert [block.number for block in blocks] == [1, 2, 3, 4]
    assert [block.demanded for block in blocks] == [(chain.hash_of(n),) for n in range(1, 5)]
    for block in blocks:
        assert block.number is not None
        assert dict(block.tables) == chain.block(block.number)


def test_group__integers__are_ints() -> None:
    [block] = blocks_of(batches_of(united(proved_chain(every_kind(1), 1, 1)), 10))

    assert {type(row["value"]) for row in block.transactions} == {int}
    assert {type(row["base_fee_per_gas"]) for row in block.blocks} == {int}


def test_group__batches_are_not_sorted__is_refused() -> None:
    rows = united(proved_chain([], 1, 3))

    with pytest.raises(RuntimeError, match="block 1 after block 3: the rows are not sorted"):
        list(blocks_of(batches_of([*rows, rows[0]], 10)))


def test_group__nothing__is_no_block() -> None:
    assert list(blocks_of([])) == []


def test_check_batches__no_rows__is_an_empty_tally() -> None:
    [batch] = check_batches([], claims_of(proved_chain([])))

    assert sum_of(batch.to_pylist()) == Tally()


@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_add_up__any_number_of_tasks__is_the_same(tasks: int) -> None:
    chain = proved_chain([*every_kind(2), *every_kind(5)], 1, 9)
    for row in chain.rows["receipts"]:
        row["gas_used"] += 1
    chain.rows["blocks"][3]["mix_hash"] = None
    whole, rows = Tally(), []
    parts = [Tally() for _ in range(tasks)]
    for block in blocks_of(batches_of(united(chain), 100)):
        held = Counts(*(len(each) for _, each in block.tables))
        for tally in (whole, parts[hash(block.number) % tasks]):
            tally.add_block(check_block(block, claims_of(chain)), held)
    for part in reversed(parts):
        rows += pa.RecordBatch.from_pylist(list(part.rows()), schema=TALLIES).to_pylist()

    total = sum_of(rows)

    assert total == whole
    assert total.highest_break == 4 and total.problem_counts == {ProblemCode.GAS_USED: 22}
    assert Unproved(Gap(GapCode.COLUMN, "receipts", "l1_fee", ""), 2, 3, 6) in total.unproved


def test_add_up__more_problems_than_are_told__the_lowest_are_kept_and_all_counted() -> None:
    def found(number: int) -> Collector:
        collector = Collector(number)
        for position in range(MOST_PROBLEMS // 2):
            place = ("logs", position, None)
            collector.problem(ProblemCode.BLOCK_HASH, *place, "one", "another")
        return collector

    tallies = [Tally(), Tally()]
    for number in range(6):
        tallies[number % 2].add_block(found(number), Counts())

    total = sum_of(row for tally in reversed(tallies) for row in tally.rows())

    assert [problem.block_number for problem in total.problems] == sorted(
        [0, 1] * (MOST_PROBLEMS // 2)
    )
    assert total.problem_counts[ProblemCode.BLOCK_HASH] == 3 * MOST_PROBLEMS
    assert max(len(tally.problems) for tally in tallies) == MOST_PROBLEMS


def test_order__problems_of_a_block__is_by_table_then_place() -> None:
    def problem(table: str, position: int | None) -> Problem:
        return Problem(ProblemCode.BLOCK_HASH, 1, table, position, None, "", "")

    ordered = [
        problem("blocks", None),
        problem("transactions", 0),
        problem("receipts", None),
        problem("receipts", 9),
        problem("logs", 0),
        problem("logs", 10),
    ]

    assert sorted(reversed(ordered), key=lambda each: each.sort_key) == ordered
