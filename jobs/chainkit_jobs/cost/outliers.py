"""Messages that cost far more or less gas than others of their size."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from chainkit_jobs.cost.ranks import nearest_ranks

FACTOR: Final = 6
"""How many deviations from the median make an outlier."""

LEAST_PERCENT: Final = 1
"""A deviation is never taken as less than this part of the median: where all cost the same, a
zero byte more or less must not make an outlier."""

LEAST_MESSAGES: Final = 10
"""A class with fewer messages has no outliers: there is too little to hold one against."""

OUTLIERS: Final = (
    "block_number",
    "transaction_hash",
    "contract",
    "function",
    "payer",
    "size_from",
    "payload_bytes",
    "gas",
    "gas_median",
    "gas_deviation",
    "least_gas",
    "most_gas",
)

_CLASS: Final = ("contract", "size_from")


def outliers(costs: DataFrame) -> DataFrame:
    """Return the messages whose gas is an outlier of their contract and size class.

    ``costs`` has the columns of transactions.COSTS. With the median m of a class and the median d
    of |gas - m| (both by nearest rank), those with |gas - m| > FACTOR · max(d, m·1 %, rounded down)
    are returned, among the messages that were alone in their transaction.
    """
    alone = costs.filter(sf.col("messages") == 1)
    medians = _medians(alone, "gas", "gas_median")
    near = alone.join(sf.broadcast(medians), on=[*_CLASS], how="inner").withColumn(
        "distance", sf.abs(sf.col("gas") - sf.col("gas_median"))
    )
    spreads = _medians(near, "distance", "spread").join(
        alone.groupBy(*_CLASS).agg(sf.count("*").alias("in_class")), on=[*_CLASS], how="inner"
    )
    least = sf.expr(f"gas_median * {LEAST_PERCENT} div 100")
    judged = near.join(sf.broadcast(spreads), on=[*_CLASS], how="inner").withColumn(
        "gas_deviation", sf.greatest("spread", least)
    )
    allowed = sf.col("gas_deviation") * FACTOR
    return (
        judged.filter((sf.col("in_class") >= LEAST_MESSAGES) & (sf.col("distance") > allowed))
        .withColumn("least_gas", sf.col("gas_median") - allowed)
        .withColumn("most_gas", sf.col("gas_median") + allowed)
        .select(*OUTLIERS)
    )


def _medians(frame: DataFrame, value: str, name: str) -> DataFrame:
    counted = frame.groupBy(*_CLASS, sf.col(value).alias("value")).agg(sf.count("*").alias("times"))
    histogram = counted.withColumn("measure", sf.lit(name))
    return nearest_ranks(histogram, _CLASS, {name: (name, 50)})
