"""The receipts root that an import makes of a block's rows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row

from chainkit.ethereum.transaction import OPTIMISM_DEPOSIT
from chainkit_jobs.adapters.receipts_roots import _LOG, _RECEIPT, _root_of
from support.audit.etl_fixtures import expected_rows

ROOTS = {row["number"]: row["receipts_root"] for row in expected_rows("blocks")}


def rows(table: str, columns: tuple[str, ...], block: int) -> list[Row]:
    """Rows as Spark gives them to its workers."""

    def spark_value(value: Any) -> Any:
        if isinstance(value, list):
            return [bytearray.fromhex(each[2:]) for each in value]
        return bytearray.fromhex(value[2:]) if isinstance(value, str) else value

    found = [row for row in expected_rows(table) if row["block_number"] == block]
    # In no order: a list is collected from many tasks.
    return [Row(**{name: spark_value(row[name]) for name in columns}) for row in reversed(found)]


def receipts(block: int, **values: Any) -> list[Row]:
    return [Row(**row.asDict() | values) for row in rows("receipts", _RECEIPT, block)]


def made(receipts: list[Row], logs: list[Row]) -> str | None:
    root = _root_of(receipts or None, logs or None)
    return None if root is None else "0x" + root.hex()


@pytest.mark.parametrize("block", ROOTS)
def test_root__all_rows_of_a_block__is_the_headers(block: int) -> None:
    assert made(receipts(block), rows("logs", _LOG, block)) == ROOTS[block]


def test_root__cumulative_gas_is_not_told__is_counted() -> None:
    block = max(ROOTS, key=lambda number: len(receipts(number)))

    without = receipts(block, cumulative_gas_used=None)

    assert len(without) > 1
    assert made(without, rows("logs", _LOG, block)) == ROOTS[block]


def test_root__receipt_or_log_is_missing_or_other__is_another() -> None:
    block = max(ROOTS, key=lambda number: len(receipts(number)))
    all_receipts, all_logs = receipts(block), rows("logs", _LOG, block)

    assert made(all_receipts[1:], all_logs) is None
    assert made(all_receipts, all_logs[1:]) != ROOTS[block]
    assert made(receipts(block, status=0), all_logs) != ROOTS[block]
    assert made([], []) != ROOTS[block]


@pytest.mark.parametrize(
    "values",
    [{"type": 0x50}, {"type": OPTIMISM_DEPOSIT, "deposit_receipt_version": 1}, {"status": 2}],
)
def test_root__receipt_cannot_be_encoded__tells_none(values: dict[str, int]) -> None:
    block = max(ROOTS, key=lambda number: len(receipts(number)))

    assert made(receipts(block, **values), rows("logs", _LOG, block)) is None


def test_root__deposit_as_spark_reads_it__is_made() -> None:
    block = max(ROOTS, key=lambda number: len(receipts(number)))
    deposit = {"type": OPTIMISM_DEPOSIT, "deposit_receipt_version": 1, "deposit_nonce": Decimal(7)}

    assert made(receipts(block, **deposit), rows("logs", _LOG, block)) is not None
