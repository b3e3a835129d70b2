"""`python -m benchmarks.index`: measures, and writes build/bench/index.json."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.command import measuring, write_figures
from benchmarks.document import with_section
from benchmarks.figures import Figures
from benchmarks.index.bench import Bench, measure_rows
from benchmarks.index.chain import LONG, USUAL, Shape, benchmark_chain
from benchmarks.index.figures import (
    DATABASES,
    ROWS,
    WAYS,
    flat_figures,
    following_figures,
    index_figures,
    row_figures,
)
from benchmarks.index.following import BLOCK_SECONDS, measure_following
from benchmarks.index.machine import machine
from benchmarks.index.page import page
from benchmarks.index.plot import plot
from benchmarks.index.table import lines
from localnet.deployment import PROJECT
from localnet.postgres import Postgres

DOCUMENTS: Final = PROJECT / "docs"
RESULT: Final = PROJECT / "build" / "bench" / "index.json"

_QUICK: Final = Shape(blocks=200, events_per_block=4)
_QUICK_SECONDS: Final = 2


@click.command()
@click.option(
    "--quick", is_flag=True, help="200 blocks, one round, 2 seconds: does it work at all?"
)
@click.option("--long", is_flag=True, help="Also a chain of a million events: is the cost flat?")
@click.option("--rounds", type=click.IntRange(min=1), default=8, show_default=True)
@click.option(
    "--follow-seconds",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="How long to follow new blocks, on each database in each way.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=RESULT,
    show_default="build/bench/index.json",
    help="Where the figures go, as JSON.",
)
@click.option("--write-docs", is_flag=True, help="Write docs/benchmarks.md and its picture too.")
def main(
    quick: bool, long: bool, rounds: int, follow_seconds: int, output: Path, write_docs: bool
) -> None:
    """Measure the indexer beside a floor and beside the tutorial's way.

    Exits 0 when done, 2 if it could not measure.

    \b
    Example:
      python -m benchmarks.index --quick
    """
    if quick and write_docs:
        raise click.UsageError("--quick measures too little for --write-docs")
    shape, seconds = (_QUICK, _QUICK_SECONDS) if quick else (USUAL, follow_seconds)
    with measuring():
        figures = measured_figures(shape, 1 if quick else rounds, seconds, LONG if long else None)
    write_figures(output, figures)
    if write_docs:
        for path, text in documents(figures).items():
            path.write_text(text, encoding="utf-8")
    for line in lines(figures):
        click.echo(line)


def measured_figures(
    shape: Shape, rounds: int, follow_seconds: int, long: Shape | None
) -> dict[str, Any]:
    """Measure everything, one thing after the other."""
    # Not a memory file system: what is measured waits for a disk.
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RESULT.parent) as name, Postgres() as server:
        folder = Path(name)
        (folder / "usual").mkdir()
        with benchmark_chain(folder / "usual") as chain:
            about: dict[str, Any] = {
                "chain": shape.figures(),
                "rounds": rounds,
                "machine": machine(chain.anvil, server),
            }
            bench = Bench(chain, server, folder)
            with _bar("mining", shape.blocks) as mined:
                stretch = chain.mine(shape.blocks, shape.events_per_block, mined)
            with _bar("catching up", rounds * len(ROWS)) as done:
                results = measure_rows(bench, ROWS, stretch, rounds, lambda row: done(1))
            rows = {row: row_figures(found) for row, found in results.items()}
        following = _following(server, folder, shape, follow_seconds)
        about["flat"] = _flat(server, folder, long) if long else None
    return index_figures(rows, following, about)


def _following(
    server: Postgres, folder: Path, shape: Shape, seconds: int
) -> dict[str, dict[str, dict[str, Any]]]:
    blocks = round(seconds / BLOCK_SECONDS)
    figures: dict[str, dict[str, dict[str, Any]]] = {database: {} for database in DATABASES}
    (folder / "following").mkdir()
    with (
        # Without old states: after a reorg, anvil 1.7.1 finds no code in those on disk.
        benchmark_chain(folder / "following", keeps_old_states=False) as chain,
        _bar("following", len(DATABASES) * len(WAYS)) as done,
    ):
        bench = Bench(chain, server, folder)
        for database in DATABASES:
            for way in WAYS:
                by_websocket = way == "websocket"
                followed = measure_following(
                    bench, database, by_websocket, blocks, shape.events_per_block
                )
                figures[database][way] = following_figures(followed)
                done(1)
    return figures


def _flat(server: Postgres, folder: Path, shape: Shape) -> dict[str, Any]:
    (folder / "long").mkdir()
    with benchmark_chain(folder / "long", keeps_old_states=False) as chain:
        with _bar("mining the long chain", shape.blocks) as mined:
            stretch = chain.mine(shape.blocks, shape.events_per_block, mined)
        with _bar("catching up", 1) as done:
            result = Bench(chain, server, folder).measure("signed_sqlite", stretch)
            done(1)
    return flat_figures(result.measured) | {"chain": shape.figures()}


def documents(figures: Figures) -> dict[Path, str]:
    """Return the text of each generated file in docs/."""
    document = DOCUMENTS / "benchmarks.md"
    return {
        document: with_section(document.read_text(encoding="utf-8"), page(figures)),
        DOCUMENTS / "benchmarks-index.svg": plot(figures),
    }


@contextmanager
def _bar(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """Show a bar to a person at a terminal, and nothing to a file or a pipe."""
    if not sys.stderr.isatty():
        yield lambda steps: None
        return
    bar: Any = click.progressbar(length=length, label=f"{label:<22}", file=sys.stderr)
    with bar:
        yield bar.update


if __name__ == "__main__":
    main()
