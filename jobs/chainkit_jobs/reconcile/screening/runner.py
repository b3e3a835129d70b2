"""Runs pieces of work on Spark, and keeps their results: in a folder, or with the workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

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
from chainkit_jobs.reconcile.screening.results import RESULTS, UnitSummary, read_summary
from chainkit_jobs.reconcile.screening.unit import Leftover, Unit, run_leftover, run_unit
from chainkit_jobs.spark.frames import session_in
from chainkit_jobs.spark_paths import spark_paths

FEW_BYTES: Final = 64 * 2**20
"""Bytes of results in files: up to here the driver is faster than a plan of Spark's."""

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
        """Return whether all are known to fit into the driver."""


def _no_report(more: int) -> None:
    """Ignore the number of finished units."""


class MemoryRunner:
    """Keeps results with the workers of a cluster, which may share no folder to write to."""

    def __init__(self, context: SparkContext) -> None:
        """Take the context to run in."""
        self._spark = session_in(context)
        self._frames: dict[str, DataFrame] = {}

    def run(
        self, work: Sequence[Work], report: Callable[[int], None] = _no_report
    ) -> list[UnitSummary]:
        """Do each piece of work; return the summaries in its order."""
        if not work:
            return []
        frame = _frame(self._spark, work).persist()
        self._frames |= dict.fromkeys((each.name for each in work), frame)
        rows = frame.filter(sf.col("summary").isNotNull()).select("summary").collect()
        report(len(work))
        return _in_order((row["summary"] for row in rows), work)

    def results(self, work: Sequence[Work]) -> Results:
        """Return the results of work that was done."""
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


class FolderRunner:
    """Keeps results in a folder, a file for each piece of work."""

    def __init__(self, context: SparkContext, directory: Path) -> None:
        """Take the context to run in, and a folder that all workers reach."""
        self._context = context
        self._directory = directory.resolve()

    def run(
        self, work: Sequence[Work], report: Callable[[int], None] = _no_report
    ) -> list[UnitSummary]:
        """Do each piece of work that has no file yet; return all summaries in its order."""
        with writing_to(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
        missing = self._without_file(work, report)
        if missing:
            self._do(missing, report)
        texts = (_summary_of(self._path(each)) for each in work)
        return _in_order(texts, work)

    def results(self, work: Sequence[Work]) -> Results:
        """Return the results of work that was done."""
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
        # Listed, not looked up one by one: a network's file system remembers missing files.
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
        return reader.parquet(*spark_paths(spark, self._paths))

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
    # A cluster may run the work twice at once. A file is as large as its rows are in memory: an
    # envelope's author knows what compresses.
    with (
        moved_into_place(path) as partial,
        pq.ParquetWriter(
            partial, RESULTS, compression="none", use_dictionary=["unit", "kind"]
        ) as writer,
    ):
        for batch in _run(work):
            writer.write_batch(batch)


def _run(work: Work) -> Iterator[pa.RecordBatch]:
    pa.set_cpu_count(1)  # a task has one core
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
