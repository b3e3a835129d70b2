"""The contracts as their sources stand now, and the ABIs as the package ships them."""

import json
from importlib import resources
from typing import Any

from ape import compilers, project
from ape.contracts import ContractContainer
from ape.logging import LogLevel, logger


def compile_contracts() -> dict[str, ContractContainer]:
    """Compile all contracts of the project and return them by name.

    Ape's own cache is neither read nor written: it does not notice when a file that a contract
    imports has changed, and would have the old code deployed.
    """
    paths = list(project.sources.paths)
    with logger.at_level(LogLevel.WARNING):
        contract_types = list(compilers.compile(paths, project=project))
    return {
        contract_type.name: ContractContainer(contract_type)
        for contract_type in contract_types
        if contract_type.name
    }


def shipped_abi(name: str) -> list[dict[str, Any]]:
    """Return a contract's ABI from the Python package."""
    file = resources.files("chainkit.abi") / f"{name}.json"
    return list(json.loads(file.read_text(encoding="utf-8")))
