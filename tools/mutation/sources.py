"""The contracts under mutation and their syntax trees."""

import json
import subprocess
from pathlib import Path
from typing import Any

from chainkit.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("contracts", "contracts/base")
"""What the scripts deploy; interfaces hold no code, and tests and studies are never deployed."""


def contract_files(root: Path = ROOT) -> list[str]:
    """Return the paths of the contracts under mutation, from the root."""
    return sorted(
        str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).glob("*.sol")
    )


def syntax_trees(sources: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return solc's syntax tree of each source by path; imports are read in this project."""
    request = {
        "language": "Solidity",
        "sources": {path: {"content": source} for path, source in sources.items()},
        "settings": {"outputSelection": {path: {"": ["ast"]} for path in sources}},
    }
    answer = json.loads(
        subprocess.run(
            ["node", str(ROOT / "tools" / "solc.js"), "--standard-json"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    errors = [error for error in answer.get("errors", []) if error["severity"] == "error"]
    if errors:
        raise ConfigurationError(
            "contracts under mutation", "sources that compile", errors[0]["formattedMessage"]
        )
    return {path: answer["sources"][path]["ast"] for path in sources}
