"""The results of one task of the job, in few rows: however many blocks the task saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

import pyarrow as pa

from chainkit_jobs.proof.collector import Collector
from chainkit_jobs.proof.result import (
    MOST_PROBLEMS,
    Counts,
    Gap,
    GapCode,
    Problem,
    ProblemCode,
    Unproved,
)

TALLIES: Final = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        ("code", pa.string()),
        ("table", pa.string()),
        ("block_number", pa.int64()),
        ("last_block", pa.int64()),
        ("position", pa.int64()),
        ("column", pa.string()),
        ("expected", pa.string()),
        ("got", pa.string()),
        ("rows", pa.int64()),
    ]
)
"""One row per listed problem, per count of problems, gap, table and broken link."""


@dataclass(frozen=True, slots=True)
class Span:
    """How many rows, from which block to which."""

    rows: int
    first: int
    last: int


@dataclass(slots=True)
class Tally:
    """The sum over blocks, and over tasks."""

    problems: list[Problem] = field(default_factory=list)
    problem_counts: Counter[ProblemCode] = field(default_factory=Counter)
    gaps: dict[Gap, Span] = field(default_factory=dict)
    held: Counts = field(default_factory=Counts)
    proved: Counts = field(default_factory=Counts)
    """Without regard to what comes above: see ``highest_break``."""
    chain_ids: int = 0
    """Transactions that were signed for the manifest's chain, with their roots proved."""
    highest_break: int | None = None
    """The highest block whose header is not proved to be the parent of the next one."""

    def add_block(self, found: Collector, held: Counts) -> None:
        """Add one block; blocks come in their order."""
        self.held = self.held.plus(held)
        self.chain_ids += found.chain_ids
        self.problem_counts.update(problem.code for problem in found.problems)
        # Blocks come in order: the listed problems are the first ones.
        if len(self.problems) < MOST_PROBLEMS and found.problems:
            found.problems.sort(key=lambda problem: problem.sort_key)
            self.problems += found.problems[: MOST_PROBLEMS - len(self.problems)]
        for gap, rows in found.gaps.items():
            assert found.block_number is not None  # rows without one are not looked at further
            self.add_gap(gap, Span(rows, found.block_number, found.block_number))
        if found.is_broken:
            self.add_break(found.block_number)
        else:
            self.proved = self.proved.plus(found.proved)

    def add_gap(self, gap: Gap, more: Span) -> None:
        """Count more rows of a gap."""
        held = self.gaps.get(gap, Span(0, more.first, more.last))
        first, last = min(held.first, more.first), max(held.last, more.last)
        self.gaps[gap] = Span(held.rows + more.rows, first, last)

    def add_break(self, number: int | None) -> None:
        """Take note of a block that is not proved to be the parent of the next one."""
        if self.highest_break is None or (number is not None and number > self.highest_break):
            self.highest_break = number

    @property
    def unproved(self) -> list[Unproved]:
        """The gaps, in an order that does not depend on that of the blocks."""

        def key(gap: Gap) -> tuple[str, ...]:
            return (gap.code, gap.table, gap.column or "", gap.detail)

        return [
            Unproved(gap, self.gaps[gap].rows, self.gaps[gap].first, self.gaps[gap].last)
            for gap in sorted(self.gaps, key=key)
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return the tally as rows of TALLIES."""
        for problem in self.problems:
            values = {each.name: getattr(problem, each.name) for each in fields(Problem)}
            yield {"kind": "problem", **values}
        for code, count in self.problem_counts.items():
            yield {"kind": "problems", "code": code, "rows": count}
        for gap, span in self.gaps.items():
            yield {
                "kind": "gap",
                **{"code": gap.code, "table": gap.table, "column": gap.column, "got": gap.detail},
                "block_number": span.first,
                "last_block": span.last,
                "rows": span.rows,
            }
        for kind, counts in (("held", self.held), ("proved", self.proved)):
            for each in fields(Counts):
                yield {"kind": kind, "table": each.name, "rows": getattr(counts, each.name)}
        yield {"kind": "chain_ids", "rows": self.chain_ids}
        yield {"kind": "break", "block_number": self.highest_break}


def sum_of(rows: Iterable[Mapping[str, Any]]) -> Tally:
    """Add up the rows of all tasks; the result does not depend on how many there were."""
    total = Tally()
    for row in rows:
        match row["kind"]:
            case "problem":
                values = {each.name: row[each.name] for each in fields(Problem)}
                total.problems.append(Problem(**values | {"code": ProblemCode(row["code"])}))
            case "problems":
                total.problem_counts[ProblemCode(row["code"])] += row["rows"]
            case "gap":
                gap = Gap(GapCode(row["code"]), row["table"], row["column"], row["got"])
                total.add_gap(gap, Span(row["rows"], row["block_number"], row["last_block"]))
            case "held":
                total.held = total.held.plus(Counts(**{row["table"]: row["rows"]}))
            case "proved":
                total.proved = total.proved.plus(Counts(**{row["table"]: row["rows"]}))
            case "chain_ids":
                total.chain_ids += row["rows"]
            case "break":
                total.add_break(row["block_number"])
    total.problems = sorted(total.problems, key=lambda problem: problem.sort_key)[:MOST_PROBLEMS]
    return total
