"""`docs/mutation.md`: the score, where it comes from, and why each survivor does not matter."""

from collections.abc import Callable

from tools.mutation.results import Result, Tally
from tools.mutation.trial import SURVIVED

HEADER = """# Mutation testing

Do the suites notice when a contract does something else? A mutant is a contract with one small
change: a comparison moved by one, a condition that always or never holds, a check, an assignment
or an event left out, a constant one off, two arguments swapped, `tx.origin` for `msg.sender`.
Each is compiled and given first to the forge suites, and if they pass, to the Ape suites. A
mutant is *killed* when a test fails, and *survives* when all pass. Those that do not compile do
not count.

`make mutation` tries all of them again and writes this page; fuzz and invariant runs are short
there, and begin from a fixed seed. Interfaces, test and study contracts are left out.
"""


def page(results: list[Result], reasons: dict[str, str]) -> str:
    """Return the page; `reasons` says by a mutant's name why its survival does not matter."""
    survivors = [result for result in results if result.outcome == SURVIVED]
    tally = Tally.of(results)
    killed = f"**{tally.killed} of {tally.killed + tally.survived} mutants killed: {tally.score}**"
    return "\n".join(
        [
            HEADER,
            killed + "\n",
            *_table("contract", results, lambda result: result.file),
            *_table("change", results, lambda result: result.operator),
            "## Survivors\n",
            *[_survivor(result, reasons) for result in survivors],
            *(["None."] if not survivors else []),
            "",
        ]
    )


def unexplained(results: list[Result], reasons: dict[str, str]) -> list[str]:
    """Return the names of the survivors for which nobody gave a reason."""
    survivors = [result.name for result in results if result.outcome == SURVIVED]
    return [name for name in survivors if name not in reasons]


def _table(title: str, results: list[Result], key: Callable[[Result], str]) -> list[str]:
    rows = [
        (name, Tally.of(result for result in results if key(result) == name))
        for name in sorted({key(result) for result in results})
    ]
    return [
        f"| {title} | killed | survived | not compiling | score |",
        "|---|---:|---:|---:|---:|",
        *[
            f"| {name} | {tally.killed} | {tally.survived} | {tally.invalid} | {tally.score} |"
            for name, tally in rows
        ],
        "",
    ]


def _survivor(result: Result, reasons: dict[str, str]) -> str:
    return f"- {result.name}  \n  {reasons.get(result.name, 'No reason is known.')}"
