"""Screening on Spark: units in parallel, each with a file of results where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from chainkit_jobs.reconcile.expected import EXPECTED
from chainkit_jobs.reconcile.screening.plan import Plan
from chainkit_jobs.reconcile.screening.results import (
    CHAIN,
    FORBIDDEN,
    QUARANTINED,
    SERVED,
    UnitSummary,
)
from chainkit_jobs.reconcile.screening.runner import FolderRunner, MemoryRunner, Results, Work
from chainkit_jobs.spark.cluster import is_local

_RAW_COLUMNS: Final = ("node_id", "row_index", "claimed_sequence_id", "envelope")
_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    CHAIN: EXPECTED.names,
    QUARANTINED: EXPECTED.names,
    FORBIDDEN: EXPECTED.names,
    SERVED: _RAW_COLUMNS,
}


@dataclass(frozen=True, slots=True)
class Found:
    """Rows for the comparison, and counts of all other rows.

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
        """Unit to its lowest and highest sequence; none for a unit without payloads."""
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
    """Yield the folder that keeps results: ``work``, or one that is removed at the end.

    None where workers are elsewhere, and no folder is named that they reach.
    """
    if work is not None or not is_local(context.master or ""):
        yield work
        return
    with TemporaryDirectory(prefix="chainkit-screening-") as scratch:
        yield Path(scratch)


class Screening:
    """Carries out a plan, and later requests for the same rows."""

    def __init__(
        self,
        context: SparkContext,
        plan: Plan,
        work: Path | None = None,
        report: Callable[[int], None] = lambda more: None,
    ) -> None:
        """Screen all of a plan.

        ``work`` is a folder that all workers reach: results of a former run there are not computed
        again. ``report`` gets the number of further finished units.
        """
        self._plan = plan
        self._runner = FolderRunner(context, work) if work else MemoryRunner(context)
        everything: list[Work] = [*plan.units, *plan.leftovers]
        summaries = self._runner.run(everything, report)
        self.unreadable = dict(plan.unreadable)
        """Node id to the reason why its rows cannot be read."""
        for summary in summaries:
            self.unreadable |= summary.unreadable
        self.found = self._found(summaries[: len(plan.units)], everything)
        """The result."""
        self.is_complete = not any(summary.possibly_misplaced for summary in summaries)
        """Whether no envelope may have a sequence that was found right in another unit."""
        self.rows = plan.rows
        """Node id to the number of all its rows."""

    def recall(self, sequences: Sequence[int]) -> Found:
        """Return what was right under some sequences as if it had been doubtful.

        A row may claim one sequence and contain another. Its claim brings the row to the wrong
        neighbours, where it is doubtful; at its true sequence, all rows may have been right. The
        counts are of the recalled rows alone.
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
