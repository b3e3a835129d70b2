"""Writes ``docs/conformance.md``, a table for each chapter, and reads again what was proved."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tools.conformance.check import Conformance, Proof
from tools.conformance.demands import Chapter, Demand

_HEAD = """# Conformance

Generated from `tools/conformance/demands.yaml` and the markers on the tests, by
`python -m tools.conformance`. This page lists what the public specifications demand, by number.
The summaries are ours; the specification decides.

- **shown**: the code meets the demand, and the tests named fail if the rule is broken.
- **proved**: this was tried. A mutation broke the rule in a copy of the project, and the tests in
  bold failed. This page is the only record of that: a comment has the mutation's digest. Where
  the mutation or the tests have changed, `make conformance` tries again.
- **not built yet**: nothing in the project meets the demand, or only a part of it.

A number from the specification's own section (`2.2.1-3`) counts the demands of that section. The
others are chapters: N nodes and payers, T retention, C clients, R epochs, intents and client state,
H message history, I identity updates.

Where a demand says that a payload is valid, its bytes are read alike by upb (protobuf of Python
7.36), Go 1.36, prost 0.14 and protobuf-es 2.17. Bytes that these readers differ on are refused on
publish, in quarantine from the chain, and void for clients (ADR 54).

"""


_PROVED: Final = re.compile(r"^\| (\S+) \| .* \| proved <!-- (\w+) --> \| (.*) \|$", re.MULTILINE)
_NOTICED: Final = re.compile(r"\*\*\[(\w+)\]\(\.\./([^)]+)\)\*\*")


def read_proofs(text: str) -> Mapping[str, Proof]:
    """Return the proofs in a page, by the numbers of the demands."""
    return {
        number: Proof(digest, frozenset(f"{path}::{name}" for name, path in _NOTICED.findall(rest)))
        for number, digest, rest in _PROVED.findall(text)
    }


def page(conformance: Conformance) -> str:
    """Return the whole page."""
    counted, shown = len(conformance.demands), len(conformance.shown)
    proved = sum(bool(conformance.noticing(demand)) for demand in conformance.shown)
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
    noticing = conformance.noticing(demand)
    status = "shown" if tests else "not built yet"
    if noticing and demand.mutation:
        status = f"proved <!-- {demand.mutation.digest} -->"
    code = "<br>".join(f"[{path.rsplit('/', 1)[-1]}](../{path})" for path in demand.code)
    summary = demand.summary.replace("|", "\\|")
    return f"| {demand.number} | {summary} | {status} | {code} | {_links(tests, noticing)} |"


def _links(tests: Sequence[str], noticing: Collection[str]) -> str:
    links = []
    for test in tests:
        path, name = test.split("::")
        link = f"[{name}](../{path})"
        links.append(f"**{link}**" if test in noticing else link)
    return "<br>".join(links)
