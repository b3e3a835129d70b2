"""Interruptions, errors, exit codes and figures of the commands of all benchmarks."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.document import with_section
from benchmarks.figures import Figures
from benchmarks.target import Target
from chainkit.errors import ChainkitError
from chainkit.terminal.options import Option, gathered, several
from localnet.deployment import PROJECT
from localnet.process import interrupt

DOCUMENT: Final = PROJECT / "docs" / "benchmarks.md"


@contextmanager
def measuring() -> Iterator[None]:
    """End what was started where a signal comes; exit with 130 then, and with 2 on an error."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        yield
    except (ChainkitError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)


@dataclass(frozen=True, slots=True)
class Run:
    """The options of one run."""

    quick: bool
    write_docs: bool
    output: Path

    def measure(
        self,
        measured: Callable[[], Figures],
        page: Callable[[Figures], str],
        targets: Callable[[Figures], Iterable[Target]],
    ) -> None:
        """Measure, write the figures and, where that is wanted, a section, and judge them.

        Raises UsageError where a quick run is to be written down.
        """
        if self.quick and self.write_docs:
            raise click.UsageError("--quick measures too little for --write-docs")
        with measuring():
            figures = measured()
        write_figures(self.output, figures)
        if self.write_docs:
            write_section(page(figures))
        tell_targets(targets(figures))


def run_options(result: Path, quick_help: str, part: str) -> Option:
    """Return the options of a run, which a command takes as ``run``.

    ``part`` names its section of docs/benchmarks.md.
    """
    return several(
        click.option("--quick", is_flag=True, help=f"{quick_help}: does it work at all?"),
        click.option(
            "--write-docs", is_flag=True, help=f"Write the {part}'s part of docs/benchmarks.md."
        ),
        click.option(
            "--output",
            type=click.Path(dir_okay=False, path_type=Path),
            default=result,
            show_default=str(result.relative_to(PROJECT)),
            help="Where the figures go, as JSON.",
        ),
        gathered(Run, "run"),
    )


def write_figures(output: Path, figures: Mapping[str, Any]) -> None:
    """Write what was measured as JSON."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def write_section(section: str) -> None:
    """Write a section of docs/benchmarks.md anew."""
    text = with_section(DOCUMENT.read_text(encoding="utf-8"), section)
    DOCUMENT.write_text(text, encoding="utf-8")


def tell_targets(targets: Iterable[Target]) -> None:
    """Print each target, and whether it was met."""
    for each in targets:
        click.echo(f"{each.what:<58} {each.wanted:>20} {each.found:>12}  {each.verdict}")
