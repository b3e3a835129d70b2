"""Exact order statistics by nearest rank, without bringing a group's values together.

The p-th percentile of n values is the smallest value that at least p % of the values do not exceed:
the value at rank ⌈p·n / 100⌉ of the sorted list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf


def nearest_ranks(
    histogram: DataFrame, group: Sequence[str], wanted: Mapping[str, tuple[str, int]]
) -> DataFrame:
    """Return per group the percentiles of its values.

    ``histogram`` has the group's columns, which may be null, ``measure``, ``value`` and ``times``:
    how often the measure has that value in the group. ``wanted`` names the columns of the result,
    each with its measure and percent.
    """
    whole = Window.partitionBy(*group, "measure")
    so_far = whole.orderBy("value").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = histogram.withColumn("up_to", sf.sum("times").over(so_far)).withColumn(
        "all", sf.sum("times").over(whole)
    )
    return ranked.groupBy(*group).agg(
        *(
            sf.min(sf.when(_is_at(measure, percent), sf.col("value"))).alias(name)
            for name, (measure, percent) in wanted.items()
        )
    )


def _is_at(measure: str, percent: int) -> Column:
    reached = sf.col("up_to") * 100 >= sf.col("all") * percent
    return (sf.col("measure") == measure) & reached
