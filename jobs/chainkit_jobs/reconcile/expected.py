"""The chain's side: from the logs of the two payload contracts to the envelopes they demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.errors import MalformedLog
from chainkit.exports import tables
from chainkit.protocol.envelope import (
    blockchain_proof_digest,
    quarantine_reason,
    unsigned_originator_envelope,
)
from chainkit.protocol.events import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    decode_payload_event,
)
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.sources import log_from_row

EXPECTED: Final = pa.schema(
    [
        ("originator_id", pa.int64()),
        ("sequence_id", tables.UINT64),
        ("digest", pa.binary()),
        ("quarantine_reason", pa.string()),
        ("contract", pa.string()),
        ("payload_size", pa.int64()),
        ("block_number", pa.int64()),
        ("log_index", pa.int64()),
        ("transaction_hash", pa.binary()),
        ("malformed", pa.string()),
    ]
)
"""One row per payload event. ``digest`` is what a node's BlockchainProof signs: it binds the
unsigned envelope and the transaction hash. ``malformed`` is null, or why the log is none."""

_INPUT: Final = (
    "contract",
    "address",
    "topics",
    "data",
    "block_number",
    "block_hash",
    "block_timestamp",
    "transaction_hash",
    "transaction_index",
    "log_index",
)


@dataclass(frozen=True, slots=True)
class PayloadContracts:
    """The two contracts whose events become node-0 envelopes; 20 bytes each."""

    group_messages: bytes
    identity_updates: bytes


def expected_envelopes(
    logs: DataFrame, blocks: DataFrame, contracts: PayloadContracts
) -> DataFrame:
    """Return what every honest node must serve, or keep in quarantine (columns of EXPECTED).

    ``logs`` and ``blocks`` have the columns of exports.tables. A log whose block is missing
    has no time, so that its envelope cannot be built: it comes back as malformed.
    """
    first_topic = sf.col("topics")[0]
    is_message = (sf.col("address") == sf.lit(contracts.group_messages)) & (
        first_topic == sf.lit(MESSAGE_SENT_TOPIC)
    )
    is_update = (sf.col("address") == sf.lit(contracts.identity_updates)) & (
        first_topic == sf.lit(IDENTITY_UPDATE_CREATED_TOPIC)
    )
    times = blocks.select(
        sf.col("number").alias("block_number"),
        sf.col("hash").alias("block_hash"),
        sf.col("timestamp").alias("block_timestamp"),
    )
    payloads = (
        logs.filter((sf.size("topics") > 0) & (is_message | is_update))
        .withColumn("contract", sf.when(is_message, "GroupMessages").otherwise("IdentityUpdates"))
        .join(times, on=["block_number", "block_hash"], how="left")
        .select(*_INPUT)
    )
    return payloads.mapInArrow(_decode_batches, from_arrow_schema(EXPECTED))


def _decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [decode_row(row) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=EXPECTED)


def decode_row(row: dict[str, Any]) -> dict[str, Any]:
    """Decode one payload log, joined with its block's time, into a row of EXPECTED."""
    place = {
        "originator_id": BLOCKCHAIN_ORIGINATOR_ID,
        "contract": row["contract"],
        "block_number": row["block_number"],
        "log_index": row["log_index"],
        "transaction_hash": row["transaction_hash"],
    }
    if row["block_timestamp"] is None:
        return place | {"malformed": "a log of a block that the export does not hold"}
    try:
        event = decode_payload_event(log_from_row(row))
    except MalformedLog as error:
        return place | {"malformed": str(error)}
    unsigned = unsigned_originator_envelope(event, row["block_timestamp"])
    return place | {
        "sequence_id": Decimal(event.sequence_id),
        "digest": blockchain_proof_digest(unsigned, row["transaction_hash"]),
        "quarantine_reason": quarantine_reason(event),
        "payload_size": len(event.payload),
    }
