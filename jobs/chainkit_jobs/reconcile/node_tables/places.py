"""Each payload's place on the chain, and the values of a node's columns beside it.

Read from the logs by SQL alone: millions of rows are compared with these, none in Python.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit.protocol.chain_time import MAXIMUM_BLOCK_TIMESTAMP, chain_time
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, TopicKind
from chainkit_jobs.reconcile.expected import PayloadContracts
from chainkit_jobs.reconcile.node_tables.topics import served_topic

PLACE: Final = (
    "originator_id",
    "sequence_id",
    "block_number",
    "block_hash",
    "transaction_hash",
    "transaction_index",
    "log_index",
    "originator_ns",
    "topic",
)
"""Columns of chainkit.exports.tables.ENVELOPES beside the envelope."""

_WORD: Final = 32
_LENGTH: Final = 8
"""Bytes at the end of a word that hold any length or sequence id."""


def payload_places(logs: DataFrame, blocks: DataFrame, contracts: PayloadContracts) -> DataFrame:
    """Return the columns of PLACE for each payload event, ``posted_topic`` and ``payload_sha256``.

    The topic of a payload that is not in quarantine is the served topic, as in topics; the posted
    topic is a kind byte and the event's identifier. The hash is in hex.

    ``logs`` and ``blocks`` have the columns of exports.tables; the logs are ones that screening has
    decoded, so that their data has the one form that a contract emits: identifier, offset, sequence
    id, length, payload.
    """
    kinds = {
        contracts.group_messages: (MESSAGE_SENT_TOPIC, TopicKind.GROUP_MESSAGE),
        contracts.identity_updates: (IDENTITY_UPDATE_CREATED_TOPIC, TopicKind.IDENTITY_UPDATE),
    }
    kind: Column = sf.lit(None).cast("binary")
    for address, (topic, value) in kinds.items():
        is_event = (sf.col("address") == sf.lit(address)) & (sf.get("topics", sf.lit(0)) == topic)
        kind = sf.when(is_event, sf.lit(value.topic(b""))).otherwise(kind)
    times = blocks.select(
        sf.col("number").alias("block_number"),
        sf.col("hash").alias("block_hash"),
        "timestamp",
    )
    payload = sf.substring("data", sf.lit(4 * _WORD + 1), _number(3).cast("int"))
    posted_topic = sf.concat("kind", sf.substring("data", 1, _WORD))
    payloads = logs.withColumn("kind", kind).filter(sf.col("kind").isNotNull())
    return (
        payloads.select(
            sf.lit(BLOCKCHAIN_ORIGINATOR_ID).cast("long").alias("originator_id"),
            _number(2).alias("sequence_id"),
            "block_number",
            "block_hash",
            "transaction_hash",
            "transaction_index",
            "log_index",
            served_topic(posted_topic, payload).alias("topic"),
            posted_topic.alias("posted_topic"),
            sf.sha2(payload, 256).alias("payload_sha256"),
        )
        .join(times, ["block_number", "block_hash"], "inner")
        .withColumn("originator_ns", _originator_ns())
        .select(*PLACE, "posted_topic", "payload_sha256")
    )


def _originator_ns() -> Column:
    """Return the times of payloads; null for a block's timestamp that no envelope can hold."""
    timestamp, sequence_id = sf.col("timestamp"), sf.col("sequence_id")
    is_held = timestamp.between(0, MAXIMUM_BLOCK_TIMESTAMP)
    return sf.when(is_held, chain_time(timestamp, sequence_id).cast("long"))


def _number(word: int) -> Column:
    """Return the uint64 that a word of the data holds; a long would not hold every one."""
    start = word * _WORD + _WORD - _LENGTH + 1
    digits = sf.hex(sf.substring("data", start, _LENGTH))
    return sf.conv(digits, 16, 10).cast("decimal(20,0)")
