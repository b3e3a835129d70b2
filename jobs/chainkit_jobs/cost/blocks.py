"""How much of the blocks' gas limit our contracts took: per block, hour and day."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit_jobs.cost.transactions import DAY, HOUR


def used_blocks(costs: DataFrame, blocks: DataFrame) -> DataFrame:
    """Return the blocks in which a contract of ours was used, with its share of the limit.

    Columns: number, timestamp (seconds), transactions, messages, gas, gas_limit, gas_used (by
    everybody).
    """
    used = costs.groupBy(sf.col("block_number").alias("number")).agg(
        sf.count("*").alias("transactions"),
        sf.sum("messages").alias("messages"),
        sf.sum("gas").alias("gas"),
    )
    return used.join(blocks, on="number", how="inner").select(
        "number", "timestamp", "transactions", "messages", "gas", "gas_limit", "gas_used"
    )


def time_limits(blocks: DataFrame, key: str) -> DataFrame:
    """Return per ``hour`` or ``day`` the blocks, their gas limits and the gas that all used.

    Columns: the key (seconds at which it begins), blocks, gas_limit and chain_gas (decimals: a
    rollup's nominal limits add up beyond an int64).
    """
    second = sf.col("timestamp")
    begin = second - second % {"hour": HOUR, "day": DAY}[key]
    return blocks.groupBy(begin.alias(key)).agg(
        sf.count("*").alias("blocks"),
        _exact_sum("gas_limit").alias("gas_limit"),
        _exact_sum("gas_used").alias("chain_gas"),
    )


def _exact_sum(name: str) -> Column:
    return sf.sum(sf.col(name).cast("decimal(38,0)")).cast("decimal(38,0)")
