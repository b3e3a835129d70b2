"""`python -m benchmarks.retention`: measures accounting and pruning, and writes retention.json."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import rounded
from benchmarks.harness import Benchmark, disk_folder
from benchmarks.machine import machine
from benchmarks.node.load import Rate
from benchmarks.retention.deleting import DATABASE, OTHERS, PACED, PRUNE
from benchmarks.retention.logs import IDENTITY, write_charges, write_expired
from benchmarks.retention.page import page
from benchmarks.retention.publishing import accounting_share, publish_while
from chainkit.errors import ChainkitError
from chainkit_indexer.storage.store import Store

_REPORTED: Final = 1_000_000
_PRUNED: Final = 100_000
_ALONE_SECONDS: Final = 10.0
_BATCHES: Final = 100


def measured_figures(quick: bool) -> dict[str, Any]:
    """Measure a report, the deletion of a log beside publishes, and the cost of accounting."""
    share = 100 if quick else 1
    reported, pruned = _REPORTED // share, _PRUNED // share
    with disk_folder() as folder:
        seconds, mebibytes = _reported(folder / "charges.db", reported)
        write_expired(folder / "log.db", pruned)
        database_seconds = _deleted(folder, DATABASE)
        prune_seconds = _deleted(folder, PRUNE)
        others_seconds = _deleted(folder, OTHERS)
        beside = _beside(folder)
        alone = _alone(folder / "alone.db", 1.0 if quick else _ALONE_SECONDS)
        figures = {
            "report_s": seconds,
            "report_mib": mebibytes,
            "database_deletes_per_s": pruned / database_seconds,
            "prune_deletes_per_s": pruned / prune_seconds,
            "prune_others_deletes_per_s": pruned / others_seconds,
            "publish_alone_p99_ms": 1000 * alone.percentile(0.99),
            "publish_beside_p99_ms": 1000 * beside.percentile(0.99),
            "accounting_percent": 100
            * accounting_share(folder / "publish.db", -(-_BATCHES // share)),
        }
    return {name: rounded(figure) for name, figure in figures.items()} | {
        "reported": reported,
        "pruned": pruned,
        "is_quick": quick,
        "machine": machine(("SQLAlchemy", "coincurve")),
    }


def _reported(path: Path, envelopes: int) -> tuple[float, float]:
    with closing(Store.open(str(path), IDENTITY)) as store:
        write_charges(store, envelopes)
    seconds, mebibytes = _answer(_started("reporting", path, envelopes))
    return float(seconds), max(float(mebibytes), 0.01)


def _deleted(folder: Path, how: str) -> float:
    """Delete a copy of the log, and return the seconds."""
    with _copied(folder, how) as path:
        _, seconds = _answer(_started("deleting", path, how))
    return float(seconds)


def _beside(folder: Path) -> Rate:
    """Publish while a copy of the log is deleted, with the command's pauses."""
    with _copied(folder, PACED) as path:
        child = _started("deleting", path, PACED)
        rate = publish_while(path, lambda: child.poll() is None)
        _answer(child)
    return rate


@contextmanager
def _copied(folder: Path, how: str) -> Iterator[Path]:
    path = folder / f"{how}.db"
    shutil.copyfile(folder / "log.db", path)
    yield path
    path.unlink()


def _alone(path: Path, seconds: float) -> Rate:
    ends: list[float] = []

    def goes_on() -> bool:
        now = time.perf_counter()
        ends.append(now + seconds)
        return now < ends[0]

    return publish_while(path, goes_on)


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
