"""The costs cut by contract, function, payer, hour, day and payload size, in one pass each."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as sf

from chainkit_jobs.cost.ranks import nearest_ranks
from chainkit_jobs.cost.schema import CUTS

KEYS: Final = ("contract", "function", "payer", "hour", "day", "size_from")

PERCENTS: Final = (50, 95, 99)

PERCENTILES: Final = {
    f"{measure}_p{percent}": (measure, percent)
    for measure in ("gas", "wei")
    for percent in PERCENTS
}
"""Columns of gas and of wei per message, each with its measure and percent."""

_CUT_KEYS: Final = ("cut", *KEYS)


def cut_costs(costs: DataFrame) -> DataFrame:
    """Return sums and percentiles of every cut: ``cut``, KEYS, and the integers of each row.

    ``costs`` has the columns of transactions.COSTS. A key that the cut does not use is null.
    PERCENTILES are of messages that were alone in their transaction, null where there is none.
    """
    sums = _by_cut(costs).agg(_cut(), *_sums())
    ranks = nearest_ranks(_histogram(costs), _CUT_KEYS, PERCENTILES).select(
        *(sf.col(key).alias(f"ranked_{key}") for key in _CUT_KEYS),
        *(_typed(name) for name in PERCENTILES),
    )
    same = [sf.col(key).eqNullSafe(sf.col(f"ranked_{key}")) for key in _CUT_KEYS]
    joined = sums.join(ranks, on=reduce(and_, same), how="left")
    # A message that shares a transaction has no size of its own; nor has a transaction without one.
    has_size = (sf.col("cut") != "sizes") | sf.col("size_from").isNotNull()
    return joined.filter(has_size).drop(*(f"ranked_{key}" for key in _CUT_KEYS))


def _by_cut(frame: DataFrame, *more: str) -> GroupedData:
    return frame.groupingSets([[*keys, *more] for keys in CUTS.values()], *KEYS, *more)


def _cut() -> Column:
    """Name a row's cut by its keys; a key itself may be null, its grouping not."""
    name = sf.lit("total")
    # A cut with more keys comes later: its name is the key that the earlier cuts lack.
    for key, cut in {
        "contract": "contracts",
        "function": "functions",
        "payer": "payers",
        "hour": "hours",
        "day": "days",
        "size_from": "sizes",
    }.items():
        name = sf.when(sf.grouping(key) == 0, cut).otherwise(name)
    return name.alias("cut")


def _sums() -> list[Column]:
    is_shared, is_failed = sf.col("messages") > 1, sf.col("is_failed")
    carries = sf.col("messages") > 0
    return [
        sf.count("*").alias("transactions"),
        _sum("messages"),
        _sum("payload_bytes"),
        _sum("calldata_bytes"),
        _sum("gas"),
        _sum("gas", carries, "message_gas"),
        _sum("wei"),
        sf.sum("l1_gas").alias("l1_gas"),
        sf.sum("l1_wei").cast("decimal(38,0)").alias("l1_wei"),
        _sum("paid_wei"),
        sf.count_if(is_failed).alias("failed"),
        _sum("gas", is_failed, "failed_gas"),
        _sum("paid_wei", is_failed, "failed_wei"),
        sf.count_if(is_shared).alias("shared"),
        _sum("messages", is_shared, "shared_messages"),
        _sum("payload_bytes", is_shared, "shared_bytes"),
        _sum("gas", is_shared, "shared_gas"),
        _sum("paid_wei", is_shared, "shared_wei"),
    ]


def _sum(name: str, condition: Column | None = None, alias: str | None = None) -> Column:
    kind = "decimal(38,0)" if name.endswith("wei") else "long"
    value = sf.col(name)
    if condition is not None:
        value = sf.when(condition, value).otherwise(sf.lit(0).cast(kind))
    return sf.sum(value).cast(kind).alias(alias or name)


def _histogram(costs: DataFrame) -> DataFrame:
    """Count how often gas and wei have each value among the messages that were alone."""
    measures = sf.array(
        _measure("gas", sf.col("gas")),
        _measure("wei", sf.col("paid_wei")),
    )
    alone = costs.filter(sf.col("messages") == 1).select(
        *KEYS, sf.explode(measures).alias("measured")
    )
    values = alone.select(*KEYS, "measured.*")
    return _by_cut(values, "measure", "value").agg(_cut(), sf.count("*").alias("times"))


def _measure(name: str, value: Column) -> Column:
    kind = "decimal(38,0)"
    return sf.struct(sf.lit(name).alias("measure"), value.cast(kind).alias("value"))


def _typed(name: str) -> Column:
    kind = "long" if name.startswith("gas") else "decimal(38,0)"
    return sf.col(name).cast(kind).alias(name)
