"""The messages of each transaction, from the contracts' logs, and their cost in other variants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.errors import MalformedLog
from chainkit.exports import tables
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.types import HASH_LENGTH
from chainkit_jobs.cost.functions import SEVERAL
from chainkit_jobs.cost.variants import VARIANT_COLUMNS, variant_gas
from chainkit_jobs.sources import log_from_row

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
"""One row per log of our contracts. Columns after ``emitter`` are null for a log without a message;
``malformed`` is null, or why a payload event does not decode."""


def name_of(address: str, contracts: Mapping[str, bytes]) -> Column:
    """Return the name of the contract at a column's address, null for a stranger's contract."""
    name = sf.lit(None).cast("string")
    for contract, own in contracts.items():
        name = sf.when(sf.col(address) == sf.lit(own), contract).otherwise(name)
    return name


def carried_messages(
    logs: DataFrame, contracts: Mapping[str, bytes], posting: Sequence[PayloadContract]
) -> DataFrame:
    """Return one row per transaction in which one of the contracts emitted a log.

    ``logs`` has the columns of exports.tables.LOGS; ``contracts`` are the addresses by name;
    ``posting`` are the contracts whose one event carries a message. Columns: transaction_hash;
    ``emitter`` and ``message_contract`` (a contract's name, SEVERAL, or null where none carried a
    message), ``messages``, ``payload_bytes``, ``malformed`` and VARIANT_COLUMNS, summed over the
    messages.
    """
    is_message = sf.lit(False)
    for each in posting:
        emitted = sf.col("address") == sf.lit(each.address)
        is_message |= emitted & (sf.try_element_at("topics", sf.lit(1)) == sf.lit(each.topic))
    own = (
        logs.withColumn("emitter", name_of("address", contracts))
        .filter(sf.col("emitter").isNotNull())
        .withColumn("is_message", sf.coalesce(is_message, sf.lit(False)))
        .select(*tables.LOGS.names, "emitter", "is_message")
    )
    measure = partial(_measure_batches, contracts={each.name: each for each in posting})
    measured = own.mapInArrow(measure, from_arrow_schema(_MEASURED))
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


def _measure_batches(
    batches: Iterable[pa.RecordBatch], contracts: Mapping[str, PayloadContract]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [_measure_row(row, contracts) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=_MEASURED)


def _measure_row(
    row: Mapping[str, Any], contracts: Mapping[str, PayloadContract]
) -> dict[str, Any]:
    """Measure one log: its message's size, and its cost in each variant (VARIANT_COLUMNS)."""
    place = {name: row[name] for name in ("transaction_hash", "block_number", "emitter")}
    if not row["is_message"]:
        return place
    try:
        event = decode_payload_event(log_from_row(row), contracts[row["emitter"]])
    except MalformedLog as error:
        return place | {"message_contract": row["emitter"], "malformed": str(error)}
    measures = {"message_contract": row["emitter"], "payload_size": len(event.payload)}
    # The variants take 32 bytes; a call pads a shorter id to as many.
    identifier = event.identifier.ljust(HASH_LENGTH, b"\0")
    return place | measures | variant_gas(event._replace(identifier=identifier))
