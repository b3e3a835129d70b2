"""The contracts' bytecode: as they are deployed, and as XIP-49's figures come out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from localnet.deployment import PROJECT, ape_environment

Bytecodes = Mapping[str, bytes]

PUBLISHED_SETTINGS: Final = {"evm_version": "paris", "optimization_runs": 10_000}
"""Found by trial: with these all eight published figures come out. Paris was foundry's default
target in 2024; ours is Cancun, with solc's default of 200 runs."""


def deployed_bytecodes() -> Bytecodes:
    """Compile every contract as the deployment script does; return bytecodes by name."""
    return _compiled("contracts", {})


def published_bytecodes() -> Bytecodes:
    """Compile the four published variants as XIP-49's authors seem to have compiled theirs."""
    return _compiled("contracts/study/published", PUBLISHED_SETTINGS)


def _compiled(folder: str, settings: Mapping[str, Any]) -> Bytecodes:
    os.environ.update(ape_environment())
    # Ape reads the environment when it is imported.
    from ape import Project, compilers
    from ape.logging import LogLevel, logger

    project = Project(PROJECT)
    solidity = {**project.config.solidity.model_dump(by_alias=True, mode="json"), **settings}
    paths = [path for path in project.sources.paths if path.is_relative_to(PROJECT / folder)]
    with logger.at_level(LogLevel.WARNING), project.temp_config(solidity=solidity):
        return _bytecodes(compilers.compile(paths, project=project))


def _bytecodes(contract_types: Iterable[Any]) -> Bytecodes:
    # An interface has none, and Ape says so by "0x".
    codes = {each.name: each.deployment_bytecode.bytecode for each in contract_types}
    return {name: bytes.fromhex(code[2:]) for name, code in codes.items() if code}
