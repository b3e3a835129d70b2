"""``--keep-durations FILE`` writes how long the tests took, for people who make them faster."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

MOST = 60
"""So many files and tests are listed, those that took longest."""


class Durations:
    """Seconds by test, with what its fixtures took first and last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        files: Counter[str] = Counter()
        for test, seconds in self._seconds.items():
            files[test.partition("::")[0]] += seconds
        lines = [f"{sum(files.values()):8.1f} s of all workers, {len(self._seconds)} tests", ""]
        for counted in (files, self._seconds):
            lines += [f"{seconds:8.1f} {name}" for name, seconds in counted.most_common(MOST)]
            lines.append("")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("\n".join(lines))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-durations", type=Path, metavar="FILE", help="where they are written")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--keep-durations")
    # A worker's tests are reported to its parent process.
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(path))
