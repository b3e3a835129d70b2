"""The contracts under mutation and their syntax trees."""

from pathlib import Path
from typing import Any

from tools.breaking import ROOT
from tools.solidity import compile_standard, standard_input

FOLDERS = ("contracts", "contracts/base")
"""The contracts that the scripts deploy; interfaces have no code."""


def contract_files(root: Path = ROOT) -> list[str]:
    """Return the paths of the contracts under mutation, from the root."""
    return sorted(
        str(path.relative_to(root)) for folder in FOLDERS for path in (root / folder).glob("*.sol")
    )


def syntax_trees(sources: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return solc's syntax tree of each source by path; imports are read in this project.

    Raises ConfigurationError if the sources do not compile.
    """
    selection = {path: {"": ["ast"]} for path in sources}
    output = compile_standard(standard_input(sources, {}, selection))
    return {path: output["sources"][path]["ast"] for path in sources}
