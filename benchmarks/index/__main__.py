"""`python -m benchmarks.index`: measures, and writes build/bench/index.json."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.harness import Benchmark, disk_folder
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
from benchmarks.index.page import page
from benchmarks.index.plot import plot
from benchmarks.machine import machine
from localnet.anvil import Anvil
from localnet.postgres import Postgres

_PACKAGES: Final = ("web3", "SQLAlchemy", "psycopg", "coincurve", "protobuf", "orjson")
_QUICK: Final = Shape(blocks=200, events_per_block=4)
_QUICK_SECONDS: Final = 2


def measured_figures(quick: bool, long: bool, rounds: int, follow_seconds: int) -> dict[str, Any]:
    """Measure the indexer beside a floor and beside the tutorial's way."""
    shape = _QUICK if quick else USUAL
    rounds, seconds = (1, _QUICK_SECONDS) if quick else (rounds, follow_seconds)
    with disk_folder() as folder, Postgres() as server:
        (folder / "usual").mkdir()
        with benchmark_chain(folder / "usual") as chain:
            about: dict[str, Any] = {
                "chain": shape.figures(),
                "rounds": rounds,
                "machine": _machine(chain.anvil, server),
            }
            bench = Bench(chain, server, folder)
            with _bar("mining", shape.blocks) as mined:
                stretch = chain.mine(shape.blocks, shape.events_per_block, mined)
            with _bar("catching up", rounds * len(ROWS)) as done:
                results = measure_rows(bench, ROWS, stretch, rounds, lambda row: done(1))
            rows = {row: row_figures(found) for row, found in results.items()}
        following = _following(server, folder, shape, seconds)
        about["flat"] = _flat(server, folder, LONG) if long else None
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


def _machine(anvil: Anvil, server: Postgres) -> dict[str, str | int]:
    [(postgres,)] = server.execute("SHOW server_version")
    return machine(
        _PACKAGES,
        sqlite=sqlite3.sqlite_version,
        postgresql=str(postgres).split()[0],
        anvil=anvil.request("web3_clientVersion").rpartition("/v")[2],
    )


@contextmanager
def _bar(label: str, length: int) -> Iterator[Callable[[int], None]]:
    """Show a bar to a person at a terminal, and nothing to a file or a pipe."""
    if not sys.stderr.isatty():
        yield lambda steps: None
        return
    bar: Any = click.progressbar(length=length, label=f"{label:<22}", file=sys.stderr)
    with bar:
        yield bar.update


BENCHMARK: Final = Benchmark(
    "index",
    "How fast the indexer is",
    "200 blocks, one round, 2 seconds",
    measured_figures,
    page,
    plot,
)
main: Final = BENCHMARK.command(
    click.option(
        "--long", is_flag=True, help="Also a chain of a million events: is the cost flat?"
    ),
    click.option("--rounds", type=click.IntRange(min=1), default=8, show_default=True),
    click.option(
        "--follow-seconds",
        type=click.IntRange(min=1),
        default=60,
        show_default=True,
        help="How long to follow new blocks, on each database in each way.",
    ),
)

if __name__ == "__main__":
    main()
