"""Runs the suites on a copy of the project in which one file is a mutant."""

import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from chainkit.errors import ConfigurationError
from tools.mutation.mutants import Mutant
from tools.mutation.sources import ROOT

COPIED = (
    "ape-config.yaml",
    "contracts",
    "deployments",
    "docs",
    "foundry.toml",
    "localnet",
    "pyproject.toml",
    "scripts",
    "src",
    "tests",
    "tools",
)
LINKED = ("node_modules", ".cache/bin", ".cache/solcx")

# Nothing of what a suite shows depends on the optimizer, which takes most of a build's time.
FORGE_SETTINGS = {
    "FOUNDRY_FUZZ_RUNS": "32",
    "FOUNDRY_INVARIANT_DEPTH": "64",
    "FOUNDRY_INVARIANT_RUNS": "4",
    "FOUNDRY_OPTIMIZER": "false",
}
# They compare files, deploy by the scripts or are slow; none says what a contract does. The scripts
# refuse every mutant, because its code is not the package's: that is no test that notices.
APE_FILES_LEFT_OUT = (
    "test_abi_coverage.py",
    "test_abis.py",
    "test_deploy*.py",
    "test_roles_table.py",
    "test_stateful_*.py",
    "test_traffic_and_reorg.py",
)
TIMEOUT_SECONDS = 600

FAILURES = (
    r"^\[FAIL[^\n]*\] (\w+)",
    # For an invariant, forge prints the calls that broke it before its name.
    r"^ (\w+)\(\) \(runs: ",
    r"^(?:FAILED|ERROR) \S+::(\S+)",
    r"(no end within .*)",
)
"""Expressions for the name of the first test that failed, tried in turn."""

KILLED, SURVIVED, INVALID = "killed", "survived", "not compiling"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a mutant: `killed`, `survived` or `not compiling`."""

    outcome: str
    noticed_by: str = ""
    """The suite and its first test that failed; empty if none did."""


class Workspace:
    """A copy of the project below `folder`, in which one mutant at a time is tried."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Copy what the suites read, and link what is large and never changed."""
        self.folder = folder
        self.seed = seed
        for name in COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, folder / name)
        (folder / ".cache").mkdir()
        for name in LINKED:
            (folder / name).symlink_to(ROOT / name)

    def check_unchanged(self, suites: tuple[str, ...]) -> None:
        """Refuse to start with a suite that fails on the contracts as they are."""
        for suite in suites:
            status, output = self._run(suite)
            if status != 0:
                end = "\n".join(output.splitlines()[-20:])
                raise ConfigurationError(f"suite {suite}", "all tests to pass unchanged", end)

    def verdict_on(self, mutant: Mutant, suites: tuple[str, ...]) -> Verdict:
        """Run the suites in turn, until one of them notices the mutant."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(mutant.applied_to(original), encoding="utf-8")
        try:
            for suite in suites:
                status, output = self._run(suite)
                if "Compiler run failed" in output:
                    return Verdict(INVALID)
                if status != 0:
                    return Verdict(KILLED, f"{suite}: {first_failure(output)}")
            return Verdict(SURVIVED)
        finally:
            path.write_text(original, encoding="utf-8")

    def _run(self, suite: str) -> tuple[int, str]:
        if suite == "forge":
            # forge tries first what failed before, on another mutant.
            shutil.rmtree(self.folder / ".cache" / "forge" / "invariant", ignore_errors=True)
            shutil.rmtree(self.folder / ".cache" / "forge" / "fuzz", ignore_errors=True)
            seed = {"FOUNDRY_FUZZ_SEED": hex(self.seed)}
            return self._call(["forge", "test", "--fail-fast"], FORGE_SETTINGS | seed)
        # Ape keeps stale bytecode where only an imported file changed.
        status, output = self._call(["ape", "compile", "--force"], self._ape_settings())
        if status != 0:
            return status, output
        left_out = [f"--ignore-glob=tests/contracts/{name}" for name in APE_FILES_LEFT_OUT]
        command = ["python", "-m", "pytest", "-p", "ape.pytest.plugin", "tests/contracts", "-xq"]
        return self._call([*command, *left_out], self._ape_settings())

    def _ape_settings(self) -> dict[str, str]:
        return {
            "APE_DATA_FOLDER": str(self.folder / ".cache" / "ape"),
            "SOLCX_BINARY_PATH": str(self.folder / ".cache" / "solcx"),
        }

    def _call(self, command: list[str], settings: dict[str, str]) -> tuple[int, str]:
        """Run in a session of its own, so that a suite that hangs ends with all it started."""
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return 1, f"no end within {TIMEOUT_SECONDS} s"
        return process.returncode, output


def first_failure(output: str) -> str:
    """Return the name of the first test that failed, as forge or pytest prints it."""
    for pattern in FAILURES:
        found = re.search(pattern, output, re.MULTILINE)
        if found is not None:
            return found[1]
    return "the suite did not start"
