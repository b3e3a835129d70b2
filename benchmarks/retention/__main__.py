"""`python -m benchmarks.retention`: measures accounting and pruning, and writes retention.json."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import rounded
from benchmarks.harness import Benchmark, disk_folder
from benchmarks.machine import machine
from benchmarks.retention.accounting import accounting_share
from benchmarks.retention.beside import publish_beside
from benchmarks.retention.deleting import DATABASE, OTHERS, PRUNE
from benchmarks.retention.logs import IDENTITY, write_charges, write_expired
from benchmarks.retention.page import DATABASES, page
from chainkit.errors import ChainkitError
from chainkit_indexer.storage.store import Store
from localnet.postgres import Postgres

_REPORTED: Final = 1_000_000
_PRUNED: Final = 100_000
_SECONDS: Final = 10.0
_QUICK_SECONDS: Final = 1.0
_BATCHES: Final = 100

Log = Callable[[Path, int, str], AbstractContextManager[str]]
"""Writes so many expired envelopes, and gives the database's location."""


def measured_figures(quick: bool) -> dict[str, Any]:
    """Measure a report, the deletion of a log beside publishes, and the cost of accounting."""
    # This process starts programs and calls by gRPC, as benchmarks.node does.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    percent = 100 if quick else 1
    reported, pruned = _REPORTED // percent, _PRUNED // percent
    seconds = _QUICK_SECONDS if quick else _SECONDS
    with disk_folder() as folder, Postgres() as server:
        report_seconds, mebibytes = _reported(folder / "charges.db", reported)
        figures = {"report_s": report_seconds, "report_mib": mebibytes}
        write_expired(str(folder / "log.db"), pruned)
        for name, log in (("sqlite", _copied), ("postgresql", partial(_filled, server))):
            for how in (DATABASE, PRUNE, OTHERS):
                figures[f"{name}_{how}_deletes_per_s"] = pruned / _deleted(log, folder, pruned, how)
        share = 100 * accounting_share(folder / "publish.db", -(-_BATCHES // percent))
        figures["accounting_percent"] = share
    for name in DATABASES:
        with disk_folder() as folder:
            figures |= _beside(folder, name, pruned, seconds)
    return {name: rounded(figure) for name, figure in figures.items()} | {
        "reported": reported,
        "pruned": pruned,
        "is_quick": quick,
        "machine": machine(("SQLAlchemy", "psycopg", "coincurve")),
    }


def _reported(path: Path, envelopes: int) -> tuple[float, float]:
    with closing(Store.open(str(path), IDENTITY)) as store:
        write_charges(store, envelopes)
    seconds, mebibytes = _answer(_started("reporting", path, envelopes))
    return float(seconds), max(float(mebibytes), 0.01)


def _deleted(log: Log, folder: Path, envelopes: int, how: str) -> float:
    """Delete a log that was written for this, and return the seconds."""
    with log(folder, envelopes, how) as location:
        _, seconds = _answer(_started("deleting", location, how))
    return float(seconds)


@contextmanager
def _copied(folder: Path, envelopes: int, how: str) -> Iterator[str]:
    path = folder / f"{how}.db"
    shutil.copyfile(folder / "log.db", path)
    yield str(path)
    path.unlink()


@contextmanager
def _filled(server: Postgres, folder: Path, envelopes: int, how: str) -> Iterator[str]:
    location = server.new_database()
    write_expired(location, envelopes)
    yield location


def _beside(folder: Path, name: str, envelopes: int, seconds: float) -> dict[str, float]:
    """Publish at a node while its log is deleted by the command, and before and after that."""
    found = publish_beside(folder, name == "sqlite", envelopes, seconds)
    return {
        f"{name}_alone_p99_ms": 1000 * found.alone.percentile(0.99),
        f"{name}_beside_p99_ms": 1000 * found.beside.percentile(0.99),
        f"{name}_beside_deletes_per_s": envelopes / found.beside.seconds,
    }


def _answer(child: subprocess.Popen[str]) -> list[str]:
    printed, _ = child.communicate()
    if child.returncode:
        raise ChainkitError("benchmark", "an answer", f"exit code {child.returncode}")
    return printed.split()


def _started(module: str, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"benchmarks.retention.{module}", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


BENCHMARK: Final = Benchmark(
    "retention",
    "How fast a node accounts and deletes",
    "a hundredth of all envelopes",
    measured_figures,
    page,
)
main: Final = BENCHMARK.command()

if __name__ == "__main__":
    main()
