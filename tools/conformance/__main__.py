"""Writes docs/conformance.md, checks it, and proves it: `python -m tools.conformance --help`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import click

from chainkit.errors import ChainkitError, ConfigurationError
from tools.conformance.check import Conformance, faults
from tools.conformance.demands import Demand, Mutation, read_demands
from tools.conformance.markers import find_markers
from tools.conformance.page import page
from tools.conformance.proof import Proof, read_proofs, write_proofs
from tools.conformance.proving import Copy

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "conformance.md"

Attempt = Callable[[Mutation, tuple[str, ...]], tuple[str, ...]]
"""Returns which of the tests notice a mutation."""


def current() -> Conformance:
    """Return the list, markers and proofs of this project. Raises ConfigurationError."""
    return Conformance(read_demands(), find_markers(ROOT), read_proofs())


@click.group(invoke_without_command=True)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with 1 if the page is not current."
)
@click.pass_context
def main(context: click.Context, check: bool) -> None:
    """Write docs/conformance.md from the list of demands and the markers on the tests.

    Exits with 1 where the list is wrong: a demand with code and without a test, a marker of an
    unknown number, a mutation whose text does not occur once.

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

    Writes tools/conformance/proved.json and the page; exits with 1 if a rule can be broken unseen.

    Example: python -m tools.conformance prove N4 2.2.1-1
    """
    conformance = current()
    chosen = [
        demand
        for demand in conformance.shown
        if not (unproved and conformance.is_proved(demand))
        and (not numbers or demand.number in numbers)
    ]
    proofs = dict(conformance.proofs)
    unseen = 0
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        copy = Copy(ROOT, Path(folder))
        _check_unchanged(copy, [test for each in chosen for test in conformance.tests[each.number]])
        # XIP-49 demands the same of two contracts: one mutation and one test can show both.
        failed_with = cache(copy.failed_with)
        for demand in chosen:
            failed = _try(failed_with, demand, tuple(conformance.tests[demand.number]))
            proofs.pop(demand.number, None)
            if failed and demand.mutation is not None:
                proofs[demand.number] = Proof(demand.mutation, failed)
            unseen += not failed
            write_proofs(proofs)
    PAGE.write_text(page(current()), encoding="utf-8")
    sys.exit(1 if unseen else 0)


def _check_unchanged(copy: Copy, tests: Sequence[str]) -> None:
    """Raise ConfigurationError if a test fails without any mutation."""
    if broken := copy.failed(tuple(dict.fromkeys(tests))):
        raise ConfigurationError("tests", "all to pass without a mutation", ", ".join(broken))


def _try(failed_with: Attempt, demand: Demand, tests: tuple[str, ...]) -> tuple[str, ...]:
    """Return the marked tests that notice the mutation, none where something is wrong."""
    if demand.mutation is None:
        click.echo(f"{demand.number:10} no mutation")
        return ()
    try:
        failed = failed_with(demand.mutation, tests)
    except ChainkitError as error:
        click.echo(f"{demand.number:10} {error}")
        return ()
    noticed = f"{len(failed)} of {len(tests)}: {failed[0]}" if failed else "NOT NOTICED"
    click.echo(f"{demand.number:10} {demand.mutation.file}  {noticed}")
    return failed


if __name__ == "__main__":
    try:
        main()
    except ChainkitError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
