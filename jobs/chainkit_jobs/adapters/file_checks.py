"""Whether the names of a source's files agree with each other, and the rows with the names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from itertools import groupby, pairwise
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from chainkit_jobs.adapters.adapter import KEYS, SourceFile, SourceTables
from chainkit_jobs.adapters.checks import Bounds
from chainkit_jobs.adapters.faults import Fault, FaultCode

DAY_END: Final = timedelta(minutes=15)
"""How long before midnight a day's last block may be, unless the day is known to end early."""


@dataclass(frozen=True, slots=True)
class Span:
    """The range of the rows of one file."""

    first_block: int
    last_block: int
    first_time: int | None
    """Timestamp in seconds of the first block; None for other tables than blocks."""
    last_time: int | None


def read_spans(source: SourceTables) -> dict[tuple[str, str], Span]:
    """Return the spans of all rows by table and file name: one Spark job, one row per file."""

    def of(table: str, frame: DataFrame) -> DataFrame:
        height = sf.col(KEYS[table][0])
        timestamp = sf.col("timestamp") if table == "blocks" else sf.lit(None).cast("long")
        return (
            frame.where(height.isNotNull())
            .groupBy(sf.lit(table).alias("table"), sf.col("source_file").alias("file"))
            .agg(sf.min(height), sf.max(height), sf.min(timestamp), sf.max(timestamp))
        )

    frames = [of(table, frame) for table, frame in source.items()]
    rows = reduce(DataFrame.union, frames).collect()
    return {(row[0], row[1]): Span(*row[2:]) for row in rows}


def file_faults(
    files: Sequence[SourceFile],
    spans: Mapping[tuple[str, str], Span],
    bounds: Bounds,
    chain_id: int,
    ends_where_asked: bool,
) -> list[Fault]:
    """Compare files with each other, and with their rows.

    ``ends_where_asked`` means that the last block was requested by number: then a day that ends
    early is no fault. Files without a block of the range are passed over.
    """
    faults = [*_foreign_files(files, chain_id)]
    by_table = groupby(sorted(files, key=lambda file: file.table), key=lambda file: file.table)
    for _, group in by_table:
        ranged = sorted(
            (file for file in group if _touches(file, bounds)),
            key=lambda file: (file.first_block, file.last_block, file.name),
        )
        faults += _borders(ranged, bounds)
        faults += (
            fault for file in ranged for fault in _rows(file, spans.get((file.table, file.name)))
        )
    faults += _days(files, spans, bounds, ends_where_asked)
    return list(_counted(faults))


def _touches(file: SourceFile, bounds: Bounds) -> bool:
    first, last = file.first_block, file.last_block
    return first is not None and last is not None and first <= bounds.last and last >= bounds.first


def _foreign_files(files: Iterable[SourceFile], chain_id: int) -> Iterator[Fault]:
    for file in files:
        if file.chain_id not in (None, chain_id):
            got = f"chain id {file.chain_id} in its name"
            yield _fault(FaultCode.WRONG_CHAIN, file, None, f"chain id {chain_id}", got)


def _borders(files: Sequence[SourceFile], bounds: Bounds) -> Iterator[Fault]:
    """Compare each file's range with the next one's, and the first and last with the bounds."""
    if not files:
        return
    highest = (files[0].first_block or 0) - 1
    if highest >= bounds.first:
        yield _hole(files[0], bounds.first, highest)
    highest = files[0].last_block or 0
    for before, file in pairwise(files):
        first, last = file.first_block or 0, file.last_block or 0
        expected = f"a range from block {highest + 1} on, after {before.name}"
        if first > highest + 1:
            yield _hole(file, highest + 1, first - 1)
        elif first == highest:
            yield _fault(FaultCode.RANGE_END, file, first, expected, f"one from {first}")
        elif first < highest:
            yield _fault(FaultCode.OVERLAPPING_FILES, file, first, expected, f"one from {first}")
        highest = max(highest, last)
    if highest < bounds.last:
        yield _hole(files[-1], highest + 1, bounds.last)


def _hole(file: SourceFile, first: int, last: int) -> Fault:
    expected = f"a file with blocks {first} to {last}"
    return _fault(FaultCode.MISSING_FILE, file, first, expected, "none")


def _rows(file: SourceFile, span: Span | None) -> Iterator[Fault]:
    """Compare a file's rows with the range in its name."""
    first, last = file.first_block or 0, file.last_block or 0
    expected = f"blocks {first} to {last} as its name says"
    if span is None:
        if file.table == "blocks":
            yield _fault(FaultCode.HALF_WRITTEN, file, first, expected, "no block")
        return
    got = f"blocks {span.first_block} to {span.last_block}"
    if span.first_block < first:
        yield _fault(FaultCode.RANGE_END, file, span.first_block, expected, got)
    elif span.last_block > last:
        yield _fault(FaultCode.RANGE_END, file, span.last_block, expected, got)
    elif file.table == "blocks" and span.last_block < last:
        is_off_by_one = span.last_block == last - 1
        code = FaultCode.RANGE_END if is_off_by_one else FaultCode.HALF_WRITTEN
        yield _fault(code, file, span.last_block + 1, expected, got)


def _days(
    files: Sequence[SourceFile],
    spans: Mapping[tuple[str, str], Span],
    bounds: Bounds,
    ends_where_asked: bool,
) -> Iterator[Fault]:
    """Compare days with the timestamps of their blocks."""
    dated = [
        (file.day, span, file)
        for file in files
        if file.day and file.table == "blocks" and (span := spans.get(("blocks", file.name)))
    ]
    for day, span, file in dated:
        times = [_time(span.first_time), _time(span.last_time)]
        strangers = [each for each in times if each and each.date() != day]
        is_in_range = span.first_block <= bounds.last and span.last_block >= bounds.first
        if strangers and is_in_range:
            got = f"a block of {strangers[0]:%Y-%m-%d %H:%M:%S}"
            yield _fault(FaultCode.RANGE_END, file, None, f"blocks of {day} (UTC)", got)
    if not dated or ends_where_asked:
        return
    last_day = max(day for day, _, _ in dated)
    ends = [
        (span.last_time or 0, span.last_block, file) for day, span, file in dated if day == last_day
    ]
    seconds, block, file = max(ends, key=lambda end: end[:2])
    end = _time(seconds)
    if end and end < _midnight_after(last_day) - DAY_END:
        expected = f"blocks up to the end of {last_day} (UTC), or a last block asked for by number"
        got = f"the last at {end:%H:%M:%S}"
        yield _fault(FaultCode.HALF_WRITTEN, file, block, expected, got)


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _midnight_after(day: date) -> datetime:
    return datetime.combine(day + timedelta(days=1), time(), UTC)


def _fault(code: FaultCode, file: SourceFile, block: int | None, expected: str, got: str) -> Fault:
    return Fault(code, file.table, 1, block, file.name, expected, got)


def _counted(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Make one of all that have code and table in common: the first, and how many."""

    def kind(fault: Fault) -> tuple[str, str]:
        return fault.code, fault.table

    for _, group in groupby(sorted(faults, key=kind), key=kind):
        same = sorted(group, key=lambda fault: (fault.block or 0, fault.file or ""))
        yield replace(same[0], count=len(same))
