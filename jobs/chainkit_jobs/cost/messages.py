"""From the logs of our contracts to what each transaction carried, and its cost elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.errors import MalformedLog
from chainkit.exports import tables
from chainkit.protocol.events import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    decode_payload_event,
)
from chainkit_jobs.cost.functions import SEVERAL
from chainkit_jobs.cost.variants import VARIANT_COLUMNS, variant_gas
from chainkit_jobs.sources import log_from_row

PAYLOAD_TOPICS: Final = {
    "GroupMessages": MESSAGE_SENT_TOPIC,
    "IdentityUpdates": IDENTITY_UPDATE_CREATED_TOPIC,
}
"""The one event of each payload contract that carries a message."""

_MEASURED: Final = pa.schema(
    [
        ("transaction_hash", pa.binary()),
        ("block_number", pa.int64()),
        ("emitter", pa.string()),
        ("message_contract", pa.string()),
        ("payload_size", pa.int64()),
        ("malformed", pa.string()),
        *((name, pa.int64()) for name in VARIANT_COLUMNS),
    ]
)
"""One row per log of our contracts. Columns after ``emitter`` are null where it is no message;
``malformed`` is null, or why a payload event does not decode."""


def name_of(address: str, contracts: Mapping[str, bytes]) -> Column:
    """Return the name of the contract at a column's address, null where it is a stranger's."""
    name = sf.lit(None).cast("string")
    for contract, own in contracts.items():
        name = sf.when(sf.col(address) == sf.lit(own), contract).otherwise(name)
    return name


def carried_messages(logs: DataFrame, contracts: Mapping[str, bytes]) -> DataFrame:
    """Return one row per transaction in which one of our contracts emitted a log.

    ``logs`` has the columns of exports.tables.LOGS; ``contracts`` are the addresses by name.
    Columns: transaction_hash; ``emitter`` and ``message_contract`` (a contract's name, SEVERAL, or
    null where none carried a message), ``messages``, ``payload_bytes``, ``malformed`` and
    VARIANT_COLUMNS, summed over the messages.
    """
    is_message = sf.lit(False)
    for name, topic in PAYLOAD_TOPICS.items():
        emitted = sf.col("address") == sf.lit(contracts[name])
        is_message |= emitted & (sf.try_element_at("topics", sf.lit(1)) == sf.lit(topic))
    own = (
        logs.withColumn("emitter", name_of("address", contracts))
        .filter(sf.col("emitter").isNotNull())
        .withColumn("is_message", sf.coalesce(is_message, sf.lit(False)))
        .select(*tables.LOGS.names, "emitter", "is_message")
    )
    measured = own.mapInArrow(_measure_batches, from_arrow_schema(_MEASURED))
    zero = sf.lit(0).cast("long")
    sums = ("payload_size", *VARIANT_COLUMNS)
    return measured.groupBy("transaction_hash").agg(
        _one_of("emitter").alias("emitter"),
        _one_of("message_contract").alias("message_contract"),
        sf.count("message_contract").alias("messages"),
        *(sf.coalesce(sf.sum(name), zero).alias(_total(name)) for name in sums),
        sf.min("malformed").alias("malformed"),
    )


def _one_of(name: str) -> Column:
    lowest, highest = sf.min(name), sf.max(name)
    return sf.when(lowest == highest, lowest).when(lowest != highest, SEVERAL)


def _total(name: str) -> str:
    return "payload_bytes" if name == "payload_size" else name


def _measure_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [measure_row(row) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=_MEASURED)


def measure_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Measure one log: its message's size, and its cost in each variant (VARIANT_COLUMNS)."""
    place = {name: row[name] for name in ("transaction_hash", "block_number", "emitter")}
    if not row["is_message"]:
        return place
    try:
        event = decode_payload_event(log_from_row(row))
    except MalformedLog as error:
        return place | {"message_contract": row["emitter"], "malformed": str(error)}
    measures = {"message_contract": row["emitter"], "payload_size": len(event.payload)}
    return place | measures | variant_gas(event)
