"""Screening on Spark: units in parallel; in waves, where their results are kept."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit_jobs.expected import EXPECTED
from chainkit_jobs.screening.plan import Plan
from chainkit_jobs.screening.results import (
    CHAIN,
    QUARANTINED,
    RESULTS,
    SERVED,
    UnitSummary,
    read_summary,
)
from chainkit_jobs.screening.unit import Leftover, Unit, run_leftover, run_unit

_WAVE: Final = 4
"""Units per core in a wave: what a killed run does again, at most."""

Work = Unit | Leftover


@dataclass(frozen=True, slots=True)
class Found:
    """Rows that the comparison has to look at, and counts of others."""

    units: tuple[UnitSummary, ...]
    """In the chain's order."""
    expected: DataFrame
    """Doubtful payloads of the chain (columns of expected.EXPECTED)."""
    raw: DataFrame
    """The nodes' rows under them, and under sequences that the chain does not hold (columns of
    sources.read_raw_envelopes)."""
    quarantined: DataFrame
    """Payloads of the chain that must not be served (columns of expected.EXPECTED), where the plan
    asks for them."""

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Unit to its lowest and highest sequence; none for one without payloads."""
        return _ranges(self.units)

    @property
    def is_consecutive(self) -> bool:
        """Whether all payloads follow each other by one, as the contract counts."""
        held = [unit for unit in self.units if unit.payloads]
        return all(unit.is_consecutive for unit in held) and all(
            unit.is_followed_by(after) for unit, after in pairwise(held)
        )


class Screening:
    """Does what a plan asks for, and what is asked of it afterwards."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        work: Path | None = None,
        report: Callable[[int], None] = lambda more: None,
    ) -> None:
        """Screen all of a plan.

        ``work`` is a folder that all workers reach: what a former run left there is not done
        again. ``report`` is told how many more units are done.
        """
        self._plan = plan
        self._runner = _Folder(spark, work) if work else _Memory(spark)
        everything: list[Work] = [*plan.units, *plan.leftovers]
        summaries = self._runner.run(everything, report)
        self.unreadable: dict[int, str] = {}
        """Node id to why its rows cannot be read."""
        for summary in summaries:
            self.unreadable |= summary.unreadable
        self.found = self._found(summaries[: len(plan.units)], self._runner.results(everything))
        """What came of it."""
        self.is_clean = not any(summary.carried for summary in summaries)
        """Whether nothing has to be looked at again."""
        self.is_complete = not any(summary.elsewhere for summary in summaries)
        """Whether no row may bear a sequence of which all was found right."""
        self.rows = plan.rows
        """Node id to its rows in all."""

    def recall(self, sequences: Sequence[int]) -> Found:
        """Return what was right under some sequences as if it had been doubtful.

        A row may claim one sequence and bear another: its claim brings it to the wrong neighbours,
        where it is doubtful, and where it belongs all may have been right. The counts are of what
        is recalled alone.
        """
        work = self._plan.recall(sequences, self.found.ranges)
        units = self._runner.run(work)
        return self._found(units, self._runner.results(work))

    def _found(self, units: Sequence[UnitSummary], results: DataFrame) -> Found:
        is_read = ~sf.col("node_id").isin(list(self.unreadable))
        raw = results.filter((sf.col("kind") == SERVED) & is_read)
        return Found(
            units=tuple(units),
            expected=results.filter(sf.col("kind") == CHAIN).select(*EXPECTED.names),
            quarantined=results.filter(sf.col("kind") == QUARANTINED).select(*EXPECTED.names),
            raw=raw.select("node_id", "row_index", "claimed_sequence_id", "envelope"),
        )


def _ranges(units: Iterable[UnitSummary]) -> dict[str, tuple[int, int]]:
    return {
        unit.unit: (unit.lowest_sequence, unit.highest_sequence)
        for unit in units
        if unit.lowest_sequence is not None and unit.highest_sequence is not None
    }


def _no_report(more: int) -> None:
    """Tell nobody."""


class _Memory:
    """Keeps results with the session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._frames: dict[str, DataFrame] = {}

    def run(
        self, work: Sequence[Work], report: Callable[[int], None] = _no_report
    ) -> list[UnitSummary]:
        if not work:
            return []
        frame = _frame(self._spark, work).persist()
        self._frames |= dict.fromkeys((each.name for each in work), frame)
        found = _summaries(frame, work)
        report(len(work))
        return found

    def results(self, work: Sequence[Work | UnitSummary]) -> DataFrame:
        frames = {id(frame): frame for each in work for frame in [self._frames[_name(each)]]}
        return _union(self._spark, list(frames.values()))


class _Folder:
    """Keeps results in a folder, a file for each piece of work."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory.resolve()

    def run(
        self, work: Sequence[Work], report: Callable[[int], None] = _no_report
    ) -> list[UnitSummary]:
        if not work:
            return []
        # Spark moves a task's file here once all of it is written.
        done = {path.parent.name for path in self._directory.glob("unit=*/*.parquet")}
        missing = [each for each in work if f"unit={each.name}" not in done]
        report(len(work) - len(missing))
        size = _WAVE * self._spark.sparkContext.defaultParallelism
        for wave in _waves(missing, size):
            writer = _frame(self._spark, wave).write.mode("append").partitionBy("unit")
            writer.parquet(str(self._directory))
            report(len(wave))
        return _summaries(self.results(work), work)

    def results(self, work: Sequence[Work | UnitSummary]) -> DataFrame:
        if not work:
            return _union(self._spark, [])
        paths = [str(self._directory / f"unit={_name(each)}") for each in work]
        reader = self._spark.read.schema(from_arrow_schema(RESULTS))
        return reader.option("basePath", str(self._directory)).parquet(*paths)


def _name(work: Work | UnitSummary) -> str:
    return work.unit if isinstance(work, UnitSummary) else work.name


def _waves(work: Sequence[Work], size: int) -> Iterator[list[Work]]:
    rest = iter(work)
    while wave := list(islice(rest, size)):
        yield wave


def _frame(spark: SparkSession, work: Sequence[Work]) -> DataFrame:
    """Return the results of some pieces of work, a task for each."""
    numbers = spark.range(0, len(work), 1, len(work))
    run = partial(_run, work=tuple(pickle.dumps(each) for each in work))
    return numbers.mapInArrow(run, from_arrow_schema(RESULTS))


def _run(batches: Iterable[pa.RecordBatch], work: tuple[bytes, ...]) -> Iterator[pa.RecordBatch]:
    pa.set_cpu_count(1)  # a task has a core to itself
    for batch in batches:
        for number in batch.column("id").to_pylist():
            own = pickle.loads(work[number])
            yield from run_unit(own) if isinstance(own, Unit) else run_leftover(own)


def _summaries(frame: DataFrame, work: Sequence[Work]) -> list[UnitSummary]:
    rows = frame.filter(sf.col("summary").isNotNull()).select("summary").collect()
    found = {summary.unit: summary for row in rows for summary in [read_summary(row["summary"])]}
    return [found[each.name] for each in work]


def _union(spark: SparkSession, frames: Sequence[DataFrame]) -> DataFrame:
    found = spark.createDataFrame([], from_arrow_schema(RESULTS))
    for frame in frames:
        found = found.unionByName(frame)
    return found
