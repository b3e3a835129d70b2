"""Writes ``docs/conformance.md``: a table for each chapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.conformance.check import Conformance
from tools.conformance.demands import Chapter, Demand

_HEAD = """# Conformance

Generated from `tools/conformance/demands.yaml` and the markers on the tests, by
`python -m tools.conformance`. This page lists what the public specifications demand, by number.
The summaries are ours; the specification decides.

- **shown**: the code meets the demand, and the tests named fail if the rule is broken.
- **proved**: this was tried. A mutation broke the rule in a copy of the project, and a test that
  is named failed (`tools/conformance/proved.json`). Try again with
  `python -m tools.conformance prove`.
- **not built yet**: nothing in the project meets the demand, or only a part of it.

A number from the specification's own section (`2.2.1-3`) counts the demands of that section. The
others are chapters: N nodes and payers, T retention, C clients, R epochs, intents and client state,
H message history, I identity updates.

"""


def page(conformance: Conformance) -> str:
    """Return the whole page."""
    counted, shown = len(conformance.demands), len(conformance.shown)
    proved = sum(map(conformance.is_proved, conformance.shown))
    counts = f"**{counted} demands: {shown} shown ({proved} of them proved), "
    return "\n".join(
        (
            f"{_HEAD}{counts}{counted - shown} not built yet.**\n",
            *(_chapter(chapter, conformance) for chapter in conformance.chapters),
        )
    )


def _chapter(chapter: Chapter, conformance: Conformance) -> str:
    rows = "\n".join(_row(demand, conformance) for demand in chapter.demands)
    return (
        f"## {chapter.title}\n\n{chapter.section}\n\n"
        f"| # | demand | status | code | tests |\n|---|---|---|---|---|\n{rows}\n"
    )


def _row(demand: Demand, conformance: Conformance) -> str:
    tests = conformance.tests.get(demand.number, ())
    if not tests:
        status = "not built yet"
    else:
        status = "proved" if conformance.is_proved(demand) else "shown"
    code = "<br>".join(f"[{path.rsplit('/', 1)[-1]}](../{path})" for path in demand.code)
    cells = (demand.number, demand.summary.replace("|", "\\|"), status, code, _tests(tests))
    return f"| {' | '.join(cells)} |"


def _tests(tests: Sequence[str]) -> str:
    return "<br>".join(_links(tests))


def _links(tests: Sequence[str]) -> Iterator[str]:
    for test in tests:
        path, name = test.split("::")
        yield f"[{name}](../{path})"
