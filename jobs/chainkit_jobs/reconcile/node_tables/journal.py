"""Compares a node's journal of reorgs with the chain's present payloads.

Nearly all entries agree with the chain at once. For the transactions of the others, all entries and
payloads are brought together, and ``journal_check`` decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.errors import MalformedEnvelope
from chainkit.exports import tables
from chainkit.protocol.envelope import blockchain_proof_digest, parse_originator_envelope
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.chain_side import ChainSide
from chainkit_jobs.reconcile.node_tables.journal_check import (
    DROPPED,
    KEPT,
    MOVED,
    Entry,
    Held,
    check_journal,
)
from chainkit_jobs.reconcile.node_tables.reading import read_tables

ENTRIES: Final = pa.schema(
    [
        ("node_id", pa.int64()),
        ("reorg_id", pa.int64()),
        ("originator_id", pa.int64()),
        ("sequence_id", tables.UINT64),
        ("transaction_hash", pa.binary()),
        ("outcome", pa.string()),
        ("new_sequence_id", tables.UINT64),
        ("payload_sha256", pa.string()),
        ("digest", pa.binary()),
    ]
)
"""A journal's entry. ``payload_sha256`` (hex) and ``digest``, which its BlockchainProof signs, are
null where the entry holds no readable envelope."""


def journal_entries(spark: SparkSession, nodes: Sequence[NodeExport]) -> DataFrame:
    """Return the journals of nodes (columns of ENTRIES)."""
    names = [name for name in ENTRIES.names if name in tables.JOURNAL.names]
    rows = read_tables(spark, nodes, "journal", (*names, "envelope"))
    return rows.mapInArrow(_read_batches, from_arrow_schema(ENTRIES))


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [read_entry(row) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=ENTRIES)


def read_entry(row: dict[str, Any]) -> dict[str, Any]:
    """Replace the envelope of a row of chainkit.exports.tables.JOURNAL by its digests."""
    envelope = row.pop("envelope")
    if envelope is None:
        return row
    try:
        served = parse_originator_envelope(envelope)
    except MalformedEnvelope:
        return row
    return row | {
        "payload_sha256": hashlib.sha256(served.client_envelope).hexdigest(),
        "digest": blockchain_proof_digest(
            served.unsigned_originator_envelope, served.transaction_hash
        ),
    }


def journal_findings(
    spark: SparkSession, nodes: Sequence[NodeExport], chain: ChainSide
) -> list[dict[str, Any]]:
    """Compare each journal with the chain up to its node's last block."""
    entries = journal_entries(spark, nodes).persist()
    try:
        if entries.isEmpty():
            return []
        doubted = _doubted(entries, chain)
        transactions = doubted.select("transaction_hash").distinct().persist()
        of_doubted = entries.join(transactions, "transaction_hash", "left_semi").collect()
        held = _held(chain, transactions, doubted.select("target")) if of_doubted else []
        transactions.unpersist()
    finally:
        entries.unpersist()
    last_blocks = {node.node.node_id: node.manifest.to_block for node in nodes}
    counter = chain.manifest.sequence_after
    doubted_entries = [_entry(row.asDict()) for row in of_doubted]
    return check_journal(doubted_entries, held, last_blocks, counter)


def _doubted(entries: DataFrame, chain: ChainSide) -> DataFrame:
    """Return entries that do not agree with the chain at once, with ``target``.

    ``target`` is the payload's present sequence by the journal; null where it was dropped.
    """
    target = sf.when(entries.outcome == KEPT, entries.sequence_id).when(
        entries.outcome == MOVED, entries.new_sequence_id
    )
    entries = entries.withColumn("target", target)
    located = chain.places.select(
        sf.col("originator_id"),
        sf.col("sequence_id").alias("target"),
        sf.col("transaction_hash").alias("target_transaction"),
        sf.col("payload_sha256").alias("target_payload"),
    )
    sent = chain.places.select("transaction_hash").distinct().withColumn("is_sent", sf.lit(True))
    placed = entries.join(located, ["originator_id", "target"], "left").join(
        sent, "transaction_hash", "left"
    )
    is_same = sf.equal_null("target_transaction", "transaction_hash") & (
        sf.col("payload_sha256").isNull() | sf.equal_null("target_payload", "payload_sha256")
    )
    is_kept = (sf.col("outcome") == KEPT) & sf.col("new_sequence_id").isNull()
    is_moved = (sf.col("outcome") == MOVED) & (sf.col("new_sequence_id") != sf.col("sequence_id"))
    is_dropped = (sf.col("outcome") == DROPPED) & sf.col("new_sequence_id").isNull()
    agrees = ((is_kept | is_moved) & is_same) | (is_dropped & sf.col("is_sent").isNull())
    return placed.filter(~sf.coalesce(agrees, sf.lit(False)))


def _held(chain: ChainSide, transactions: DataFrame, targets: DataFrame) -> list[Held]:
    """Return the payloads of some transactions, and those under some sequences."""
    names = tuple(Held.__dataclass_fields__)
    of_transactions = chain.places.join(transactions, "transaction_hash", "left_semi")
    under_targets = chain.places.join(
        targets.select(sf.col("target").alias("sequence_id")), "sequence_id", "left_semi"
    )
    rows = of_transactions.select(*names).union(under_targets.select(*names)).distinct()
    return [
        Held(
            **row.asDict()
            | {
                "sequence_id": int(row["sequence_id"]),
                "transaction_hash": bytes(row["transaction_hash"]),
            }
        )
        for row in rows.collect()
    ]


def _entry(row: dict[str, Any]) -> Entry:
    moved_to = row["new_sequence_id"]
    return Entry(
        **row
        | {
            "sequence_id": int(row["sequence_id"]),
            "new_sequence_id": None if moved_to is None else int(moved_to),
            "transaction_hash": bytes(row["transaction_hash"]),
            "digest": None if row["digest"] is None else bytes(row["digest"]),
        }
    )
