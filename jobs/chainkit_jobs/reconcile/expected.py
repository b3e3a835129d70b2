"""The chain's side: from the logs of the payload contracts to the envelopes they demand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.errors import MalformedLog
from chainkit.exports import tables
from chainkit.protocol.envelope import (
    blockchain_proof_digest,
    quarantine_reason,
    unsigned_originator_envelope,
)
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.payload_contract import PayloadContract
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
"""One row per payload event. ``digest`` is the digest that a node's BlockchainProof signs, over the
unsigned envelope and the transaction hash. ``malformed`` is null, or why the log is no payload."""

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

_HIGHEST_CURSOR: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class PayloadContracts:
    """Our own two contracts, whose events become node-0 envelopes; 20 bytes each."""

    group_messages: bytes
    identity_updates: bytes


def expected_envelopes(
    logs: DataFrame, blocks: DataFrame, contracts: Sequence[PayloadContract]
) -> DataFrame:
    """Return what every honest node must serve, or keep in quarantine (columns of EXPECTED).

    ``logs`` and ``blocks`` have the columns of exports.tables. A log whose block is missing has no
    time, so that its envelope cannot be built: the log counts as malformed.
    """
    times = blocks.select(
        sf.col("number").alias("block_number"),
        sf.col("hash").alias("block_hash"),
        sf.col("timestamp").alias("block_timestamp"),
    )
    first_topic = sf.col("topics")[0]
    names = [
        sf.when(
            (sf.col("address") == sf.lit(each.address)) & (first_topic == sf.lit(each.topic)),
            each.name,
        )
        for each in contracts
    ]
    payloads = (
        logs.filter(sf.size("topics") > 0)
        .withColumn("contract", sf.coalesce(*names))
        .filter(sf.col("contract").isNotNull())
        .join(times, on=["block_number", "block_hash"], how="left")
        .select(*_INPUT)
    )
    decode = partial(_decode_batches, contracts={each.name: each for each in contracts})
    return payloads.mapInArrow(decode, from_arrow_schema(EXPECTED))


def without_left_out(expected: DataFrame, sparse: Collection[int]) -> DataFrame:
    """Return the payloads that count: of an originator whose ids are sparse, the first of each id.

    ``expected`` has the columns of EXPECTED. Ids that no cursor reaches, 0 and those from 2**63 on,
    do not count there (docs/adr/0050).
    """
    order = Window.partitionBy("originator_id", "sequence_id").orderBy("block_number", "log_index")
    is_free = ~sf.col("originator_id").isin(list(sparse)) | sf.col("malformed").isNotNull()
    is_first = sf.col("sequence_id").between(1, _HIGHEST_CURSOR) & (sf.col("place") == 1)
    placed = expected.withColumn("place", sf.row_number().over(order))
    return placed.filter(is_free | is_first).select(*EXPECTED.names)


def check_decoded(malformed: Iterable[Mapping[str, Any]]) -> None:
    """Raise MalformedLog for the first of the logs that the contracts cannot have emitted, if any.

    ``malformed`` has ``block_number``, ``log_index`` and ``malformed`` of EXPECTED.
    """
    places = {(row["block_number"], row["log_index"]): row["malformed"] for row in malformed}
    for number, index in sorted(places)[:1]:
        got, place = places[number, index], f"block {number}, log {index}"
        raise MalformedLog("chain export", "payload logs that decode", got, place)


def _decode_batches(
    batches: Iterable[pa.RecordBatch], contracts: Mapping[str, PayloadContract]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [decode_row(row, contracts[row["contract"]]) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=EXPECTED)


def decode_row(row: dict[str, Any], contract: PayloadContract | None = None) -> dict[str, Any]:
    """Decode one payload log, joined with its block's time, into a row of EXPECTED.

    Without a contract, the log is of our own.
    """
    place = {
        "originator_id": contract.originator_id if contract else BLOCKCHAIN_ORIGINATOR_ID,
        "contract": row["contract"],
        "block_number": row["block_number"],
        "log_index": row["log_index"],
        "transaction_hash": row["transaction_hash"],
    }
    if row["block_timestamp"] is None:
        return place | {"malformed": "a log of a block that the export does not hold"}
    try:
        event = decode_payload_event(log_from_row(row), contract)
    except MalformedLog as error:
        return place | {"malformed": str(error)}
    unsigned = unsigned_originator_envelope(event, row["block_timestamp"])
    return place | {
        "sequence_id": Decimal(event.sequence_id),
        "digest": blockchain_proof_digest(unsigned, row["transaction_hash"]),
        "quarantine_reason": quarantine_reason(event),
        "payload_size": len(event.payload),
    }
