"""Plant bugs in the node's rules, and let the simulated network find them."""

import sys
from concurrent.futures import ThreadPoolExecutor

import click

from tools.planted_bugs.page import page
from tools.planted_bugs.trial import ROOT, bugs, verdict

PAGE = ROOT / "docs" / "simulation.md"


@click.command()
@click.option("--only", help="Try the bugs alone whose names contain this; write no page.")
def main(only: str | None) -> None:
    """Try each bug, write docs/simulation.md, and fail where one is not found.

    \b
    Example:
      python -m tools.planted_bugs --only signature
    """
    chosen = [each for each in bugs() if only is None or only in each.name]
    with (
        ThreadPoolExecutor(max_workers=2) as pool,
        click.progressbar(pool.map(verdict, chosen), len(chosen), label="bugs") as bar,
    ):
        verdicts = list(bar)
    if only is None:
        PAGE.write_text(page(verdicts), encoding="utf-8")
    missed = [each.bug.name for each in verdicts if each.found is None]
    for each in verdicts:
        click.echo(f"{each.bug.name}: {each.found or 'NOT FOUND'}")
    click.echo(f"found {len(verdicts) - len(missed)} of {len(verdicts)}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
