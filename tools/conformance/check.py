"""Faults of the list, each as a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chainkit.errors import ConfigurationError
from tools.breaking import Break
from tools.conformance.demands import Chapter, Demand
from tools.conformance.reach import Reach


@dataclass(frozen=True, slots=True)
class Proof:
    """A mutation, and the tests that failed with it."""

    digest: str
    """The digest of the mutation."""
    failed: frozenset[str]
    """As ``path::name``."""


@dataclass(frozen=True, slots=True)
class Conformance:
    """The list, the markers on the tests and the proofs."""

    chapters: Sequence[Chapter]
    tests: Mapping[str, Sequence[str]]
    """By number, as ``path::name``."""
    proofs: Mapping[str, Proof]

    @property
    def demands(self) -> tuple[Demand, ...]:
        """All demands, in order."""
        return tuple(demand for chapter in self.chapters for demand in chapter.demands)

    @property
    def shown(self) -> tuple[Demand, ...]:
        """The demands that have tests."""
        return tuple(demand for demand in self.demands if self.tests.get(demand.number))

    def noticing(self, demand: Demand) -> frozenset[str]:
        """Return the tests, still marked, that failed with the mutation that is still named."""
        proof = self.proofs.get(demand.number)
        if proof is None or demand.mutation is None or proof.digest != demand.mutation.digest:
            return frozenset()
        return proof.failed.intersection(self.tests.get(demand.number, ()))


def faults(conformance: Conformance, root: Path) -> Iterator[str]:
    """Yield what is wrong with the list, in the order of the list."""
    counted = Counter(demand.number for demand in conformance.demands)
    for number, count in counted.items():
        if count > 1:
            yield f"{number}: expected one demand, got {count}"
    for number, tests in conformance.tests.items():
        if number not in counted:
            yield f"{tests[0]}: expected the number of a demand, got {number}"
    reach = Reach(root)
    for demand in conformance.demands:
        for fault in _faults_of(demand, conformance.tests.get(demand.number, ()), root, reach):
            yield f"{demand.number}: expected {fault}"


def _faults_of(demand: Demand, tests: Sequence[str], root: Path, reach: Reach) -> Iterator[str]:
    if demand.code and not tests:
        yield f"a test of {demand.code[0]}, got none"
    if tests and not demand.code:
        yield f"the code that meets it, got only {tests[0]}"
    for path in demand.code:
        if not (root / path).is_file():
            yield f"a file, got {path}"
        elif unused := reach.unused(path):
            yield f"code that a program uses, got {unused}"
    if demand.mutation is not None:
        yield from _faults_of_mutation(demand.mutation, root / demand.mutation.file, reach)


def _faults_of_mutation(mutation: Break, file: Path, reach: Reach) -> Iterator[str]:
    source = file.read_text(encoding="utf-8") if file.is_file() else ""
    try:
        mutation.applied_to(source)
    except ConfigurationError as error:
        yield f"a mutation that applies, got {error}"
        return
    line = source[: source.index(mutation.text)].count("\n") + 1
    if unused := reach.unused(mutation.file, line):
        yield f"a mutation of code that a program uses, got {unused}"
