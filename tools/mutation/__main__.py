"""Mutation testing of the contracts: `python -m tools.mutation --help`."""

import json
import random
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

import click

from chainkit.errors import ChainkitError
from tools.mutation import report, results
from tools.mutation.mutants import Mutant, mutants_of
from tools.mutation.results import Result, Tally
from tools.mutation.sources import ROOT, contract_files, syntax_trees
from tools.mutation.trial import SURVIVED, Workspace

RESULTS = ROOT / "build" / "mutation.json"
PAGE = ROOT / "docs" / "mutation.md"
REASONS = Path(__file__).with_name("survivors.json")
SUITES = {"forge": ("forge",), "all": ("forge", "ape")}


def all_mutants() -> list[Mutant]:
    """Return the mutants of the contracts as they are."""
    sources = {file: (ROOT / file).read_text(encoding="utf-8") for file in contract_files()}
    trees = syntax_trees(sources)
    return [mutant for file in sources for mutant in mutants_of(file, sources[file], trees[file])]


def known_reasons() -> dict[str, str]:
    """Return why survivors do not matter, by their names."""
    reasons: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8"))
    return reasons


def try_all(
    mutants: list[Mutant], suites: tuple[str, ...], seed: int, workers: int
) -> list[Result]:
    """Try every mutant, several at a time, each in a workspace that no other uses."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        workspaces: SimpleQueue[Workspace] = SimpleQueue()
        for number in range(workers):
            place = Path(folder) / str(number)
            place.mkdir()
            workspaces.put(Workspace(place, seed))

        def attempt(mutant: Mutant) -> Result:
            workspace = workspaces.get()
            try:
                return Result.of(mutant, workspace.verdict_on(mutant, suites))
            finally:
                workspaces.put(workspace)

        def prepare(_: int) -> None:
            workspace = workspaces.get()
            workspace.check_unchanged(suites)
            workspaces.put(workspace)

        with ThreadPoolExecutor(max_workers=workers) as pool:
            list(pool.map(prepare, range(workers)))
            tasks = [pool.submit(attempt, mutant) for mutant in mutants]
            with click.progressbar(as_completed(tasks), len(tasks), label="mutants") as bar:
                for _ in bar:
                    pass
            return [task.result() for task in tasks]


def conclude(rows: list[Result], complete: bool) -> int:
    """Write the page after a complete run, print the score, and return the exit code."""
    tally = Tally.of(rows)
    click.echo(f"killed {tally.killed}, survived {tally.survived}, score {tally.score}")
    if complete:
        PAGE.write_text(report.page(rows, known_reasons()), encoding="utf-8")
    missing = report.unexplained(rows, known_reasons())
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
@click.option("--survivors", is_flag=True, help="Try again what survived the last run.")
@click.option("--suites", type=click.Choice(list(SUITES)), default="all", show_default=True)
@click.option("--seed", default=49, show_default=True, help="Seed for the sample and for forge.")
@click.option("--workers", default=2, show_default=True, help="How many mutants at a time.")
def run(
    sample: int | None, only: str, survivors: bool, suites: str, seed: int, workers: int
) -> None:
    """Try mutants; exits with 1 if one survives without a reason in survivors.json.

    All of them give docs/mutation.md and build/mutation.json; a part prints what survived.

    Example: python -m tools.mutation run --only _setPayloadBounds --suites forge
    """
    mutants = [mutant for mutant in all_mutants() if re.search(only, mutant.name)]
    earlier = {row.name: row for row in results.read(RESULTS)} if survivors else {}
    if survivors:
        mutants = [
            mutant
            for mutant in mutants
            if mutant.name not in earlier or earlier[mutant.name].outcome == SURVIVED
        ]
    if sample is not None:
        mutants = random.Random(seed).sample(mutants, min(sample, len(mutants)))
    rows = try_all(mutants, SUITES[suites], seed, workers)
    complete = sample is None and not only
    if survivors:
        now = {row.name: row for row in rows}
        names = [mutant.name for mutant in all_mutants()]
        rows = [now.get(name) or earlier[name] for name in names if name in now or name in earlier]
    if complete:
        results.write(RESULTS, rows, seed)
    sys.exit(conclude(rows, complete))


@main.command(name="report")
def write_report() -> None:
    """Write docs/mutation.md again, from build/mutation.json and survivors.json.

    Example: python -m tools.mutation report
    """
    sys.exit(conclude(results.read(RESULTS), complete=True))


if __name__ == "__main__":
    try:
        main()
    except ChainkitError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
