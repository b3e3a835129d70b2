"""Each long test file has its turn on one of three days, and `make test` leaves it out on two."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date, timedelta

import pytest

from support.project import ROOT
from support.turns import TURNS, files_of_other_days


def test_turns__each_file__is_there_and_has_one_turn() -> None:
    files = [file for turn in TURNS for file in turn]

    assert len(files) == len(set(files))
    assert [file for file in files if not (ROOT / "tests" / f"{file}.py").is_file()] == []


def test_three_days__files_that_are_left_out__are_never_the_same_on_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_out = []
    for days in range(3):
        monkeypatch.setenv("CHAINKIT_DAY", (date(2026, 12, 30) + timedelta(days)).isoformat())
        left_out.append(files_of_other_days())

    assert all(left_out)
    assert not frozenset.intersection(*left_out)


def test_pytest__of_the_day__leaves_out_the_files_of_other_days_alone() -> None:
    files = ["tests/council/test_gather.py", "tests/council/test_signers_commands.py"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--of-the-day", *files]
    day = os.environ | {"CHAINKIT_DAY": date.fromordinal(3 * 246_800).isoformat()}

    done = subprocess.run(
        command, cwd=ROOT, env=day, capture_output=True, text=True, check=True, timeout=120
    )

    assert "test_signers_commands" in done.stdout
    assert "test_gather" not in done.stdout
    assert "deselected" in done.stdout


@pytest.mark.parametrize(("target", "plays_all"), [("test", False), ("test-all", True)])
def test_make__target__plays_a_part_or_all(target: str, plays_all: bool) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ("--of-the-day" not in done.stdout) == plays_all
