"""Breaks each rule in a copy of the project, and runs the tests that should notice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from chainkit.errors import ConfigurationError
from tools.conformance.demands import Mutation
from tools.mutation.trial import FORGE_SETTINGS, LINKED

TIMEOUT_SECONDS: Final = 600

_FORGE_FAILURE: Final = re.compile(r"^\[FAIL[^\n]*\] (\w+)|^ (\w+)\(\) \(runs: ", re.MULTILINE)
_FORGE_RUN: Final = re.compile(r"^\[(?:PASS|FAIL)", re.MULTILINE)
_PYTEST_FAILURE: Final = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)


class Copy:
    """A copy of the project, in which one mutation at a time is tried."""

    def __init__(self, root: Path, folder: Path) -> None:
        """Copy what Git knows or would add, and link what is large and never changed."""
        self.folder = folder
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, folder / name)
        (folder / ".cache").mkdir()
        for name in LINKED:
            (folder / name).symlink_to((root / name).resolve())

    def failed(self, tests: Sequence[str]) -> tuple[str, ...]:
        """Run tests, ``path::name`` each, and return those that fail.

        Raises ConfigurationError where a suite runs none of them.
        """
        solidity = [test for test in tests if test.split("::")[0].endswith(".sol")]
        contracts = [test for test in tests if test.startswith("tests/contracts/")]
        others = [test for test in tests if test not in solidity and test not in contracts]
        found = self._forge(solidity)
        found += self._ape(contracts) if contracts else []
        found += self._pytest(others, []) if others else []
        return tuple(test for test in tests if test in found)

    def failed_with(self, mutation: Mutation, tests: Sequence[str]) -> tuple[str, ...]:
        """Return the tests that fail while one file is mutated; errors as ``failed``."""
        path = self.folder / mutation.file
        original = path.read_text(encoding="utf-8")
        path.write_text(original.replace(mutation.text, mutation.replacement), encoding="utf-8")
        try:
            return self.failed(tests)
        finally:
            path.write_text(original, encoding="utf-8")

    def _forge(self, tests: Sequence[str]) -> list[str]:
        found = []
        for path, names in _by_file(tests).items():
            # forge tries first what failed before, with another mutation.
            shutil.rmtree(self.folder / ".cache/forge/fuzz", ignore_errors=True)
            shutil.rmtree(self.folder / ".cache/forge/invariant", ignore_errors=True)
            command = ["forge", "test", "--match-path", path]
            names_only = rf"^({'|'.join(names)})\b"
            _, output = self._call([*command, "--match-test", names_only], FORGE_SETTINGS)
            if not _FORGE_RUN.search(output) and not _FORGE_FAILURE.search(output):
                raise _nothing_ran(path, output)
            failed = {first or second for first, second in _FORGE_FAILURE.findall(output)}
            found += [f"{path}::{name}" for name in names if name in failed]
        return found

    def _ape(self, tests: Sequence[str]) -> list[str]:
        # Ape keeps stale bytecode where only an imported file changed.
        status, output = self._call(["ape", "compile", "--force"], {})
        if status != 0:
            raise _nothing_ran("contracts", output)
        return self._pytest(tests, ["-p", "ape.pytest.plugin"])

    def _pytest(self, tests: Sequence[str], options: Sequence[str]) -> list[str]:
        self._build_mls_engine()
        command = ["python", "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
        status, output = self._call([*command, *options, *tests], {})
        if status not in (0, 1):
            raise _nothing_ran(tests[0], output)
        return _PYTEST_FAILURE.findall(output)

    def _build_mls_engine(self) -> None:
        build = self.folder / "client" / "mls_engine" / "build.mjs"
        if build.exists():
            # Git knows no bundle, and a mutation of its sources is to be noticed by what it does.
            status, output = self._call(["node", str(build), "--pin"], {})
            if status != 0:
                raise _nothing_ran(str(build), output)

    def _call(self, command: Sequence[str], settings: Mapping[str, str]) -> tuple[int, str]:
        places = {
            "APE_DATA_FOLDER": str(self.folder / ".cache/ape"),
            # Hypothesis would try first what failed with another mutation.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / ".cache/hypothesis"),
            # A file that changes twice in a second keeps the code compiled for it before.
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(
                str(self.folder / name)
                for name in ("src", "indexer", "node", "gateway", "client", "jobs")
            ),
            "SOLCX_BINARY_PATH": str(self.folder / ".cache/solcx"),
        }
        shutil.rmtree(self.folder / ".cache/hypothesis", ignore_errors=True)
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **places, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        return done.returncode, done.stdout


def _by_file(tests: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test in tests:
        path, name = test.split("::")
        found.setdefault(path, []).append(name)
    return found


def _nothing_ran(subject: str, output: str) -> ConfigurationError:
    end = "\n".join(output.splitlines()[-20:])
    return ConfigurationError(f"tests of {subject}", "to run", end)
