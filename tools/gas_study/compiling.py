"""The contracts' bytecode: with a deployment's settings, and with those of XIP-49's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from localnet.deployment import PROJECT
from tools.solidity import compile_standard, compiled_contracts, read_sources, standard_input

Bytecodes = Mapping[str, bytes]

STUDY: Final = "tools/gas_study/solidity"
"""The contracts that only the study deploys."""

PUBLISHED_SETTINGS: Final[dict[str, Any]] = {
    "evmVersion": "paris",
    "optimizer": {"enabled": True, "runs": 10_000},
}
"""Found by trial: with these and solc 0.8.28 all eight published figures come out. Paris was
foundry's default target in 2024; ours is Cancun, with solc's default of 200 runs."""


def deployed_bytecodes() -> Bytecodes:
    """Return every contract's bytecode by name, the study's too, compiled as for deployment."""
    compiled = compiled_contracts("contracts", STUDY)
    return {name: contract.creation_code for name, contract in compiled.items()}


def published_bytecodes() -> Bytecodes:
    """Compile the four published variants as XIP-49's authors seem to have compiled theirs."""
    sources = read_sources(PROJECT / STUDY / "published", ".")
    selection = {"*": {"*": ["evm.bytecode.object"]}}
    output = compile_standard(standard_input(sources, PUBLISHED_SETTINGS, selection))
    return {
        name: bytes.fromhex(contract["evm"]["bytecode"]["object"])
        for contracts in output["contracts"].values()
        for name, contract in contracts.items()
    }
