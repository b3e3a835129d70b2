"""One wide row of costs per transaction that called, created, or made one of our contracts emit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit.contracts.interface import SELECTOR_LENGTH
from chainkit_jobs.cost.functions import CREATION, INDIRECT, NO_SELECTOR
from chainkit_jobs.cost.messages import name_of
from chainkit_jobs.cost.variants import VARIANT_COLUMNS

HOUR: Final = 3_600
DAY: Final = 86_400

COSTS: Final = (
    "block_number",
    "transaction_hash",
    "contract",
    "function",
    "payer",
    "hour",
    "day",
    "messages",
    "payload_bytes",
    "size_from",
    "size_below",
    "calldata_bytes",
    "gas",
    "price",
    "wei",
    "l1_gas",
    "l1_wei",
    "paid_wei",
    "is_failed",
    "has_logs",
    *VARIANT_COLUMNS,
)
"""Columns of transaction_costs. ``size_from`` and ``size_below`` (bytes) are null unless the
transaction carried exactly one message: its gas is that message's."""


def transaction_costs(
    carried: DataFrame,
    blocks: DataFrame,
    transactions: DataFrame,
    receipts: DataFrame,
    contracts: Mapping[str, bytes],
    functions: Mapping[str, Mapping[bytes, str]],
) -> DataFrame:
    """Return the cost of each transaction (columns of COSTS).

    ``carried`` is the result of messages.carried_messages, the others have the columns of
    exports.tables; ``contracts`` are the addresses by name, ``functions`` is the result of
    functions.named_functions. ``hour`` and ``day`` are their first seconds since 1970 (UTC), null
    where the export lacks the block; ``calldata_bytes`` is null where the export lacks the
    transaction.
    """
    own = _own_receipts(receipts, carried, contracts)
    calls = transactions.select(
        "transaction_hash",
        sf.substring("input", 1, SELECTOR_LENGTH).alias("selector"),
        sf.length("input").cast("long").alias("calldata_bytes"),
    )
    times = blocks.select(
        sf.col("number").alias("block_number"), sf.col("hash").alias("block_hash"), "timestamp"
    )
    rows = (
        own.join(calls, on="transaction_hash", how="left")
        .join(times, on=["block_number", "block_hash"], how="left")
        .join(sf.broadcast(_functions(own, functions)), on=["called", "selector"], how="left")
    )
    second = sf.col("timestamp")
    return (
        rows.withColumn("function", _function())
        .withColumn("hour", second - second % HOUR)
        .withColumn("day", second - second % DAY)
        .select(*COSTS)
    )


def _own_receipts(
    receipts: DataFrame, carried: DataFrame, contracts: Mapping[str, bytes]
) -> DataFrame:
    zero = sf.lit(0).cast("long")
    is_creation = sf.col("to_address").isNull()
    rows = (
        receipts.join(carried, on="transaction_hash", how="left")
        .withColumn("is_creation", is_creation)
        .withColumn("called", name_of("to_address", contracts))
        .withColumn("created", sf.when(is_creation, name_of("contract_address", contracts)))
        .withColumn("contract", sf.coalesce("called", "created", "message_contract", "emitter"))
        .filter(sf.col("contract").isNotNull())
    )
    counts = ("messages", "payload_bytes", *VARIANT_COLUMNS)
    return (
        rows.withColumns({name: sf.coalesce(name, zero) for name in counts})
        .withColumns(_size_class())
        .withColumns(_amounts())
        .withColumnRenamed("from_address", "payer")
        .withColumn("is_failed", sf.col("status") == 0)
        .withColumn("has_logs", sf.col("emitter").isNotNull())
    )


def _size_class() -> dict[str, Column]:
    # A size has as many binary digits as its power of two; 0 is a class of its own.
    size = sf.col("payload_bytes")
    power = sf.expr("shiftleft(1L, length(bin(payload_bytes)) - 1)")
    is_alone = sf.col("messages") == 1
    zero, one = sf.lit(0).cast("long"), sf.lit(1).cast("long")
    return {
        "size_from": sf.when(is_alone, sf.when(size == 0, zero).otherwise(power)),
        "size_below": sf.when(is_alone, sf.when(size == 0, one).otherwise(power * 2)),
    }


def _amounts() -> dict[str, Column]:
    """Name what was paid, in gas and wei.

    An OP-stack rollup asks ``l1_fee`` on top; on Arbitrum, ``gas_used_for_l1`` is a part of the
    gas.
    """
    price, fee = sf.col("effective_gas_price"), sf.col("l1_fee")
    wei = _wei("gas_used")
    nothing = sf.lit(0).cast("decimal(38,0)")
    part = sf.coalesce(_wei("gas_used_for_l1"), nothing)
    has_none = fee.isNull() & sf.col("gas_used_for_l1").isNull()
    l1_wei = (sf.coalesce(fee, nothing) + part).cast("decimal(38,0)")
    return {
        "gas": sf.col("gas_used"),
        "price": price,
        "wei": wei,
        "l1_gas": sf.col("gas_used_for_l1"),
        "l1_wei": sf.when(~has_none, l1_wei),
        "paid_wei": (wei + sf.coalesce(fee, nothing)).cast("decimal(38,0)"),
    }


def _wei(gas: str) -> Column:
    product = sf.col(gas).cast("decimal(20,0)") * sf.col("effective_gas_price")
    return product.cast("decimal(38,0)")


def _functions(frame: DataFrame, functions: Mapping[str, Mapping[bytes, str]]) -> DataFrame:
    rows = [
        (contract, bytearray(selector), signature)
        for contract, named in functions.items()
        for selector, signature in named.items()
    ]
    schema = "called string, selector binary, signature string"
    return frame.sparkSession.createDataFrame(rows, schema)


def _function() -> Column:
    hexadecimal = sf.concat(sf.lit("0x"), sf.lower(sf.hex("selector")))
    return (
        sf.when(sf.col("is_creation"), CREATION)
        .when(sf.col("called").isNull(), INDIRECT)
        .when(sf.col("calldata_bytes") < SELECTOR_LENGTH, NO_SELECTOR)
        .otherwise(sf.coalesce("signature", hexadecimal))
    )
