"""Breaks a rule in a copy of the project, and runs the tests that should notice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from chainkit.errors import ConfigurationError
from tools.breaking import Break, Copy, Ended

_FORGE_FAILURE: Final = re.compile(r"^\[FAIL[^\n]*\] (\w+)|^ (\w+)\(\) \(runs: ", re.MULTILINE)
_FORGE_RUN: Final = re.compile(r"^\[(?:PASS|FAIL)", re.MULTILINE)
_PYTEST_FAILURE: Final = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)


def failed(copy: Copy, tests: Sequence[str]) -> tuple[str, ...]:
    """Run tests, ``path::name`` each, and return those that fail.

    Raises ConfigurationError where a suite runs none of them.
    """
    found: list[str] = []
    others = [test for test in tests if not test.split("::")[0].endswith(".sol")]
    for path in dict.fromkeys(test.split("::")[0] for test in tests if test not in others):
        names = [test.split("::")[1] for test in tests if test.startswith(f"{path}::")]
        names_only = rf"^({'|'.join(names)})\b"
        ended = copy.forge("--match-path", path, "--match-test", names_only)
        failures = {one or other for one, other in _FORGE_FAILURE.findall(ended.output)}
        _check_ran(path, ended, bool(failures or _FORGE_RUN.search(ended.output)))
        found += [f"{path}::{name}" for name in failures]
    for own, run in (
        ([test for test in others if test.startswith("tests/contracts/")], copy.ape),
        ([test for test in others if not test.startswith("tests/contracts/")], copy.pytest),
    ):
        if own:
            ended = run(*own)
            _check_ran(own[0], ended, ended.status in (0, 1))
            found += _PYTEST_FAILURE.findall(ended.output)
    return tuple(test for test in tests if test in found)


def failed_with(copy: Copy, mutation: Break, tests: Sequence[str]) -> tuple[str, ...]:
    """Return the tests that fail while a rule is broken; errors as ``failed``."""
    with copy.changed(mutation):
        return failed(copy, tests)


def _check_ran(subject: str, ended: Ended, has_run: bool) -> None:
    if not has_run:
        end = "\n".join(ended.output.splitlines()[-20:])
        raise ConfigurationError(f"tests of {subject}", "to run", end)
