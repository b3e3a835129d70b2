"""Proves that a chain export holds all data of its costs: a missing row is reported."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from chainkit.errors import MalformedLog, StoreError
from chainkit_jobs.cost.headroom import BlockTotals
from chainkit_jobs.sources import Export


def check_blocks(chain: Export, blocks: DataFrame) -> BlockTotals:
    """Return the blocks in all. Raises StoreError unless each of the range is there once."""
    manifest, number = chain.manifest, sf.col("number")
    [row] = blocks.agg(
        sf.count("*").alias("blocks"),
        sf.count_distinct("number").alias("numbers"),
        sf.count_if(number.between(manifest.from_block, manifest.to_block)).alias("inside"),
        sf.min_by("timestamp", "number").alias("first_timestamp"),
        sf.max_by("timestamp", "number").alias("last_timestamp"),
        sf.count_if(sf.col("gas_limit").isNull()).alias("without_limit"),
        sf.sum(sf.col("gas_limit").cast("decimal(38,0)")).alias("gas_limit"),
        sf.sum(sf.col("gas_used").cast("decimal(38,0)")).alias("gas_used"),
    ).collect()
    expected = manifest.to_block - manifest.from_block + 1
    got = (row["blocks"], row["numbers"], row["inside"])
    if got != (expected,) * 3:
        blocks_of = f"each block from {manifest.from_block} to {manifest.to_block} once"
        raise _unusable(chain, blocks_of, "{} rows with {} numbers, {} of them inside".format(*got))
    if row["without_limit"]:
        # An import from cryo: the tool does not write this column.
        raise _unusable(chain, "the gas limit of every block", f"{row['without_limit']} without")
    if row["last_timestamp"] < row["first_timestamp"]:
        raise _unusable(chain, "timestamps that do not fall", "a last block before the first")
    return BlockTotals(
        blocks=expected,
        first_timestamp=row["first_timestamp"],
        last_timestamp=row["last_timestamp"],
        gas_limit=int(row["gas_limit"]),
        gas_used=int(row["gas_used"]),
    )


def check_costs(chain: Export, carried: DataFrame, costs: DataFrame) -> None:
    """Prove that every message has its transaction, its receipt and its block, once each.

    ``carried`` is the result of messages.carried_messages, ``costs`` has the columns of
    transactions.COSTS. Raises MalformedLog for an event that does not decode, StoreError for
    missing or double rows.
    """
    [logs] = carried.agg(
        sf.count("*").alias("transactions"),
        sf.min("malformed").alias("malformed"),
    ).collect()
    if logs["malformed"] is not None:
        raise MalformedLog("chain export", "payload logs that decode", logs["malformed"])
    [row] = costs.agg(
        sf.count("*").alias("rows"),
        sf.count_distinct("transaction_hash").alias("transactions"),
        sf.count_if(sf.col("hour").isNull()).alias("without_block"),
        sf.count_if(sf.col("calldata_bytes").isNull()).alias("without_transaction"),
        sf.count_if("has_logs").alias("with_logs"),
    ).collect()
    if row["rows"] != row["transactions"]:
        got = f"{row['rows']} rows for {row['transactions']}"
        raise _unusable(chain, "each transaction and receipt once", got)
    if row["without_block"]:
        raise _missing(chain, "the block", row["without_block"])
    if row["without_transaction"]:
        raise _missing(chain, "the row in transactions", row["without_transaction"])
    if (absent := logs["transactions"] - row["with_logs"]) > 0:
        raise _missing(chain, "the receipt", absent)


def _missing(chain: Export, what: str, count: int) -> StoreError:
    return _unusable(chain, f"{what} of every transaction that it holds", f"{count} without")


def _unusable(chain: Export, expected: str, got: Any) -> StoreError:
    return StoreError(f"export {chain.directory}", expected, got)
