"""The job: read a chain export once, cost each transaction, and cut the costs into tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.errors import StoreError
from chainkit_jobs.cost.blocks import time_limits, used_blocks
from chainkit_jobs.cost.checks import check_blocks, check_costs
from chainkit_jobs.cost.cuts import cut_costs
from chainkit_jobs.cost.functions import named_functions
from chainkit_jobs.cost.headroom import BlockTotals
from chainkit_jobs.cost.messages import carried_messages
from chainkit_jobs.cost.outliers import outliers
from chainkit_jobs.cost.schema import CUTS
from chainkit_jobs.cost.traffic import variant_costs
from chainkit_jobs.cost.transactions import transaction_costs
from chainkit_jobs.sources import (
    Export,
    payload_contracts,
    read_blocks,
    read_export,
    read_logs,
    read_receipts,
    read_transactions,
)
from chainkit_jobs.spark.frames import kept

_OVERFLOW: Final = re.compile(r"\[([A-Z_.]*(?:OVERFLOW|OUT_OF_RANGE)[A-Z_.]*)\]")
"""Spark's names of values that do not fit: with ANSI rules such a value ends the job instead of
being null."""

SAMPLES: Final = 2_000
"""Messages in the table for the plot of gas by size: more points would hide one another."""


@dataclass(frozen=True, slots=True)
class CostTables:
    """Costs of a chain, as frames: valid as long as their Spark context."""

    chain: Export
    block_totals: BlockTotals
    cuts: DataFrame
    """The result of cuts.cut_costs, kept: all of CUTS in one frame."""
    frames: Mapping[str, DataFrame]
    """By the names of schema.TABLES, each with the integers of its columns."""


def read_chain(directory: Path) -> Export:
    """Open a chain export, without Spark.

    Raises StoreError where the folder is no chain export, was changed after it was written, or
    names no payload contracts.
    """
    chain = read_export(directory, "chain")
    payload_contracts(chain)
    return chain


@contextmanager
def cost_tables(spark: SparkSession, chain: Export) -> Iterator[CostTables]:
    """Give the tables of what a chain cost.

    Raises StoreError where the export lacks or repeats something that costs are computed from, or
    an amount of wei needs more than 38 digits; MalformedLog for a payload event that does not
    decode.
    """
    contracts = {name: chain.contract(name) for name in sorted(chain.manifest.contracts)}
    posting = payload_contracts(chain)
    is_listed = chain.manifest.payload_contracts is not None
    functions = named_functions(contracts, posting if is_listed else ())
    with ExitStack() as stack:
        try:
            blocks = stack.enter_context(kept(_narrow_blocks(spark, chain)))
            block_totals = check_blocks(chain, blocks)
            carried = stack.enter_context(
                kept(carried_messages(read_logs(spark, chain), contracts, posting))
            )
            transactions = read_transactions(spark, chain)
            receipts = read_receipts(spark, chain)
            costs = stack.enter_context(
                kept(
                    transaction_costs(carried, blocks, transactions, receipts, contracts, functions)
                )
            )
            check_costs(chain, carried, costs)
            cuts = stack.enter_context(kept(cut_costs(costs)))
            yield CostTables(chain, block_totals, cuts, _frames(costs, blocks, cuts))
        except Exception as error:  # A stage's, a socket's and py4j's have no common type.
            overflow = _OVERFLOW.search(str(error))
            if overflow is None:
                raise
            expected = "amounts of wei below 10**38, gas below 2**63"
            raise StoreError(f"export {chain.directory}", expected, overflow[1]) from error


def _narrow_blocks(spark: SparkSession, chain: Export) -> DataFrame:
    columns = ("number", "hash", "timestamp", "gas_limit", "gas_used")
    return read_blocks(spark, chain).select(*columns)


def _frames(costs: DataFrame, blocks: DataFrame, cuts: DataFrame) -> dict[str, DataFrame]:
    frames = {name: cuts.filter(sf.col("cut") == name) for name in CUTS}
    for name, key in {"hours": "hour", "days": "day"}.items():
        frames[name] = frames[name].join(time_limits(blocks, key), on=key, how="inner")
    frames["sizes"] = with_size_below(frames["sizes"])
    alone = costs.filter(sf.col("messages") == 1)
    return frames | {
        "blocks": used_blocks(costs, blocks),
        "variants": variant_costs(costs),
        "shared": costs.filter(sf.col("messages") > 1),
        "failed": costs.filter(sf.col("is_failed")),
        "outliers": outliers(costs),
        # A transaction's hash is random, but fixed: every run samples the same transactions.
        "samples": alone.orderBy("transaction_hash").limit(SAMPLES),
    }


def with_size_below(frame: DataFrame) -> DataFrame:
    """Add the size, in bytes, at which the next class begins; null where there is none."""
    below = sf.greatest(sf.col("size_from") * 2, sf.lit(1).cast("long"))
    return frame.withColumn("size_below", sf.when(sf.col("size_from").isNotNull(), below))


def busiest(frame: DataFrame, key: str) -> dict[str, Any] | None:
    """Return the row with the most gas, the earliest of several; None of an empty frame."""
    rows = frame.orderBy(sf.col("gas").desc(), key).limit(1).collect()
    return rows[0].asDict() if rows else None
