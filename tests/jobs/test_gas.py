from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit import tables
from chainkit_jobs.audit import read_inputs, run_audit
from chainkit_jobs.expected import EXPECTED
from chainkit_jobs.gas import GAS, gas_table, message_costs
from chainkit_jobs.outputs import not_compared
from support.audit_exports import base_posts, honest, receipt_row, write_scene

Row = dict[str, Any]


def message(number: int, **changes: Any) -> Row:
    """A row of EXPECTED, each in a transaction of its own."""
    row: Row = dict.fromkeys(EXPECTED.names)
    return (
        row
        | {
            "originator_id": 0,
            "sequence_id": Decimal(number),
            "contract": "GroupMessages",
            "payload_size": 300,
            "block_number": 10,
            "log_index": 0,
            "transaction_hash": number.to_bytes(32, "big"),
        }
        | changes
    )


def table(spark: SparkSession, messages: list[Row], gas: list[int], price: int = 3) -> list[Row]:
    receipt = receipt_row(base_posts()[0])
    receipts = [
        receipt
        | {"transaction_hash": row["transaction_hash"], "gas_used": used}
        | {"effective_gas_price": Decimal(price)}
        for row, used in zip(messages, gas, strict=True)
    ]
    costs = message_costs(
        spark.createDataFrame(messages, from_arrow_schema(EXPECTED)),
        spark.createDataFrame(receipts, from_arrow_schema(tables.RECEIPTS)),
    )
    rows: list[Row] = gas_table(costs).orderBy("contract", "size_from").toArrow().to_pylist()
    return rows


def test_gas_table__sizes_at_the_edges__each_in_its_power_of_two(spark: SparkSession) -> None:
    sizes = [0, 1, 2, 3, 4, 255, 256, 511, 512]

    rows = table(
        spark,
        [message(n, payload_size=size) for n, size in enumerate(sizes, start=1)],
        [1000] * len(sizes),
    )

    assert [(row["size_from"], row["size_below"], row["messages"]) for row in rows] == [
        (0, 1, 1),
        (1, 2, 1),
        (2, 4, 2),
        (4, 8, 1),
        (128, 256, 1),
        (256, 512, 2),
        (512, 1024, 1),
    ]


def test_gas_table__odd_even_and_no_bytes__sums_median_and_ratio_are_exact(
    spark: SparkSession,
) -> None:
    messages = [message(n) for n in (1, 2, 3, 4)]
    messages += [message(n, contract="IdentityUpdates", payload_size=0) for n in (5, 6, 7)]

    group, update = table(spark, messages, [10, 40, 20, 31, 9, 7, 8], price=10**28)

    assert list(group) == GAS.names
    assert (group["messages"], group["bytes"], group["gas"]) == (4, 1200, 101)
    assert group["gas_median"] == 20
    assert group["gas_per_byte"] == Decimal("0.084167")
    assert group["wei"] == Decimal(101) * 10**28
    assert (update["gas_median"], update["gas_per_byte"]) == (8, None)


def test_gas_table__two_messages_in_one_transaction__left_out(spark: SparkSession) -> None:
    together = [message(1), message(2, transaction_hash=message(1)["transaction_hash"])]

    costs = message_costs(
        spark.createDataFrame([*together, message(3)], from_arrow_schema(EXPECTED)),
        spark.createDataFrame(
            [
                receipt_row(base_posts()[0])
                | {"transaction_hash": n.to_bytes(32, "big"), "effective_gas_price": Decimal(1)}
                for n in (1, 3)
            ],
            from_arrow_schema(tables.RECEIPTS),
        ),
    )

    assert [row["transaction_hash"] for row in costs.collect()] == [(3).to_bytes(32, "big")]


def test_gas_table__wei_beyond_38_digits__ends_the_audit(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"(?i)decimal|overflow"):
        table(spark, [message(1)], [10**18], price=10**37)


def test_audit__two_messages_share_a_transaction__the_report_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    posts = base_posts()
    posts[1] = replace(posts[1], transaction=posts[0].transaction_hash, block=posts[0].block)
    chain, nodes = write_scene(tmp_path, {100: honest, 200: honest}, posts)

    audit = run_audit(spark, read_inputs(chain, nodes))

    assert audit.findings == []
    assert sum(row["messages"] for row in audit.gas) == 6
    assert not_compared(audit) == [
        "gas table: 2 messages that shared a transaction with another message"
    ]
