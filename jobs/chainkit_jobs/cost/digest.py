"""Costs of a chain in the few rows that an audit's report shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from chainkit.errors import StoreError
from chainkit_jobs.cost.headroom import BlockTotals
from chainkit_jobs.cost.job import CostTables, cost_tables, with_size_below
from chainkit_jobs.cost.schema import SORTED_BY, TABLES
from chainkit_jobs.cost.totals import (
    busiest_time,
    busy_row,
    headroom_of,
    total_row,
    variant_totals,
)
from chainkit_jobs.cost.transactions import DAY
from chainkit_jobs.cost.writing import Row, complete_row
from chainkit_jobs.sources import Export

LARGEST: Final = 12
"""Rows of a table whose length a stranger decides (functions, payers): those with most gas."""

_HOURLY_DAYS: Final = 4
"""A chain of more days than this is shown by the day: bars of an hour would be hairlines."""


_SHOWN: Final = ("total", "contracts", "sizes", "functions", "payers")


@dataclass(frozen=True, slots=True)
class CostDigest:
    """Rows of the tables of schema.TABLES, exact as there."""

    total: Row
    contracts: tuple[Row, ...]
    sizes: tuple[Row, ...]
    functions: tuple[Row, ...]
    """The LARGEST with most gas, and so are the payers."""
    payers: tuple[Row, ...]
    counts: Mapping[str, int]
    """How many functions and payers there are in all."""
    time: str
    """``hour`` or ``day``."""
    times: tuple[Row, ...]
    """Rows of the table ``hours`` or ``days``."""
    samples: tuple[Row, ...]
    variants: tuple[Row, ...]
    """Totals of each variant and set of rules; see totals.variant_totals."""
    headroom: Mapping[str, Any]
    busiest: Mapping[str, Row | None]
    """The block, and the hour or day, with most gas; see totals.busy_row."""


def read_digest(spark: SparkSession, chain: Export) -> CostDigest | str:
    """Return the costs of a chain, or a sentence with the reason why they are not known.

    An audit goes on without costs: nodes' answers are compared whatever their transport cost.
    """
    try:
        with cost_tables(spark, chain) as costs:
            return digest(costs)
    except StoreError as error:
        return str(error)


def digest(costs: CostTables) -> CostDigest:
    """Bring the few rows to the driver. Raises what cost_tables raises."""
    time = "hour" if _days(costs.block_totals) <= _HOURLY_DAYS else "day"
    cuts, counts = _cuts(costs.cuts)
    total = total_row(cuts["total"])
    times = _sorted(f"{time}s", _collected(f"{time}s", costs.frames[f"{time}s"]))
    busiest = max(times, key=lambda row: (row["gas"], -row[time]), default=None)
    return CostDigest(
        total=total,
        contracts=tuple(_sorted("contracts", cuts["contracts"])),
        sizes=tuple(_sorted("sizes", cuts["sizes"])),
        functions=tuple(cuts["functions"]),
        payers=tuple(cuts["payers"]),
        counts={name: counts.get(name, 0) for name in ("functions", "payers")},
        time=time,
        times=tuple(times),
        samples=tuple(_sorted("samples", _collected("samples", costs.frames["samples"]))),
        variants=tuple(variant_totals(_variants(costs))),
        headroom=headroom_of(costs, total),
        busiest={
            "block": busiest_time(costs, "block"),
            time: None if busiest is None else busy_row(time, busiest),
        },
    )


def _days(blocks: BlockTotals) -> float:
    return (blocks.last_timestamp - blocks.first_timestamp) / DAY


def _cuts(frame: DataFrame) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """Return the LARGEST rows of each cut, most gas first, and its number of rows, in one action.

    Contracts and size classes are few: all their rows are returned.
    """
    keys = sorted({key for name in _SHOWN for key in SORTED_BY[name]})
    cut = Window.partitionBy("cut")
    largest = cut.orderBy(sf.col("gas").desc(), *keys)
    rows = (
        with_size_below(frame.filter(sf.col("cut").isin(list(_SHOWN))))
        .withColumn("rank", sf.row_number().over(largest))
        .withColumn("held", sf.count("*").over(cut))
        .filter((sf.col("rank") <= LARGEST) | sf.col("cut").isin("contracts", "sizes"))
        .collect()
    )
    found: dict[str, list[Row]] = {name: [] for name in _SHOWN}
    for row in sorted(rows, key=lambda row: row["rank"]):
        found[row["cut"]].append(complete_row(TABLES[row["cut"]], row.asDict()))
    return found, {row["cut"]: row["held"] for row in rows}


def _collected(name: str, frame: DataFrame) -> list[Row]:
    return [complete_row(TABLES[name], row.asDict()) for row in frame.collect()]


def _sorted(name: str, rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: tuple(row[key] for key in SORTED_BY[name]))


def _variants(costs: CostTables) -> list[Row]:
    # The size class of messages that shared a transaction is null, which has no order.
    rows = _collected("variants", costs.frames["variants"])
    return sorted(rows, key=lambda row: (row["variant"], row["rules"]))
