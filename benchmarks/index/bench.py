"""Measures the rows in turn, round after round, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.index.chain import BenchmarkChain
from benchmarks.index.job import Job, Measured, Stretch
from benchmarks.usage import server_cpu_seconds
from chainkit.errors import ChainkitError
from localnet.deployment import PROJECT
from localnet.postgres import Postgres
from localnet.process import end, end_with_parent, interruptions_deferred

CHILD: Final = (sys.executable, "-m", "benchmarks.index.child")


class MeasuringFailed(ChainkitError):
    """A measuring process ended without a result, or with one that cannot be."""


@dataclass(frozen=True, slots=True)
class Result:
    """The cost of one row in one round."""

    measured: Measured
    server_cpu_seconds: float
    """CPU time of PostgreSQL, which is not ours and is counted apart."""


class Bench:
    """The chain and the databases that the rows are measured with."""

    def __init__(self, chain: BenchmarkChain, server: Postgres, folder: Path) -> None:
        """Take a folder for SQLite's files."""
        self.chain = chain
        self.server = server
        self._folder = folder
        self._names = count()

    def job(self, row: str, stretch: Stretch, websocket: str | None = None) -> Job:
        """Return a job with an empty database, of the kind that the row's name ends in."""
        is_postgres = row.endswith("postgres")
        file = self._folder / f"{next(self._names)}-{row}.db"
        database = self.server.new_database() if is_postgres else str(file)
        record = str(self.chain.record_path)
        return Job(row, self.chain.url, record, database, stretch, websocket)

    def measure(self, row: str, stretch: Stretch) -> Result:
        """Measure a row once, in a database that is removed afterwards.

        A server would go on for minutes to vacuum and analyze what a row left, and the kernel to
        write a file: the rows after it would pay for that.
        """
        job = self.job(row, stretch)
        before = server_cpu_seconds(self._server_pid())
        with started(job) as process:
            output, errors = process.communicate()
        used = server_cpu_seconds(self._server_pid()) - before
        self._remove(job)
        if process.returncode != 0:
            raise MeasuringFailed(f"row {row}", "exit 0", process.returncode, errors.strip())
        measured = Measured.from_line(output)
        if measured.total.events != stretch.events:
            raise MeasuringFailed(f"row {row}", f"{stretch.events} events", measured.total.events)
        return Result(measured, used)

    def _remove(self, job: Job) -> None:
        if job.row.endswith("postgres"):
            self.server.drop_database(job.database)
        else:
            for file in self._folder.glob(f"{Path(job.database).name}*"):
                file.unlink()

    def _server_pid(self) -> int:
        # A restarted server would have another one.
        return int((self.server.folder / "data" / "postmaster.pid").read_text().split()[0])


def measure_rows(
    bench: Bench,
    rows: tuple[str, ...],
    stretch: Stretch,
    rounds: int,
    measured: Callable[[str], None],
) -> dict[str, list[Result]]:
    """Measure each row in each round: what else the machine does then meets all rows alike."""
    results: dict[str, list[Result]] = {row: [] for row in rows}
    for _ in range(rounds):
        for row in rows:
            results[row].append(bench.measure(row, stretch))
            measured(row)
    return results


@contextmanager
def started(job: Job) -> Iterator[subprocess.Popen[str]]:
    """Start a measuring process and hand it its job."""
    with interruptions_deferred():
        process = subprocess.Popen(
            CHILD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            preexec_fn=end_with_parent,
        )
    try:
        assert process.stdin is not None
        process.stdin.write(job.to_line())
        process.stdin.flush()
        yield process
    finally:
        end(process)
