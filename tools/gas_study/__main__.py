"""`python -m tools.gas_study`: measures, and writes docs/gas.* and build/gas.json."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from chainkit.errors import ChainkitError
from localnet.deployment import PROJECT
from tools.gas_study.cases import (
    HARDFORKS,
    MESSAGE_CASES,
    PUBLISHED_CASES,
    PUBLISHED_GAS_PER_SECOND,
    PUBLISHED_SIZES,
    SIZES,
)
from tools.gas_study.compiling import deployed_bytecodes, published_bytecodes
from tools.gas_study.figures import Figures
from tools.gas_study.measuring_chain import MeasuringChain
from tools.gas_study.messages import message_rows, published_rows
from tools.gas_study.page import page
from tools.gas_study.plot import plot
from tools.gas_study.registry import NODE_COUNTS, REGISTRY_CASES, registry_rows
from tools.gas_study.rows import Row, differences, read_rows, rows_as_json

DOCUMENTS: Final = PROJECT / "docs"
SNAPSHOT: Final = DOCUMENTS / "gas.json"
RESULT: Final = PROJECT / "build" / "gas.json"

_SHOWN: Final = 5
"""How many differing cells are named."""

_CELLS: Final = len(HARDFORKS) * (
    len(PUBLISHED_CASES) * len(PUBLISHED_SIZES)
    + len(MESSAGE_CASES) * len(SIZES)
    + len(REGISTRY_CASES) * len(NODE_COUNTS)
)


@click.command()
@click.option("--check", is_flag=True, help="Write build/gas.json only; exit 1 if gas changed.")
@click.option(
    "--gas-per-second",
    metavar="GAS",
    type=click.IntRange(min=1),
    default=PUBLISHED_GAS_PER_SECOND,
    show_default=True,
    help="Gas per second of the chain, for the messages per second.",
)
def main(check: bool, gas_per_second: int) -> None:
    """Measure what publishing and the registry cost, and write docs/gas.md, .svg and .json.

    Exits 0 when done, 1 if --check found a difference, 2 if it could not measure.

    \b
    Example:
      python -m tools.gas_study --check
    """
    try:
        rows = list(_with_progress(measured_rows()))
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(rows_as_json(rows), encoding="utf-8")
        faults = list(drift(rows)) if check else []
    except ChainkitError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    if not check:
        for path, text in documents(rows, gas_per_second).items():
            path.write_text(text, encoding="utf-8")
    for fault in faults[:_SHOWN]:
        click.echo(fault, err=True)
    if faults:
        click.echo(f"{len(faults)} differences; if they are meant, run: make gas", err=True)
        sys.exit(1)
    click.echo(f"{len(rows)} cells, {'as in' if check else 'written to'} docs/gas.json")


def measured_rows() -> Iterator[Row]:
    """Measure everything, one hardfork after the other."""
    deployed, published = deployed_bytecodes(), published_bytecodes()
    for hardfork in HARDFORKS:
        with MeasuringChain(hardfork) as chain:
            yield from published_rows(chain, published)
            yield from message_rows(chain, deployed)
            yield from registry_rows(chain, deployed)


def documents(rows: Sequence[Row], gas_per_second: int) -> dict[Path, str]:
    """Return the text of each generated file in docs/."""
    figures = Figures(rows)
    return {
        SNAPSHOT: rows_as_json(rows),
        DOCUMENTS / "gas.md": page(figures, gas_per_second),
        DOCUMENTS / "gas.svg": plot(figures),
    }


def drift(rows: Sequence[Row]) -> Iterator[str]:
    """Return the differences: measured gas from the snapshot, then docs/ from the new text."""
    changes = list(differences(read_rows(SNAPSHOT), rows))
    yield from changes
    if changes:
        return
    for path, text in documents(rows, PUBLISHED_GAS_PER_SECOND).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield f"docs/{path.name}: expected what the rows give, got another text"


def _with_progress(rows: Iterator[Row]) -> Iterator[Row]:
    """Show a bar to a person at a terminal, and nothing to a file or a pipe."""
    if not sys.stderr.isatty():
        yield from rows
        return
    bar: Any = click.progressbar(rows, length=_CELLS, label="cells", file=sys.stderr)
    with bar:
        yield from bar


if __name__ == "__main__":
    main()
