"""The contracts' bytecode: as they are deployed, and as XIP-49's figures come out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import solcx

from localnet.deployment import PROJECT, ape_environment

Bytecodes = Mapping[str, bytes]

PUBLISHED_SOLC: Final = "0.8.28"
PUBLISHED_SETTINGS: Final[Mapping[str, Any]] = {
    "evmVersion": "paris",
    "optimizer": {"enabled": True, "runs": 10_000},
}
"""Found by trial: with these all eight published figures come out. Paris was foundry's default
target in 2024; ours is Cancun, with solc's default of 200 runs."""


def deployed_bytecodes() -> Bytecodes:
    """Compile every contract as the deployment script does; return bytecodes by name."""
    os.environ.update(ape_environment())
    # Ape reads the environment when it is imported.
    from ape import Project, compilers
    from ape.logging import LogLevel, logger

    project = Project(PROJECT)
    with logger.at_level(LogLevel.WARNING):
        compiled = list(compilers.compile(list(project.sources.paths), project=project))
    # An interface has no bytecode, and Ape says so by "0x".
    codes = {each.name: each.deployment_bytecode.bytecode for each in compiled}
    return {name: bytes.fromhex(code[2:]) for name, code in codes.items() if code}


def published_bytecodes() -> Bytecodes:
    """Compile the four published variants as XIP-49's authors seem to have compiled theirs.

    Without Ape: it drops a project's temporary settings where the project is below the temporary
    folder.
    """
    os.environ.update(ape_environment())
    paths = sorted((PROJECT / "contracts/study/published").glob("*.sol"))
    output = solcx.compile_standard(
        {
            "language": "Solidity",
            "sources": {path.name: {"content": path.read_text("utf-8")} for path in paths},
            "settings": {
                **PUBLISHED_SETTINGS,
                "outputSelection": {"*": {"*": ["evm.bytecode.object"]}},
            },
        },
        solc_version=PUBLISHED_SOLC,
    )
    return {
        name: bytes.fromhex(contract["evm"]["bytecode"]["object"])
        for contracts in output["contracts"].values()
        for name, contract in contracts.items()
    }
