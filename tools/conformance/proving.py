"""Breaks a rule in a copy of the project, and runs the tests that should notice.

Tests of one folder run in a process of their own, as in the project's suites: a unit test that
forks its process ends or hangs where tests with gRPC's threads have run before it. The fastest
folders come first, and the first one whose tests notice is the last one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from chainkit.errors import ConfigurationError
from tools.breaking import Break, Copy, Ended

_FORGE_FAILURE: Final = re.compile(r"^\[FAIL[^\n]*\] (\w+)|^ (\w+)\(\) \(runs: ", re.MULTILINE)
_FORGE_RUN: Final = re.compile(r"^\[(?:PASS|FAIL)", re.MULTILINE)
_PYTEST_FAILURE: Final = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)
_FAST: Final = "tests/unit/"
_CONTRACTS: Final = "tests/contracts/"


def noticing(
    copy: Copy, mutation: Break, tests: Sequence[str], say: Callable[[str], None]
) -> tuple[str, ...]:
    """Return the tests that fail while a rule is broken, and pass otherwise; ``say`` what is run.

    Tests behind those that noticed are not run. Raises ConfigurationError where a test fails with
    the whole rule, too, or where a suite runs none of them.
    """
    for own in in_folders(tests):
        since = time.monotonic()
        count, folder = len(own), _folder(own[0])
        say(f"{folder}: {count} of {len(tests)} …")
        with copy.changed(mutation):
            found = failed(copy, own)
        say(f"{folder}: {len(found)} of {count} noticed, {time.monotonic() - since:.0f} s")
        if found:
            if broken := failed(copy, found):
                raise ConfigurationError("tests", "all to pass unchanged", ", ".join(broken))
            return found
    return ()


def in_folders(tests: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield tests, ``path::name`` each, folder by folder of ``tests/``; unit tests first."""
    by_folder: dict[str, list[str]] = {}
    for test in sorted(tests, key=lambda each: not each.startswith(_FAST)):
        by_folder.setdefault(_folder(test), []).append(test)
    yield from map(tuple, by_folder.values())


def _folder(test: str) -> str:
    return "/".join(test.split("::")[0].split("/")[:2])


def failed(copy: Copy, tests: Sequence[str]) -> tuple[str, ...]:
    """Run tests of one folder, and return those that fail.

    Raises ConfigurationError where a suite runs none of them.
    """
    if tests[0].split("::")[0].endswith(".sol"):
        found = _failed_in_forge(copy, tests)
    else:
        run = copy.ape if tests[0].startswith(_CONTRACTS) else copy.pytest
        ended = run(*tests)
        _check_ran(tests[0], ended, ended.status in (0, 1))
        found = _PYTEST_FAILURE.findall(ended.output)
    return tuple(test for test in tests if test in found)


def _failed_in_forge(copy: Copy, tests: Sequence[str]) -> list[str]:
    found: list[str] = []
    for path in dict.fromkeys(test.split("::")[0] for test in tests):
        names = [test.split("::")[1] for test in tests if test.startswith(f"{path}::")]
        names_only = rf"^({'|'.join(names)})\b"
        ended = copy.forge("--match-path", path, "--match-test", names_only)
        failures = {one or other for one, other in _FORGE_FAILURE.findall(ended.output)}
        _check_ran(path, ended, bool(failures or _FORGE_RUN.search(ended.output)))
        found += [f"{path}::{name}" for name in failures]
    return found


def _check_ran(subject: str, ended: Ended, has_run: bool) -> None:
    if not has_run:
        end = "\n".join(ended.output.splitlines()[-20:])
        raise ConfigurationError(f"tests of {subject}", "to run", end)
