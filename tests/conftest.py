from __future__ import annotations

import signal
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

import localnet  # noqa: F401 (before gRPC, which reads what it sets)
from support.seeds import day_of_run

pytest_plugins = [
    "support.chains.chain",
    "support.collection",
    "support.durations",
    "support.indexer.databases",
    "support.turns",
    "support.warm_commands",
]

SPARK = {
    "tests/jobs/test_cluster": "clusters",
    "tests/jobs/test_import": "imports",
    "tests/jobs/": "audits",
}
"""Files whose tests share a worker by how their paths begin: each worker starts a Spark session.

Those of clusters start their own."""


def pytest_configure() -> None:
    # A shell lets what it runs in the background ignore Ctrl-C, and so would what the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Before the workers start: all of them collect the tests of one day, also over midnight.
    day_of_run()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # No header: `pytest -q` shows none.
    terminalreporter.write_line(f"seeds and cases of the day: CHAINKIT_DAY={day_of_run()}")


class BySession(LoadFileScheduling):
    """Gives a worker a whole file, or all files that use the same Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((name for start, name in SPARK.items() if file.startswith(start)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BySession | None:
    return BySession(config, log) if config.getoption("dist") == "loadfile" else None
