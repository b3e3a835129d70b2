"""Plant bugs in the rules of nodes and clients, and let the simulators find them."""

import sys

import click

from tools.breaking import ROOT, Copies
from tools.planted_bugs.page import page
from tools.planted_bugs.trial import HUNTS, bugs, verdict

PAGE = ROOT / "docs" / "simulation.md"


@click.command()
@click.option("--only", help="Try the bugs alone whose names contain this; write no page.")
@click.option("--simulator", type=click.Choice(list(HUNTS)), help="Try its bugs alone; no page.")
def main(only: str | None, simulator: str | None) -> None:
    """Try each bug, write docs/simulation.md, and fail where one is not found.

    \b
    Example:
      python -m tools.planted_bugs --only signature
    """
    chosen = [
        each
        for each in bugs()
        if (only is None or only in each.name) and simulator in (None, each.simulator)
    ]
    with (
        Copies() as copies,
        click.progressbar(copies.each(chosen, verdict), len(chosen), label="bugs") as bar,
    ):
        verdicts = list(bar)
    if only is None and simulator is None:
        PAGE.write_text(page(verdicts), encoding="utf-8")
    missed = [each.bug.name for each in verdicts if each.found is None]
    for each in verdicts:
        click.echo(f"{each.bug.name}: {each.found or 'NOT FOUND'}")
    click.echo(f"found {len(verdicts) - len(missed)} of {len(verdicts)}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
