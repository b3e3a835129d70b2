"""Places where a source is wrong, as rows that are counted together in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit_jobs.adapters.faults import Fault, FaultCode

_ORDER = ("block", "file", "expected", "got")


def places(
    frame: DataFrame,
    code: FaultCode | Column,
    table: str | Column,
    expected: str | Column,
    got: str | Column,
    *,
    block: Column,
    file: Column | None = None,
    count: Column | int = 1,
) -> DataFrame:
    """Turn each row of a frame into a place of a fault. ``count`` is the row's weight."""
    return frame.select(
        _column(code).alias("code"),
        _column(table).alias("table"),
        _column(count).cast("long").alias("count"),
        block.cast("long").alias("block"),
        (sf.lit(None) if file is None else file).cast("string").alias("file"),
        _column(expected).cast("string").alias("expected"),
        _column(got).cast("string").alias("got"),
    )


def count_faults(frames: Sequence[DataFrame]) -> list[Fault]:
    """Count places by code and table, and keep the first one: by height, then file, then text."""
    every = reduce(DataFrame.unionByName, frames)
    # A null would come first: a place without a height is shown only where no place has one.
    nulls_last = [
        field for name in _ORDER for field in (sf.col(name).isNull().alias(f"no_{name}"), name)
    ]
    first = sf.min(sf.struct(*nulls_last))
    counted = every.groupBy("code", "table").agg(sf.sum("count").alias("count"), first.alias("at"))
    rows = counted.select("code", "table", "count", *(f"at.{name}" for name in _ORDER)).collect()
    return [Fault(**row.asDict() | {"code": FaultCode(row["code"])}) for row in rows]


def hex0x(value: Column) -> Column:
    """Return bytes as text for a person."""
    return sf.concat(sf.lit("0x"), sf.lower(sf.hex(value)))


def _column(value: str | int | Column) -> Column:
    return value if isinstance(value, Column) else sf.lit(value)
