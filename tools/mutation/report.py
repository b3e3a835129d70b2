"""`docs/mutation.md`: the score, its parts, and why each survivor does not matter."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tools.mutation.mutants import Mutant
from tools.mutation.trial import INVALID, KILLED, SURVIVED

Row = tuple[Mutant, str]
"""A mutant and its outcome."""

NO_REASON = "No reason is known."

HEADER = """# Mutation testing

Do the suites notice when a contract does something else? A mutant is a contract with one small
change: a comparison moved by one, a condition that always or never holds, a check, an assignment
or an event left out, a constant one off, two arguments swapped, `tx.origin` for `msg.sender`.
Each is compiled and given first to the forge suites, and if they pass, to the Ape suites. A
mutant is *killed* when a test fails, and *survives* when all pass. Those that do not compile do
not count.

`make mutation` tries all of them again and writes this page; fuzz and invariant runs are short
there, and begin from a fixed seed. Interfaces, test and study contracts are left out. The reason
below a survivor is written by hand, and kept when the page is written again.
"""


@dataclass(frozen=True)
class Tally:
    """How many mutants were killed, survived, and did not compile."""

    killed: int
    survived: int
    invalid: int

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Tally":
        """Count rows."""
        outcomes = [outcome for _, outcome in rows]
        return cls(*(outcomes.count(outcome) for outcome in (KILLED, SURVIVED, INVALID)))

    @property
    def score(self) -> str:
        """The share of killed mutants among those that compile, in percent."""
        counted = self.killed + self.survived
        return f"{100 * self.killed / counted:.1f} %" if counted else "none"


def read_survivors(text: str) -> dict[str, str]:
    """Return the survivors that a page lists, by name, each with its reason."""
    return dict(re.findall(r"^- (.+?)  \n  (.+)$", text, re.MULTILINE))


def page(rows: list[Row], reasons: Mapping[str, str]) -> str:
    """Return the page; `reasons` has by a mutant's name why its survival does not matter."""
    survivors = [mutant.name for mutant, outcome in rows if outcome == SURVIVED]
    tally = Tally.of(rows)
    killed = f"**{tally.killed} of {tally.killed + tally.survived} mutants killed: {tally.score}**"
    return "\n".join(
        [
            HEADER,
            killed + "\n",
            *_table("contract", rows, lambda mutant: mutant.file),
            *_table("change", rows, lambda mutant: mutant.operator),
            "## Survivors\n",
            *[f"- {name}  \n  {reasons.get(name, NO_REASON)}" for name in survivors],
            *(["None."] if not survivors else []),
            "",
        ]
    )


def unexplained(rows: list[Row], reasons: Mapping[str, str]) -> list[str]:
    """Return the names of the survivors for which nobody gave a reason."""
    survivors = [mutant.name for mutant, outcome in rows if outcome == SURVIVED]
    return [name for name in survivors if reasons.get(name, NO_REASON) == NO_REASON]


def _table(title: str, rows: list[Row], key: Callable[[Mutant], str]) -> list[str]:
    tallies = [
        (name, Tally.of(row for row in rows if key(row[0]) == name))
        for name in sorted({key(mutant) for mutant, _ in rows})
    ]
    return [
        f"| {title} | killed | survived | not compiling | score |",
        "|---|---:|---:|---:|---:|",
        *[
            f"| {name} | {tally.killed} | {tally.survived} | {tally.invalid} | {tally.score} |"
            for name, tally in tallies
        ],
        "",
    ]
