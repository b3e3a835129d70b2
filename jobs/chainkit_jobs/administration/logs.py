"""The contracts' own events but payloads: a few logs among millions.

Who wrote them and what they are stands in two narrow columns. Only where one is found are the
others read, payloads among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit import tables
from chainkit.decode import IDENTITY_UPDATE_CREATED_TOPIC, MESSAGE_SENT_TOPIC
from chainkit_jobs.sources import Export, table_paths

_BATCH_ROWS = 10_000


def administration_logs(
    spark: SparkSession, chain: Export, addresses: Sequence[bytes]
) -> DataFrame:
    """Return the logs of some contracts that carry no payload (columns of chainkit.tables.LOGS)."""
    paths = tuple(str(path) for path in table_paths(chain, "logs", tables.LOGS))
    numbers = spark.range(0, len(paths), 1, len(paths))
    read = partial(_read_files, paths=paths, addresses=tuple(addresses))
    return numbers.mapInArrow(read, from_arrow_schema(tables.LOGS))


def _read_files(
    batches: Iterable[pa.RecordBatch], paths: tuple[str, ...], addresses: tuple[bytes, ...]
) -> Iterator[pa.RecordBatch]:
    pa.set_cpu_count(1)  # a task has a core to itself
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from _read_file(paths[number], addresses)


def _read_file(path: str, addresses: tuple[bytes, ...]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            narrow = file.iter_batches(
                _BATCH_ROWS, row_groups=[group], columns=["address", "topics"]
            )
            if not any(pc.any(_is_administration(rows, addresses)).as_py() for rows in narrow):
                continue
            names = tables.LOGS.names
            for rows in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=names):
                found = rows.filter(_is_administration(rows, addresses))
                if len(found):
                    yield found.select(names).cast(tables.LOGS)


def _is_administration(logs: pa.RecordBatch, addresses: tuple[bytes, ...]) -> pa.BooleanArray:
    topics = logs.column("topics")
    has_topic = pc.greater(pc.list_value_length(topics), 0)
    first = topics.values.take(pc.if_else(has_topic, topics.offsets[:-1], None))
    payloads = pa.array([MESSAGE_SENT_TOPIC, IDENTITY_UPDATE_CREATED_TOPIC], pa.binary())
    is_ours = pc.is_in(logs.column("address"), value_set=pa.array(addresses, pa.binary()))
    is_payload = pc.fill_null(pc.is_in(first, value_set=payloads), False)
    return pc.and_(pc.and_(is_ours, has_topic), pc.invert(is_payload))
