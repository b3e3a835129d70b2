"""What messages cost: gas by contract and payload size, in integers throughout."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from chainkit import tables

GAS: Final = pa.schema(
    [
        pa.field("contract", pa.string(), nullable=False),
        pa.field("size_from", pa.int64(), nullable=False),
        pa.field("size_below", pa.int64(), nullable=False),
        pa.field("messages", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("gas", pa.int64(), nullable=False),
        pa.field("gas_median", pa.int64(), nullable=False),
        ("gas_per_byte", pa.decimal128(38, 6)),
        pa.field("wei", tables.WEI, nullable=False),
    ]
)
"""One row per contract and payload size, from ``size_from`` up to but not with ``size_below``
bytes. ``gas`` is the whole transaction's; ``gas_median`` the lower median; ``gas_per_byte``
is gas / bytes with six digits, null where there are no bytes."""


def message_costs(expected: DataFrame, receipts: DataFrame) -> DataFrame:
    """Return what each message cost whose transaction carried it alone.

    ``expected`` has the columns of expected.EXPECTED, ``receipts`` those of
    chainkit.tables.RECEIPTS. A transaction's gas cannot be divided exactly among several
    messages: those are left out. Columns: contract, payload_size, block_number,
    transaction_hash, gas (int64) and wei (decimal).
    """
    alone = (
        expected.groupBy("transaction_hash")
        .agg(
            sf.count("*").alias("messages"),
            sf.min("contract").alias("contract"),
            sf.min("payload_size").alias("payload_size"),
            sf.min("block_number").alias("block_number"),
        )
        .filter(sf.col("messages") == 1)
    )
    price = receipts.select(
        "transaction_hash",
        sf.col("gas_used").alias("gas"),
        (sf.col("gas_used").cast("decimal(20,0)") * sf.col("effective_gas_price"))
        .cast("decimal(38,0)")
        .alias("wei"),
    )
    return alone.join(price, on="transaction_hash", how="inner").select(
        "contract", "payload_size", "block_number", "transaction_hash", "gas", "wei"
    )


def gas_table(costs: DataFrame) -> DataFrame:
    """Return the cost table (columns of GAS) of what message_costs returned.

    Sizes are grouped by powers of two: 256 holds 256 to 511 bytes, and 0 the empty payload.
    """
    # In binary, a size has as many digits as its power of two has; 0 is a class of its own.
    power = sf.expr("shiftleft(1L, length(bin(payload_size)) - 1)")
    is_empty = sf.col("payload_size") == 0
    group = Window.partitionBy("contract", "size_from")
    order = group.orderBy("gas", "transaction_hash")
    ranked = (
        costs.withColumn("size_from", sf.when(is_empty, 0).otherwise(power))
        .withColumn("size_below", sf.when(is_empty, 1).otherwise(power * 2))
        .withColumn("rank", sf.row_number().over(order))
        .withColumn("in_group", sf.count("*").over(group))
    )
    table = ranked.groupBy("contract", "size_from", "size_below").agg(
        sf.count("*").alias("messages"),
        sf.sum("payload_size").alias("bytes"),
        sf.sum("gas").alias("gas"),
        sf.max(sf.when(sf.col("rank") == sf.expr("(in_group + 1) div 2"), sf.col("gas"))).alias(
            "gas_median"
        ),
        sf.sum("wei").cast("decimal(38,0)").alias("wei"),
    )
    ratio = sf.col("gas").cast("decimal(28,0)") / sf.col("bytes").cast("decimal(20,0)")
    return table.withColumn(
        "gas_per_byte", sf.when(sf.col("bytes") > 0, ratio.cast("decimal(38,6)"))
    ).select(*GAS.names)
