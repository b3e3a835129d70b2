"""The contracts' own events except payloads: a few logs among millions.

Two narrow columns hold the logs' emitters and topics: few values, which Parquet keeps in
dictionaries. Rows, payloads among them, are read only where both columns show that such an event
may be there: some milliseconds a file, without Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from chainkit.documents.files import unreadable
from chainkit.errors import StoreError
from chainkit.exports import tables
from chainkit.protocol.events import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit.types import Log
from chainkit_jobs.administration.replay import Administration, replay
from chainkit_jobs.sources import Export, log_from_row, table_paths

_BATCH_ROWS: Final = 10_000
_NARROW: Final = ("address", "topics.list.element")
_PAYLOAD_TOPICS: Final = frozenset((MESSAGE_SENT_TOPIC, IDENTITY_UPDATE_CREATED_TOPIC))


def read_administration(chain: Export, contracts: Mapping[str, bytes]) -> Administration:
    """Replay all events of some contracts but payloads, up to the export's last block.

    ``contracts`` is name to address. Persons cause these events, so that there are few. Raises
    StoreError where a file cannot be read.
    """
    paths = table_paths(chain, "logs", tables.LOGS)
    addresses = frozenset(contracts.values())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        logs = [
            log for part in pool.map(lambda path: _read(path, addresses), paths) for log in part
        ]
    logs = [log for log in logs if log.block_number <= chain.manifest.to_block]
    return replay(sorted(logs, key=lambda log: (log.block_number, log.log_index)), contracts)


def _read(path: Path, addresses: frozenset[bytes]) -> list[Log]:
    try:
        return [
            log_from_row(row) for rows in _read_file(path, addresses) for row in rows.to_pylist()
        ]
    except (OSError, pa.ArrowException) as error:
        raise unreadable(StoreError, f"export file {path}", error, "logs in Parquet") from error


def _read_file(path: Path, addresses: frozenset[bytes]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file, pq.ParquetFile(path, read_dictionary=_NARROW) as narrow:
        for group in range(file.num_row_groups):
            if not _may_hold(narrow.read_row_group(group, columns=_NARROW), addresses):
                continue
            for rows in file.iter_batches(_BATCH_ROWS, [group], tables.LOGS.names):
                yield rows.filter(_is_administration(rows, addresses))


def _may_hold(logs: pa.Table, addresses: frozenset[bytes]) -> bool:
    """Return whether any of our contracts, and any other topic than a payload's, is in a group."""
    emitters, topics = set(), set()
    for batch in logs.to_batches():
        emitters.update(batch.column("address").dictionary.to_pylist())
        topics.update(batch.column("topics").values.dictionary.to_pylist())
    return not emitters.isdisjoint(addresses) and not topics <= _PAYLOAD_TOPICS


def _is_administration(logs: pa.RecordBatch, addresses: frozenset[bytes]) -> pa.BooleanArray:
    topics = logs.column("topics")
    has_topic = pc.greater(pc.list_value_length(topics), 0)
    first = topics.values.take(pc.if_else(has_topic, topics.offsets[:-1], None))
    is_ours = pc.is_in(logs.column("address"), value_set=pa.array(addresses, pa.binary()))
    payloads = pa.array(_PAYLOAD_TOPICS, pa.binary())
    is_payload = pc.fill_null(pc.is_in(first, value_set=payloads), False)
    return pc.and_(pc.and_(is_ours, has_topic), pc.invert(is_payload))
