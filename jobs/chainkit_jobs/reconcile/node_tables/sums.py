"""Where a node's columns may contradict the chain: found by sums, without a shuffle of rows.

Rows are put into buckets of blocks. Where a bucket's sum over a node's columns is that over the
chain's places, the columns are the chain's. Only the other buckets are looked at row by row.
"""

from __future__ import annotations

import secrets
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit_jobs.reconcile.node_tables.places import PLACE

MOST_BUCKETS: Final = 20_000
"""The more, the fewer rows are looked at for one that is wrong."""

_LANES: Final = ("count", "xor", "sum")


def bucket(step: int) -> Column:
    """Return the bucket of a row by its own column; ``step`` is the blocks of a bucket."""
    return sf.coalesce(sf.expr(f"block_number div {step}"), sf.lit(-1).cast("long")).alias("bucket")


def doubtful_buckets(rows: DataFrame, places: DataFrame, step: int) -> DataFrame:
    """Return ``node_id`` and ``bucket`` wherever a node's columns are not those of the chain.

    ``rows`` has node_id and places.PLACE, ``places`` has places.PLACE of what the nodes must serve.
    A missing or superfluous row makes its bucket doubtful, too.
    """
    # The hash is fast and not cryptographic. The writer of a table does not know the salt.
    row_hash = sf.xxhash64(sf.lit(secrets.randbits(63)), *PLACE)
    chain = places.groupBy(bucket(step)).agg(*_lanes(row_hash, "chain"))
    held = rows.groupBy("node_id", bucket(step)).agg(*_lanes(row_hash, "node"))
    is_equal = sf.lit(True)
    for lane in _LANES:
        is_equal = is_equal & sf.equal_null(f"chain_{lane}", f"node_{lane}")
    return held.join(chain, "bucket", "left").filter(~is_equal).select("node_id", "bucket")


def _lanes(row_hash: Column, side: str) -> list[Column]:
    # Half of the bits: so many rows as would overflow the sum, no table has.
    half = sf.shiftrightunsigned(row_hash, 32)
    lanes = (sf.count("*"), sf.bit_xor(row_hash), sf.sum(half))
    return [lane.alias(f"{side}_{name}") for name, lane in zip(_LANES, lanes, strict=True)]
