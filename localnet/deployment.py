"""Deploys the real contracts to a local anvil, through the same script that real networks use."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from chainkit.errors import ChainkitError
from localnet.process import run_to_end

PROJECT: Final = Path(__file__).parent.parent
PARAMETERS: Final = PROJECT / "deployments" / "parameters" / "local.json"


class ScriptFailed(ChainkitError):
    """A script ended with another exit code than 0."""


def ape_environment() -> dict[str, str]:
    """Return an environment in which Ape finds its compiler and keeps its data in the project."""
    cache = PROJECT / ".cache"
    return os.environ | {
        "APE_DATA_FOLDER": os.environ.get("APE_DATA_FOLDER", str(cache / "ape")),
        "SOLCX_BINARY_PATH": os.environ.get("SOLCX_BINARY_PATH", str(cache / "solcx")),
        "PATH": f"{cache / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


def run_ape_script(name: str, url: str, *arguments: str) -> str:
    """Run one of ``scripts/`` against an anvil; return its output.

    Raises ScriptFailed with its output where the exit code is not 0.
    """
    ape = str(Path(sys.executable).parent / "ape")
    command = [ape, "run", name, "--network", url, *arguments]
    done = run_to_end(command, ape_environment(), PROJECT)
    if done.returncode != 0:
        raise ScriptFailed(f"ape run {name}", "exit 0", done.returncode, done.stderr.strip())
    return done.stdout


def deploy(url: str, record_path: Path) -> None:
    """Deploy all contracts and write the deployment record."""
    arguments = ("--parameters", str(PARAMETERS), "--record", str(record_path))
    run_ape_script("deploy", url, "--account", "test::0", *arguments)
