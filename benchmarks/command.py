"""Interruptions, errors, exit codes and figures of the commands of all benchmarks."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.document import with_section
from benchmarks.target import Target
from chainkit.errors import ChainkitError
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
