"""The doubtful rows of screening, compared in the driver where they are few, else in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from itertools import chain as chained
from itertools import islice
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.findings import FINDINGS
from chainkit_jobs.reconcile.finding_rows import COLUMNS
from chainkit_jobs.reconcile.key_comparison import KeyCounts, read_tally
from chainkit_jobs.reconcile.row_comparison import Comparison, Terms, compare_rows, gather, key_of
from chainkit_jobs.reconcile.screening.job import Found
from chainkit_jobs.reconcile.screening.results import CHAIN, SERVED
from chainkit_jobs.reconcile.served import decode_row, served_envelopes
from chainkit_jobs.spark.frames import kept, rows_of

_BATCH_ROWS: Final = 1_000
_KEY: Final = ("originator_id", "sequence_id")
_CHAIN_LANES: Final = (
    *_KEY,
    "digest",
    "transaction_hash",
    "block_number",
    "log_index",
    "quarantine_reason",
)
_SERVED_LANES: Final = (
    *_KEY,
    "digest",
    "transaction_hash",
    "node_id",
    "row_index",
    "signature_problem",
    "is_in_one_form",
    "unreadable",
)
_TALLY: Final = "tally"
_JUDGED: Final = pa.schema(
    [
        *(FINDINGS.field(name).with_nullable(True) for name in COLUMNS if name != "envelope"),
        ("row_index", pa.int64()),
        (_TALLY, pa.string()),
    ]
)
"""Findings (columns of finding_rows); a task's last row contains only its KeyCounts."""


class DoubtfulRows(Protocol):
    """The rows that screening doubted."""

    def misplaced_sequences(self, lowest: int, highest: int) -> list[int]:
        """Return the sequences of envelopes in rows that claim another sequence.

        The rows were doubtful under their claim only: another unit may have found the payload
        right. An envelope that cannot be read counts under its claim.
        """

    def compare(self, again: Found, terms: Terms) -> Comparison:
        """Compare the rows, and the recalled rows, whose signatures screening found right."""


class InDriver:
    """Compares in the driver."""

    def __init__(self, found: Found, keys: Mapping[int, bytes]) -> None:
        """Take what screening found, and each node's key (no key: signatures are not checked)."""
        self._expected = found.rows(CHAIN)
        self._raw = found.rows(SERVED)
        self._served = [decode_row(row, keys.get(row["node_id"])) for row in self._raw]

    def misplaced_sequences(self, lowest: int, highest: int) -> list[int]:
        """See DoubtfulRows."""
        held = {row["sequence_id"] for row in self._expected}
        ours = (row for row in self._served if row["originator_id"] == BLOCKCHAIN_ORIGINATOR_ID)
        actual = {row["sequence_id"] for row in ours if lowest <= row["sequence_id"] <= highest}
        return [int(sequence_id) for sequence_id in actual - held]

    def compare(self, again: Found, terms: Terms) -> Comparison:
        """See DoubtfulRows."""
        raw = again.rows(SERVED)
        rows = [*self._expected, *again.rows(CHAIN), *self._served]
        rows += (decode_row(row, None) for row in raw)
        rows.sort(key=lambda row: (*key_of(row), row.get("node_id", -1)))
        tally = KeyCounts()
        found = list(compare_rows(rows, terms, tally))
        envelopes = {
            (row["node_id"], row["row_index"]): row["envelope"] for row in [*self._raw, *raw]
        }
        for row in found:
            row["envelope"] = envelopes.get((row["node_id"], row["row_index"]))
        return gather([tally], found, terms)


class InSpark:
    """Compares in Spark."""

    def __init__(self, found: Found, keys: Mapping[int, bytes]) -> None:
        """Take what ``InDriver`` takes."""
        self._found = found
        self._keys = keys

    def misplaced_sequences(self, lowest: int, highest: int) -> list[int]:
        """See DoubtfulRows."""
        is_held = sf.col("sequence_id").between(Decimal(lowest), Decimal(highest))
        is_ours = sf.col("originator_id") == BLOCKCHAIN_ORIGINATOR_ID
        # Decoded once more with their signatures, which decide nothing here.
        served = served_envelopes(self._found.frame(SERVED), {})
        actual = served.filter(is_ours & is_held).select("sequence_id").distinct()
        held = self._found.frame(CHAIN).select("sequence_id")
        rows = actual.join(held, "sequence_id", "left_anti").toArrow()
        return [int(sequence_id) for sequence_id in rows["sequence_id"].to_pylist()]

    def compare(self, again: Found, terms: Terms) -> Comparison:
        """See DoubtfulRows."""
        doubtful, right = self._found.frame(SERVED), again.frame(SERVED)
        expected = self._found.frame(CHAIN).unionByName(again.frame(CHAIN))
        served = served_envelopes(doubtful, self._keys).unionByName(served_envelopes(right, {}))
        return compare_by_spark(expected, doubtful.unionByName(right), served, terms)


def compare_by_spark(
    expected: DataFrame, raw: DataFrame, served: DataFrame, terms: Terms
) -> Comparison:
    """Compare by one shuffle; rows for evidence are read again, and are few.

    The shuffle moves columns of a fixed width only: digests, places and flags.
    """
    lanes = expected.select(*_CHAIN_LANES).unionByName(
        served.select(*_SERVED_LANES), allowMissingColumns=True
    )
    by_key = lanes.repartition(*_KEY).sortWithinPartitions(
        *_KEY, sf.col("node_id").asc_nulls_first()
    )
    schema = from_arrow_schema(_JUDGED)
    with kept(by_key.mapInArrow(partial(_compare_batches, terms=terms), schema)) as comparison:
        tallies = comparison.filter(sf.col(_TALLY).isNotNull()).select(_TALLY).collect()
        found = comparison.filter(sf.col(_TALLY).isNull()).join(
            raw.select("node_id", "row_index", "envelope"), ["node_id", "row_index"], "left"
        )
        rows = rows_of(found.select(*COLUMNS))
    return gather([read_tally(row[_TALLY]) for row in tallies], rows, terms)


def _compare_batches(batches: Iterable[pa.RecordBatch], terms: Terms) -> Iterator[pa.RecordBatch]:
    rows = chained.from_iterable(batch.to_pylist() for batch in batches)
    tally = KeyCounts()
    found = compare_rows(rows, terms, tally)
    while some := list(islice(found, _BATCH_ROWS)):
        yield pa.RecordBatch.from_pylist(some, schema=_JUDGED)
    yield pa.RecordBatch.from_pylist([{_TALLY: tally.text()}], schema=_JUDGED)


def misplaced_rows(found: Found) -> DataFrame:
    """Return the rows that claim another sequence than their envelopes have.

    Columns: ``node_id`` and ``claimed_sequence_id``.
    """
    raw = found.frame(SERVED)
    actual = served_envelopes(raw, {})
    rows = raw.select("node_id", "row_index", "claimed_sequence_id").join(
        actual.select("node_id", "row_index", "sequence_id"), ["node_id", "row_index"]
    )
    return rows.filter(sf.col("claimed_sequence_id") != sf.col("sequence_id")).select(
        "node_id", "claimed_sequence_id"
    )
