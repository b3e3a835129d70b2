"""Screening on Spark: units in parallel, each with a file of results where they are kept."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.documents.files import moved_into_place
from chainkit.exports import writing_to
from chainkit_jobs.reconcile.expected import EXPECTED
from chainkit_jobs.reconcile.screening.plan import Plan
from chainkit_jobs.reconcile.screening.results import (
    CHAIN,
    FORBIDDEN,
    QUARANTINED,
    RESULTS,
    SERVED,
    UnitSummary,
    read_summary,
)
from chainkit_jobs.reconcile.screening.unit import Leftover, Unit, run_leftover, run_unit
from chainkit_jobs.spark.cluster import is_local
from chainkit_jobs.spark.frames import session_in

FEW_BYTES: Final = 64 * 2**20
"""Bytes of results in files: up to here the driver is faster than a plan of Spark's."""

_RAW_COLUMNS: Final = ("node_id", "row_index", "claimed_sequence_id", "envelope")
_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    CHAIN: EXPECTED.names,
    QUARANTINED: EXPECTED.names,
    FORBIDDEN: EXPECTED.names,
    SERVED: _RAW_COLUMNS,
}

_LOOK_SECONDS: Final = 0.25

Work = Unit | Leftover

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


class Results(Protocol):
    """The results of pieces of work (rows of results.RESULTS), in memory or in files."""

    def frame(self) -> DataFrame:
        """Return all rows, for Spark."""

    def table(self, kind: str) -> pa.Table:
        """Return the rows of a kind, few of them, in the driver."""

    def are_few(self) -> bool:
        """Tell whether all are known to fit into the driver."""


@dataclass(frozen=True, slots=True)
class Found:
    """Rows that the comparison has to look at, and counts of others.

    Rows are of a kind: CHAIN, doubtful payloads of the chain; QUARANTINED, its payloads that must
    not be served, where the plan asks for them; FORBIDDEN, those that the contracts' own events
    deny (columns of expected.EXPECTED); SERVED, the nodes' rows under doubtful payloads, and under
    sequences that the chain does not hold (columns of sources.read_raw_envelopes).
    """

    units: tuple[UnitSummary, ...]
    """In the chain's order."""
    results: Results
    unreadable: tuple[int, ...]
    """Ids of the nodes whose rows cannot be read."""

    def frame(self, kind: str) -> DataFrame:
        """Return the rows of a kind, for Spark."""
        rows = self.results.frame().filter(sf.col("kind") == kind)
        if kind == SERVED:
            rows = rows.filter(~sf.col("node_id").isin(list(self.unreadable)))
        return rows.select(*_COLUMNS[kind])

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """Return the rows of a kind, few of them, in the driver."""
        table = self.results.table(kind)
        if kind == SERVED:
            is_unreadable = pc.is_in(table["node_id"], pa.array(self.unreadable, pa.int64()))
            table = table.filter(pc.invert(is_unreadable))
        found: list[dict[str, Any]] = table.select(_COLUMNS[kind]).to_pylist()
        return found

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


@contextmanager
def results_folder(context: SparkContext, work: Path | None) -> Iterator[Path | None]:
    """Give the folder that keeps results: ``work``, or one that goes when it is left.

    None where workers are elsewhere, and no folder is named that they reach.
    """
    if work is not None or not is_local(context.master or ""):
        yield work
        return
    with TemporaryDirectory(prefix="chainkit-screening-") as scratch:
        yield Path(scratch)


class Screening:
    """Does what a plan asks for, and what is asked of it afterwards."""

    def __init__(
        self,
        context: SparkContext,
        plan: Plan,
        work: Path | None = None,
        report: Callable[[int], None] = lambda more: None,
    ) -> None:
        """Screen all of a plan.

        ``work`` is a folder that all workers reach: what a former run left there is not done
        again. ``report`` is told how many more units are done.
        """
        self._plan = plan
        self._runner = _Folder(context, work) if work else _Memory(context)
        everything: list[Work] = [*plan.units, *plan.leftovers]
        summaries = self._runner.run(everything, report)
        self.unreadable: dict[int, str] = {}
        """Node id to why its rows cannot be read."""
        for summary in summaries:
            self.unreadable |= summary.unreadable
        self.found = self._found(summaries[: len(plan.units)], everything)
        """Its result."""
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
        return self._found(self._runner.run(work), work)

    def _found(self, units: Sequence[UnitSummary], work: Sequence[Work]) -> Found:
        return Found(tuple(units), self._runner.results(work), tuple(self.unreadable))


def _ranges(units: Iterable[UnitSummary]) -> dict[str, tuple[int, int]]:
    return {
        unit.unit: (unit.lowest_sequence, unit.highest_sequence)
        for unit in units
        if unit.lowest_sequence is not None and unit.highest_sequence is not None
    }


def _no_report(more: int) -> None:
    """Tell nobody."""


class _Memory:
    """Keeps results with the workers of a cluster, which may share no folder to write to."""

    def __init__(self, context: SparkContext) -> None:
        self._spark = session_in(context)
        self._frames: dict[str, DataFrame] = {}

    def run(
        self, work: Sequence[Work], report: Callable[[int], None] = _no_report
    ) -> list[UnitSummary]:
        if not work:
            return []
        frame = _frame(self._spark, work).persist()
        self._frames |= dict.fromkeys((each.name for each in work), frame)
        rows = frame.filter(sf.col("summary").isNotNull()).select("summary").collect()
        report(len(work))
        return _in_order((row["summary"] for row in rows), work)

    def results(self, work: Sequence[Work]) -> Results:
        frames = {id(frame): frame for each in work for frame in [self._frames[each.name]]}
        return _Frames(self._spark, tuple(frames.values()))


@dataclass(frozen=True, slots=True)
class _Frames:
    spark: SparkSession
    frames: tuple[DataFrame, ...]

    def frame(self) -> DataFrame:
        found = self.spark.createDataFrame([], from_arrow_schema(RESULTS))
        for frame in self.frames:
            found = found.unionByName(frame)
        return found

    def table(self, kind: str) -> pa.Table:
        return self.frame().filter(sf.col("kind") == kind).toArrow()

    def are_few(self) -> bool:
        return False


class _Folder:
    """Keeps results in a folder, a file for each piece of work."""

    def __init__(self, context: SparkContext, directory: Path) -> None:
        self._context = context
        self._directory = directory.resolve()

    def run(
        self, work: Sequence[Work], report: Callable[[int], None] = _no_report
    ) -> list[UnitSummary]:
        with writing_to(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
        missing = self._without_file(work, report)
        if missing:
            self._do(missing, report)
        texts = (_summary_of(self._path(each)) for each in work)
        return _in_order(texts, work)

    def results(self, work: Sequence[Work]) -> Results:
        return _Files(self._context, [self._path(each) for each in work])

    def _do(self, work: Sequence[Work], report: Callable[[int], None]) -> None:
        """Do each piece of work in a task, and report as their files come."""
        tasks = self._context.parallelize([(each, self._path(each)) for each in work], len(work))
        left = work
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(tasks.foreach, _write)
            try:
                while not wait([job], _LOOK_SECONDS).done:
                    left = self._without_file(left, report)
            except BaseException:
                # The thread waits for Spark, and whoever leaves here waits for the thread.
                with suppress(Py4JError, OSError):
                    self._context.cancelAllJobs()
                raise
            job.result()
        report(len(left))

    def _without_file(self, work: Sequence[Work], report: Callable[[int], None]) -> Sequence[Work]:
        """Return what is not done, and report what is."""
        # Not asked for one by one: a network's file system remembers what it did not find.
        names = {path.name for path in self._directory.iterdir()}
        left = [each for each in work if self._path(each).name not in names]
        report(len(work) - len(left))
        return left

    def _path(self, work: Work) -> Path:
        return self._directory / f"{work.name}.parquet"


class _Files:
    def __init__(self, context: SparkContext, paths: Sequence[Path]) -> None:
        self._context = context
        self._paths = paths
        self._table: pa.Table | None = None

    def frame(self) -> DataFrame:
        spark = session_in(self._context)
        if not self._paths:
            return spark.createDataFrame([], from_arrow_schema(RESULTS))
        reader = spark.read.schema(from_arrow_schema(RESULTS))
        return reader.parquet(*map(str, self._paths))

    def table(self, kind: str) -> pa.Table:
        batches = (batch for path in self._paths for batch in _batches(path))
        if not self.are_few():
            return pa.Table.from_batches((_of_kind(batch, kind) for batch in batches), RESULTS)
        if self._table is None:
            self._table = pa.Table.from_batches(batches, RESULTS)
        return _of_kind(self._table, kind)

    def are_few(self) -> bool:
        return sum(path.stat().st_size for path in self._paths) <= FEW_BYTES


def _frame(spark: SparkSession, work: Sequence[Work]) -> DataFrame:
    """Return the results of some pieces of work, a task for each."""
    numbers = spark.range(0, len(work), 1, len(work))
    run = partial(_run_numbers, work=tuple(pickle.dumps(each) for each in work))
    return numbers.mapInArrow(run, from_arrow_schema(RESULTS))


def _run_numbers(
    batches: Iterable[pa.RecordBatch], work: tuple[bytes, ...]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from _run(pickle.loads(work[number]))


def _write(task: tuple[Work, Path]) -> None:
    """Do a piece of work, and write its results to a file once all are there."""
    work, path = task
    # A cluster may do it twice at once.
    # A file is as large as its rows are in memory: an envelope's author knows what compresses.
    with (
        moved_into_place(path) as partial,
        pq.ParquetWriter(
            partial, RESULTS, compression="none", use_dictionary=["unit", "kind"]
        ) as writer,
    ):
        for batch in _run(work):
            writer.write_batch(batch)


def _run(work: Work) -> Iterator[pa.RecordBatch]:
    pa.set_cpu_count(1)  # a task has a core to itself
    return run_unit(work) if isinstance(work, Unit) else run_leftover(work)


def _summary_of(path: Path) -> str:
    with pq.ParquetFile(path) as file:
        [text] = file.read(["summary"]).column(0).drop_null().to_pylist()
    return str(text)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches()


def _of_kind(rows: _Rows, kind: str) -> _Rows:
    return rows.filter(pc.equal(rows.column("kind"), kind))


def _in_order(texts: Iterable[str], work: Sequence[Work]) -> list[UnitSummary]:
    found = {summary.unit: summary for text in texts for summary in [read_summary(text)]}
    return [found[each.name] for each in work]
