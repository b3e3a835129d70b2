"""Faults of the list, each as a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.conformance.demands import Chapter, Demand
from tools.conformance.proof import Proof


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

    def is_proved(self, demand: Demand) -> bool:
        """Tell whether a test that is still marked failed with the mutation that is still named."""
        proof = self.proofs.get(demand.number)
        if proof is None or proof.mutation != demand.mutation:
            return False
        return not set(proof.failed).isdisjoint(self.tests.get(demand.number, ()))


def faults(conformance: Conformance, root: Path) -> Iterator[str]:
    """Yield what is wrong with the list, in the order of the list."""
    counted = Counter(demand.number for demand in conformance.demands)
    for number, count in counted.items():
        if count > 1:
            yield f"{number}: expected one demand, got {count}"
    for number, tests in conformance.tests.items():
        if number not in counted:
            yield f"{tests[0]}: expected the number of a demand, got {number}"
    for demand in conformance.demands:
        yield from _faults_of(demand, conformance.tests.get(demand.number, ()), root)


def _faults_of(demand: Demand, tests: Sequence[str], root: Path) -> Iterator[str]:
    if demand.code and not tests:
        yield f"{demand.number}: expected a test of {demand.code[0]}, got none"
    if tests and not demand.code:
        yield f"{demand.number}: expected the code that meets it, got only {tests[0]}"
    for path in demand.code:
        if not (root / path).is_file():
            yield f"{demand.number}: expected a file, got {path}"
    if demand.mutation is None:
        return
    file = root / demand.mutation.file
    count = file.read_text(encoding="utf-8").count(demand.mutation.text) if file.is_file() else 0
    if count != 1:
        expected = f"the mutation's text once in {demand.mutation.file}"
        yield f"{demand.number}: expected {expected}, got {count}"
