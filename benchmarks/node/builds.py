"""Two builds of the services on the same packages: this one, and the last one without Envoy.

The former build is a git worktree below build/bench.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness import FOLDER
from chainkit.errors import ConfigurationError
from localnet.commands import Settings
from localnet.deployment import PROJECT

_FORMER: Final = "451a6bcad266ca998092138cb8205d0672cd5856"
"""The parent of the commit that brought Envoy: gRPC's server in Python takes all calls."""

_SOURCES: Final = ("src", "indexer", "node", "gateway", "client", "backups")


@dataclass(frozen=True, slots=True)
class Build:
    """Sources of the services."""

    name: str
    folder: Path

    def settings(self, rpc_url: str, folder: Path) -> Settings:
        """Return the settings of its commands, whose files are in a folder."""
        # Python looks here before it looks at the installed packages.
        sources = os.pathsep.join(str(self.folder / each) for each in _SOURCES)
        files = (folder / "deployment.json", folder / "password")
        return Settings(rpc_url, *files, {"PYTHONPATH": sources})


NOW: Final = Build("now", PROJECT)


def former_build() -> Build:
    """Return the former build, and make its worktree where it is missing.

    Raises ConfigurationError where git does not have the commit.
    """
    folder = FOLDER / f"former-{_FORMER[:12]}"
    if not (folder / "src").is_dir():
        _git("worktree", "add", "--force", "--detach", str(folder), _FORMER)
    return Build("before", folder)


def _git(*arguments: str) -> None:
    try:
        done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ConfigurationError("git", "a program on the PATH", "none") from error
    if done.returncode:
        expected = f"the former build's commit, {_FORMER[:12]}, in a whole clone"
        raise ConfigurationError("git", expected, done.stderr.strip())
