"""Measures how much of contracts/ the suites of tests/forge reach, and fails unless it is all.

Interfaces are left out; everything else must have each line, statement, branch and function
reached, as `forge coverage` counts them. forge compiles without the optimizer for this, or several
statements would share one instruction.

Mutation testing must see what forge cannot: an `if` without `else` counts as one branch, so that
its other way shows in the statements that follow only, and the operands of `&&`, `||` and `?:`
count as no branch at all.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from chainkit.errors import ChainkitError

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / ".cache" / "forge" / "coverage" / "lcov.info"
INTERFACES = "contracts/interfaces/"

NOTHING_TO_REACH = {
    "contracts/SequencedLogProxy.sol": "its one constructor is empty, so forge lists no part of it"
}
"""Files that may be missing from the report, with the reason. One that is listed is measured."""

MEASURES = ("lines", "statements", "branches", "functions")
_SUMMARY_ROW = re.compile(r"^\| (?P<file>\S+\.sol) +\|[^|]+\|[^|(]+\((?P<hit>\d+)/(?P<all>\d+)\)")


class CoverageUnmeasured(ChainkitError):
    """forge could not measure, or its report has another form."""


@dataclass
class FileCoverage:
    """The parts of one file that the suites reached."""

    reached: Counter[str] = field(default_factory=Counter)
    """How many parts were reached, by measure."""

    total: Counter[str] = field(default_factory=Counter)
    """How many parts there are, by measure."""

    missed: list[str] = field(default_factory=list)
    """Each part that was not reached, for people: `line 80: never reached`."""

    def count(self, measure: str, place: str, hits: str) -> None:
        """Count one part; ``hits`` is `-` or `0` if it was never reached."""
        self.total[measure] += 1
        if hits in ("-", "0"):
            self.missed.append(f"{place} never reached")
        else:
            self.reached[measure] += 1

    def share(self, measure: str) -> str:
        """Return `reached/total`."""
        return f"{self.reached[measure]}/{self.total[measure]}"


def read_lcov(report: str) -> dict[str, FileCoverage]:
    """Return the lines, branches and functions of each file in an lcov report, by its path."""
    files: dict[str, FileCoverage] = {}
    current = FileCoverage()
    for entry in report.splitlines():
        tag, _, value = entry.partition(":")
        parts = value.split(",")
        if tag == "SF":
            current = files.setdefault(value, FileCoverage())
        elif tag == "DA":
            current.count("lines", f"line {parts[0]}:", parts[1])
        elif tag == "BRDA":
            current.count("branches", f"line {parts[0]}: branch {parts[2]}", parts[3])
        elif tag == "FNDA":
            current.count("functions", f"function {parts[1]}:", parts[0])
    return files


def add_statements(files: Mapping[str, FileCoverage], summary: str) -> None:
    """Add the statements, which lcov does not know, from forge's table in Markdown.

    Raises CoverageUnmeasured if a file of the report is not in the table.
    """
    rows = {row["file"]: row for row in map(_SUMMARY_ROW.match, summary.splitlines()) if row}
    for name, coverage in files.items():
        if name not in rows:
            raise CoverageUnmeasured("forge's summary", f"a row for {name}", "none")
        reached, total = int(rows[name]["hit"]), int(rows[name]["all"])
        coverage.reached["statements"], coverage.total["statements"] = reached, total
        if reached < total:
            coverage.missed.append(f"{total - reached} of {total} statements never reached")


def contract_files(root: Path) -> list[str]:
    """Return the paths of the contracts that must be reached, relative to ``root``."""
    paths = (path.relative_to(root).as_posix() for path in root.glob("contracts/**/*.sol"))
    return sorted(path for path in paths if not path.startswith(INTERFACES))


def shortfalls(expected: Iterable[str], files: Mapping[str, FileCoverage]) -> list[str]:
    """Return a sentence for each part of the expected files that was not reached."""
    found: list[str] = []
    for name in expected:
        if name in files:
            found += [f"{name}, {missed}" for missed in files[name].missed]
        elif name not in NOTHING_TO_REACH:
            found.append(f"{name}: expected in forge's report, missing")
    return found


def table(expected: Iterable[str], files: Mapping[str, FileCoverage]) -> str:
    """Return what was reached of each file, a line each."""
    lines = [f"{'':36}" + "".join(f"{measure:>12}" for measure in MEASURES)]
    for name in expected:
        if name in files:
            shares = "".join(f"{files[name].share(measure):>12}" for measure in MEASURES)
        else:
            shares = f"  {NOTHING_TO_REACH.get(name, 'missing')}"
        lines.append(f"{name:36}{shares}")
    return "\n".join(lines)


def measure(report: Path = REPORT) -> dict[str, FileCoverage]:
    """Run every suite of tests/forge and return what was reached, by the file's path.

    Raises CoverageUnmeasured if the contracts do not compile or a test fails.
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = ["forge", "coverage", "--md", "--exclude-tests", "--report-file", str(report)]
    result = subprocess.run(
        [*command, "--report", "lcov", "--report", "summary"],
        cwd=ROOT,
        env=os.environ | {"FOUNDRY_PROFILE": "coverage"},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0 or not report.exists():
        output = f"exit code {result.returncode}\n{result.stdout}{result.stderr}"
        raise CoverageUnmeasured("forge coverage", "every test passed and a report", output)
    files = read_lcov(report.read_text(encoding="utf-8"))
    add_statements(files, result.stdout)
    return files


@click.command()
def main() -> None:
    """Fail unless tests/forge reach all of contracts/ (exit 1), or if it cannot be told (exit 2).

    Example: python tools/check_coverage.py
    """
    try:
        files = measure()
    except (ChainkitError, OSError) as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    expected = contract_files(ROOT)
    click.echo(table(expected, files))
    missing = shortfalls(expected, files)
    for shortfall in missing:
        click.echo(shortfall, err=True)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
