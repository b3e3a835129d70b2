"""Gathers what the checks of one block find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from chainkit.errors import MalformedData, Unprovable
from chainkit.text.hexadecimal import hex0x
from chainkit_jobs.proof.result import Counts, Gap, GapCode, Problem, ProblemCode

Row: TypeAlias = Mapping[str, Any]
"""One row of a table of exports.tables, as pyarrow gives it, but with int for every integer:
arithmetic on Decimals rounds to 28 digits."""

_LONGEST_TEXT: Final = 600
"""Characters of a value that a problem repeats: a whole bloom filter fits."""

_HIGHEST_TYPE: Final = 0x7F
"""Highest type of a transaction (EIP-2718)."""


@dataclass(slots=True)
class Collector:
    """The findings in one block so far."""

    block_number: int | None
    problems: list[Problem] = field(default_factory=list)
    gaps: Counter[Gap] = field(default_factory=Counter)
    """Gap to rows."""
    proved: Counts = field(default_factory=Counts)
    """If the header is proved."""
    is_broken: bool = False
    """The header is not proved to be the parent that the next block names."""
    chain_ids: int = 0
    """Transactions of the proved root that were signed for a chain."""

    def problem(
        self,
        code: ProblemCode,
        table: str,
        position: int | None,
        column: str | None,
        expected: object,
        got: object,
    ) -> None:
        """Add a problem; values are written as people and scripts read them.

        An equal problem of several rows without a position is added once: nothing distinguishes
        them.
        """
        texts = (_text(expected), _text(got))
        found = Problem(code, self.block_number, table, position, column, *texts)
        if position is not None or found not in self.problems:
            self.problems.append(found)

    def require(
        self,
        code: ProblemCode,
        table: str,
        position: int | None,
        column: str | None,
        expected: object,
        got: object,
    ) -> bool:
        """Add a problem unless both values are equal; return whether they are."""
        if expected != got:
            self.problem(code, table, position, column, expected, got)
        return expected == got

    def malformed(self, table: str, position: int | None, error: MalformedData) -> None:
        """Add the problem of a row that cannot be encoded: a value does not fit its column."""
        column = column_of(error)
        code = ProblemCode.ROW_MALFORMED
        self.problem(code, table, position, column, error.expected, error.got)

    def gap(
        self, code: GapCode, table: str, column: str | None, detail: str = "", rows: int = 1
    ) -> None:
        """Count rows that cannot be proved, for a reason of which there are few."""
        self.gaps[Gap(code, table, column, detail)] += rows

    def untold(self, code: GapCode, table: str, row: Row, error: Unprovable) -> None:
        """Count a row that cannot be encoded because one of its values is missing."""
        detail = type_words(row["type"]) if "type" in row else ""
        self.gap(code, table, column_of(error), detail)


def column_of(error: MalformedData) -> str | None:
    """Return the column that an error of chainkit.ethereum names, if any."""
    name = error.place.removeprefix("column ")
    return name if name.isidentifier() else None


def type_words(type_: int) -> str:
    """Name a type of transactions; what cannot be one has the same name, so that names are few."""
    return f"type {type_:#x}" if 0 <= type_ <= _HIGHEST_TYPE else "no type of EIP-2718"


def _text(value: object) -> str:
    text = hex0x(value) if isinstance(value, bytes) else str(value)
    text = "null" if value is None else text
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
