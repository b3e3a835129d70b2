"""Mutation testing of the contracts: `python -m tools.mutation --help`."""

import random
import re
import sys

import click

from chainkit.errors import ChainkitError
from tools.breaking import ROOT, WORKERS, Copies
from tools.mutation.mutants import Mutant, mutants_of
from tools.mutation.report import Row, Tally, page, read_survivors, unexplained
from tools.mutation.sources import contract_files, syntax_trees
from tools.mutation.trial import check_unchanged, outcome_of

PAGE = ROOT / "docs" / "mutation.md"
SUITES = {"forge": ("forge",), "all": ("forge", "ape")}


def all_mutants() -> list[Mutant]:
    """Return the mutants of the present contracts."""
    sources = {file: (ROOT / file).read_text(encoding="utf-8") for file in contract_files()}
    trees = syntax_trees(sources)
    return [mutant for file in sources for mutant in mutants_of(file, sources[file], trees[file])]


def try_all(mutants: list[Mutant], suites: tuple[str, ...], seed: int, workers: int) -> list[Row]:
    """Try every mutant, several at a time, each in a copy that no other uses."""
    with Copies(workers) as copies:
        list(copies.each(range(workers), lambda copy, _: check_unchanged(copy, suites, seed)))
        outcomes = copies.each(mutants, lambda copy, one: outcome_of(copy, one, suites, seed))
        with click.progressbar(outcomes, len(mutants), label="mutants") as bar:
            return list(zip(mutants, bar, strict=True))


def conclude(rows: list[Row], complete: bool) -> int:
    """Write the page after a complete run, print the score, and return the exit code."""
    tally, reasons = Tally.of(rows), read_survivors(PAGE.read_text(encoding="utf-8"))
    click.echo(f"killed {tally.killed}, survived {tally.survived}, score {tally.score}")
    if complete:
        PAGE.write_text(page(rows, reasons), encoding="utf-8")
    missing = unexplained(rows, reasons)
    for name in missing:
        click.echo(f"survived: {name}")
    return 1 if missing else 0


@click.group()
def main() -> None:
    """Change the contracts in small ways and see whether the suites notice.

    Example: python -m tools.mutation run --sample 20
    """


@main.command()
@click.option("--sample", type=click.IntRange(min=1), help="Try only this many, by chance.")
@click.option("--only", default="", help="Try only mutants whose name matches this expression.")
@click.option("--survivors", is_flag=True, help="Try again what the page lists.")
@click.option("--suites", type=click.Choice(list(SUITES)), default="all", show_default=True)
@click.option("--seed", default=49, show_default=True, help="Seed for the sample and for forge.")
@click.option("--workers", default=WORKERS, show_default=True, help="How many mutants at a time.")
def run(
    sample: int | None, only: str, survivors: bool, suites: str, seed: int, workers: int
) -> None:
    """Try mutants; exits with 1 if one survives without a reason in docs/mutation.md.

    All of them give docs/mutation.md; a part prints what survived.

    Example: python -m tools.mutation run --only _setPayloadBounds --suites forge
    """
    mutants = [mutant for mutant in all_mutants() if re.search(only, mutant.name)]
    if survivors:
        known = read_survivors(PAGE.read_text(encoding="utf-8"))
        mutants = [mutant for mutant in mutants if mutant.name in known]
    if sample is not None:
        mutants = random.Random(seed).sample(mutants, min(sample, len(mutants)))
    rows = try_all(mutants, SUITES[suites], seed, workers)
    sys.exit(conclude(rows, complete=sample is None and not only and not survivors))


if __name__ == "__main__":
    try:
        main()
    except ChainkitError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
