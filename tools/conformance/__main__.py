"""Writes docs/conformance.md, checks it, and proves it: `python -m tools.conformance --help`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import click

from chainkit.errors import ChainkitError
from tools.breaking import ROOT, Break, Copies, Copy
from tools.conformance.check import Conformance, Proof, faults
from tools.conformance.demands import Demand, read_demands
from tools.conformance.markers import find_markers
from tools.conformance.page import page, read_proofs
from tools.conformance.proving import noticing

PAGE: Final = ROOT / "docs" / "conformance.md"

Trial = tuple[Break | None, tuple[str, ...]]
"""A mutation, and the marked tests that should notice it."""


def current() -> Conformance:
    """Return the list, markers and proofs of this project. Raises ConfigurationError."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return Conformance(read_demands(), find_markers(ROOT), read_proofs(text))


@click.group(invoke_without_command=True)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with 1 if the page is not current."
)
@click.pass_context
def main(context: click.Context, check: bool) -> None:
    """Write docs/conformance.md from the list of demands and the markers on the tests.

    Exits with 1 where the list is wrong: a demand with code and without a test, a marker of an
    unknown number, a mutation whose text does not occur once, code that no program uses.

    Example: python -m tools.conformance --check
    """
    if context.invoked_subcommand is not None:
        return
    conformance = current()
    found = list(faults(conformance, ROOT))
    text = page(conformance)
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        command = "run `python -m tools.conformance`"
        found.append(f"docs/conformance.md: expected the current list, got another: {command}")
    for fault in found:
        click.echo(fault)
    sys.exit(1 if found else 0)


@main.command()
@click.argument("numbers", nargs=-1)
@click.option("--unproved", is_flag=True, help="Try only what is not proved yet.")
def prove(numbers: tuple[str, ...], unproved: bool) -> None:
    """Break each rule that is shown, in a copy of the project, and see whether its tests notice.

    Prints what it runs. Writes the page after each rule; exits with 1 if one can be broken unseen.

    Example: python -m tools.conformance prove N4 2.2.1-1
    """
    conformance = current()
    chosen = [
        demand
        for demand in conformance.shown
        if not (unproved and conformance.noticing(demand))
        and (not numbers or demand.number in numbers)
    ]
    # XIP-49 demands the same of two contracts: one mutation and one test can show both.
    trials: dict[Trial, list[Demand]] = {}
    for demand in chosen:
        trial = demand.mutation, tuple(conformance.tests[demand.number])
        trials.setdefault(trial, []).append(demand)
    proofs, unseen = dict(conformance.proofs), 0
    with Copies() as copies:
        outcomes = copies.each(trials.items(), _outcome)
        for demands, (proof, words) in zip(trials.values(), outcomes, strict=True):
            for demand in demands:
                proofs.pop(demand.number, None)
                if proof is not None:
                    proofs[demand.number] = proof
                unseen += proof is None
                click.echo(f"{demand.number:10} {words}")
            PAGE.write_text(page(replace(conformance, proofs=proofs)), encoding="utf-8")
    sys.exit(1 if unseen else 0)


def _outcome(copy: Copy, tried: tuple[Trial, Sequence[Demand]]) -> tuple[Proof | None, str]:
    """Return the proof that marked tests notice a mutation, or none, and an explanation."""
    (mutation, tests), demands = tried
    if mutation is None:
        return None, "no mutation"
    numbers = ", ".join(demand.number for demand in demands)
    try:
        noticed = noticing(copy, mutation, tests, lambda words: click.echo(f"{numbers:10} {words}"))
    except ChainkitError as error:
        return None, str(error)
    if not noticed:
        return None, f"{mutation.file}  NOT NOTICED"
    words = f"{mutation.file}  {len(noticed)} of {len(tests)}: {noticed[0]}"
    return Proof(mutation.digest, frozenset(noticed)), words


if __name__ == "__main__":
    try:
        main()
    except ChainkitError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
