"""The project's own solc, for contracts that only a test needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.solidity import compile_standard, standard_input


def compile_contract(sources: Mapping[str, str], path: str, name: str) -> dict[str, Any]:
    """Return layout and code of one contract; ``sources`` are texts by path."""
    selection = {path: {name: ["storageLayout", "evm.bytecode.object"]}}
    output = compile_standard(standard_input(sources, {"evmVersion": "cancun"}, selection))
    found: dict[str, Any] = output["contracts"][path][name]
    return found


def read_sources(root: Path, *folders: str) -> dict[str, str]:
    """Return the Solidity files in folders of a root, and those in the root itself, by path."""
    paths = [*root.glob("*.sol"), *(path for each in folders for path in (root / each).rglob("*"))]
    return {
        str(path.relative_to(root)): path.read_text() for path in paths if path.suffix == ".sol"
    }
