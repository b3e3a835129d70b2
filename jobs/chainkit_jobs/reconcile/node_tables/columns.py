"""ENVELOPE_COLUMNS_CONTRADICT: a node's columns beside envelopes that are right."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.errors import MalformedEnvelope
from chainkit.exports import tables
from chainkit.protocol.chain_time import block_timestamp
from chainkit.protocol.envelope import (
    blockchain_proof_digest,
    parse_originator_envelope,
    unsigned_originator_envelope,
)
from chainkit.protocol.served_topic import named_topic
from chainkit.types import message_sent
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.chain_side import ChainSide
from chainkit_jobs.reconcile.node_tables.places import PLACE
from chainkit_jobs.reconcile.node_tables.reading import read_tables
from chainkit_jobs.reconcile.node_tables.rows import listed
from chainkit_jobs.reconcile.node_tables.sums import MOST_BUCKETS, bucket, doubtful_buckets

_KEY: Final = ("originator_id", "sequence_id")
_ROW: Final = ("node_id", "file_name", "row_index")
_HIDDEN: Final = ("_metadata.file_name", "_metadata.row_index")
_SHOWN: Final = 72
"""Characters of a column that a detail repeats: a topic may be of any length."""

_TAKEN_APART: Final = pa.schema(
    [
        ("node_id", pa.int64()),
        ("file_name", pa.string()),
        ("row_index", pa.int64()),
        *((f"said_{name}", tables.ENVELOPES.field(name).type) for name in PLACE),
        ("originator_id", pa.int64()),
        ("sequence_id", tables.UINT64),
        ("own_ns", pa.int64()),
        ("own_transaction", pa.binary()),
        ("own_payload", pa.string()),
        ("own_topic", pa.binary()),
        ("digest", pa.binary()),
    ]
)
"""A row's columns as ``said_``, and the values from its bytes; ``own_payload`` is the sha256 in
hex."""


def column_findings(
    spark: SparkSession,
    nodes: Sequence[NodeExport],
    chain: ChainSide,
    misplaced: DataFrame | None = None,
) -> list[dict[str, Any]]:
    """Compare the columns beside all envelopes whose bytes are the expected ones.

    Sums do not show rows that have exchanged their columns. The bytes do: ``misplaced`` is
    ``node_id`` and ``claimed_sequence_id`` of rows whose bytes hold another sequence.
    """
    blocks = chain.manifest.to_block - chain.manifest.from_block
    step = 1 + blocks // MOST_BUCKETS
    valid = chain.valid_places()
    rows = read_tables(spark, nodes, "envelopes", PLACE)
    doubtful = doubtful_buckets(rows, valid, step).collect()
    buckets = spark.createDataFrame(doubtful, "node_id long, bucket long")
    rows = read_tables(spark, nodes, "envelopes", (*PLACE, "envelope", *_HIDDEN))
    suspects = _suspects(rows, valid, buckets, step) if doubtful else None
    if misplaced is not None and not misplaced.isEmpty():
        exchanged = _exchanged(rows, misplaced)
        suspects = exchanged if suspects is None else suspects.unionByName(exchanged).distinct()
    if suspects is None:
        return []
    return listed(_contradictions(_taken_apart(suspects), valid))


def _suspects(rows: DataFrame, valid: DataFrame, buckets: DataFrame, step: int) -> DataFrame:
    """Return the rows of doubtful buckets whose columns differ from those of their sequence."""
    some = rows.withColumn("bucket", bucket(step)).join(
        sf.broadcast(buckets), ["node_id", "bucket"], "left_semi"
    )
    near = valid.withColumn("bucket", bucket(step)).join(
        sf.broadcast(buckets.select("bucket").distinct()), "bucket", "left_semi"
    )
    near = near.select(*_KEY, sf.struct(*PLACE).alias("place"))
    agrees = reduce(and_, [sf.equal_null(name, f"place.{name}") for name in PLACE])
    is_right = sf.col("place").isNotNull() & agrees
    return some.join(near, list(_KEY), "left").filter(~is_right).select(*rows.columns)


def _exchanged(rows: DataFrame, misplaced: DataFrame) -> DataFrame:
    claims = misplaced.select("node_id", sf.col("claimed_sequence_id").alias("sequence_id"))
    return rows.join(claims, ["node_id", "sequence_id"], "left_semi").select(*rows.columns)


def _taken_apart(rows: DataFrame) -> DataFrame:
    said = [sf.col(name).alias(f"said_{name}") for name in PLACE]
    columns = rows.select(*_ROW, *said, "envelope")
    return columns.mapInArrow(_take_apart, from_arrow_schema(_TAKEN_APART))


def _take_apart(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = [row for row in map(read_row, batch.to_pylist()) if row is not None]
        yield pa.RecordBatch.from_pylist(found, schema=_TAKEN_APART)


def read_row(row: dict[str, Any]) -> dict[str, Any] | None:
    """Add the values from a row's bytes; None for unexpected bytes, which graver codes report."""
    try:
        served = parse_originator_envelope(row.pop("envelope"))
        event = message_sent(b"", served.client_envelope, served.sequence_id, served.originator_id)
        unsigned = unsigned_originator_envelope(event, block_timestamp(served.originator_ns))
    except MalformedEnvelope:
        return None
    if unsigned != served.unsigned_originator_envelope:
        return None
    return row | {
        "originator_id": served.originator_id,
        "sequence_id": Decimal(served.sequence_id),
        "own_ns": served.originator_ns,
        "own_transaction": served.transaction_hash,
        "own_payload": hashlib.sha256(served.client_envelope).hexdigest(),
        "own_topic": named_topic(served.client_envelope),
        "digest": blockchain_proof_digest(unsigned, served.transaction_hash),
    }


def _contradictions(apart: DataFrame, valid: DataFrame) -> DataFrame:
    # Only rows with the expected bytes: the others have graver codes.
    is_right = (
        (sf.col("own_ns") == sf.col("originator_ns"))
        & (sf.col("own_transaction") == sf.col("transaction_hash"))
        & (sf.col("own_payload") == sf.col("payload_sha256"))
    )
    placed = apart.join(valid, list(_KEY), "inner").filter(is_right)
    # A payload that may be served names its topic; SQL cannot read the topic in every form.
    placed = placed.withColumn("topic", sf.col("own_topic"))
    differing = sf.array_compact(sf.array(*[_difference(name) for name in PLACE]))
    log = ("block_number", "log_index", "transaction_hash")
    found = sf.struct(sf.size(differing).alias("size"), differing.alias("names"), *log, "digest")
    compared = placed.select(*_ROW, *_KEY, found.alias("found"))
    # A log that the chain export repeats is no fault of the node's: either place will do.
    best = compared.groupBy(*_ROW, *_KEY).agg(sf.min("found").alias("found"))
    names = sf.transform("found.names", lambda each: sf.substring_index(each, ":", 1))
    return best.filter("found.size > 0").select(
        sf.lit(Code.ENVELOPE_COLUMNS_CONTRADICT.value).alias("code"),
        "node_id",
        *_KEY,
        *(f"found.{name}" for name in log),
        sf.col("found.digest").alias("expected_digest"),
        sf.array_join("found.names", "; ").alias("detail"),
        sf.array_join(names, ",").alias("kind"),
    )


def _difference(name: str) -> Column:
    said = sf.col(f"said_{name}")
    words = sf.concat(
        sf.lit(f"{name}: expected "),
        _shown(name, sf.col(name)),
        sf.lit(", got "),
        _shown(name, said),
    )
    return sf.when(~sf.equal_null(said, sf.col(name)), words)


def _shown(name: str, value: Column) -> Column:
    is_binary = tables.ENVELOPES.field(name).type == pa.binary()
    text = sf.concat(sf.lit("0x"), sf.lower(sf.hex(value))) if is_binary else value.cast("string")
    cut = sf.when(sf.length(text) > _SHOWN, sf.concat(sf.left(text, sf.lit(_SHOWN)), sf.lit("…")))
    return sf.coalesce(cut, text, sf.lit("nothing"))
