"""The project's own solc, for contracts that only a test needs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localnet.deployment import PROJECT, ape_environment

SOLC = PROJECT / ".cache" / "solcx" / "solc-v0.8.28"


def compile_contract(sources: Mapping[str, str], path: str, name: str) -> dict[str, Any]:
    """Return layout and code of one contract; ``sources`` are texts by path."""
    content = {
        "language": "Solidity",
        "sources": {path: {"content": text} for path, text in sources.items()},
        "settings": {
            "evmVersion": "cancun",
            "outputSelection": {path: {name: ["storageLayout", "evm.bytecode.object"]}},
        },
    }
    done = subprocess.run(
        [SOLC, "--standard-json"],
        input=json.dumps(content),
        capture_output=True,
        text=True,
        check=True,
        env=ape_environment(),
    )
    output = json.loads(done.stdout)
    errors = [each for each in output.get("errors", []) if each["severity"] == "error"]
    assert not errors, errors
    found: dict[str, Any] = output["contracts"][path][name]
    return found


def read_sources(root: Path, *folders: str) -> dict[str, str]:
    """Return the Solidity files in folders of a root, and those in the root itself, by path."""
    paths = [*root.glob("*.sol"), *(path for each in folders for path in (root / each).rglob("*"))]
    return {
        str(path.relative_to(root)): path.read_text() for path in paths if path.suffix == ".sol"
    }
