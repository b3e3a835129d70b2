"""Deploys the real contracts to a local anvil, through the same script that real networks use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parent.parent
PARAMETERS: Final = PROJECT / "deployments" / "parameters" / "local.json"


def ape_environment() -> dict[str, str]:
    """Return an environment in which Ape finds its compiler and keeps its data in the project."""
    cache = PROJECT / ".cache"
    return os.environ | {
        "APE_DATA_FOLDER": os.environ.get("APE_DATA_FOLDER", str(cache / "ape")),
        "SOLCX_BINARY_PATH": os.environ.get("SOLCX_BINARY_PATH", str(cache / "solcx")),
        "PATH": f"{cache / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


def run_ape_script(name: str, url: str, *arguments: str) -> str:
    """Run one of ``scripts/`` against an anvil; return what it printed.

    Raises RuntimeError with its output where it ends with another code than 0.
    """
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ape"), "run", name, "--network", url, *arguments],
        cwd=PROJECT,
        env=ape_environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise RuntimeError(f"ape run {name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def deploy(url: str, record_path: Path) -> None:
    """Deploy all contracts and write the deployment record."""
    arguments = ("--parameters", str(PARAMETERS), "--record", str(record_path))
    run_ape_script("deploy", url, "--account", "test::0", *arguments)
