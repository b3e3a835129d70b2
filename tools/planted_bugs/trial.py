"""One planted bug: a copy of the packages with it, and the simulator that plays stories on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

ROOT = Path(__file__).parents[2]
BUGS = Path(__file__).with_name("bugs.yaml")
PACKAGES = (
    *("client/chainkit_client", "indexer/chainkit_indexer", "node/chainkit_node"),
    "src/chainkit",
)
HUNTS = {
    "network": "support.network.simulation.hunt",
    "client": "support.client.stories.hunt",
    "group": "support.client.simulation.hunt",
}
"""The program that plays the stories of each simulator."""
SEEDS = 40
"""Stories of each kind that a bug has to show in."""

_SECONDS = 600


@dataclass(frozen=True)
class Bug:
    """One text that stands once in its file, and its replacement."""

    name: str
    file: str
    text: str
    replacement: str
    lies: tuple[str, ...] = ()
    """Lies of the stories; without any, all nodes are honest."""
    simulator: str = "network"
    """One of HUNTS."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a trial."""

    bug: Bug
    found: str | None
    """The first seed that failed, and why; None where all stories ended well."""


def bugs() -> list[Bug]:
    """Return all bugs, in the order of the file."""
    rows = yaml.safe_load(BUGS.read_text(encoding="utf-8"))
    return [Bug(**(row | {"lies": tuple(row.get("lies", ()))})) for row in rows]


def attempt(
    bug: Bug | None, lies: tuple[str, ...] = (), seeds: int = SEEDS, simulator: str = "network"
) -> str | None:
    """Play stories with a bug, or without one; return the first failure, None where none is."""
    with TemporaryDirectory(prefix="planted-") as folder:
        copies = Path(folder)
        for package in PACKAGES:
            shutil.copytree(
                ROOT / package, copies / package, ignore=shutil.ignore_patterns("__pycache__")
            )
        if bug is not None:
            _plant(bug, copies / bug.file)
        roots = [str((copies / package).parent) for package in PACKAGES]
        command = [sys.executable, "-m", HUNTS[simulator], "--seeds", str(seeds)]
        for lie in lies:
            command += ["--lie", lie]
        path = os.pathsep.join([*roots, str(ROOT / "tests"), str(ROOT)])
        ended = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    if ended.returncode not in (0, 1) or (ended.returncode == 1 and not ended.stdout):
        raise RuntimeError(f"the simulator ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return ended.stdout.strip() or None


def verdict(bug: Bug) -> Verdict:
    """Try one bug."""
    return Verdict(bug, attempt(bug, bug.lies, simulator=bug.simulator))


def _plant(bug: Bug, file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    if source.count(bug.text) != 1:
        raise ValueError(f"{bug.name}: expected its text once in {bug.file}")
    file.write_text(source.replace(bug.text, bug.replacement), encoding="utf-8")
