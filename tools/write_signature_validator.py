"""Writes the code by which a node checks signatures of contract wallets into its package.

Run ``python -m tools.write_signature_validator`` after a change to `node/solidity`; ``--check``
writes nothing and exits with 1 if the file is out of date.
"""

from __future__ import annotations

import json
import sys
from typing import Final

import click

from localnet.deployment import PROJECT
from tools.solidity import compile_standard, deployed_settings, read_sources, standard_input

TARGET: Final = PROJECT / "node" / "chainkit_node" / "inboxes" / "signature_validator.json"
FOLDER: Final = "node/solidity"
NAME: Final = "SignatureValidator"

_SETTINGS: Final = {
    # Updates may name blocks that are older than the instructions of the contracts' own version.
    "evmVersion": "byzantium",
    # Nobody looks for the metadata of code that is never deployed.
    "metadata": {"appendCBOR": False, "bytecodeHash": "none"},
}


def content() -> str:
    """Return the file's text: the creation code, before the arguments of the constructor."""
    path = f"{FOLDER}/{NAME}.sol"
    selection = {path: {NAME: ["evm.bytecode.object"]}}
    sources = read_sources(PROJECT, FOLDER)
    output = compile_standard(standard_input(sources, deployed_settings() | _SETTINGS, selection))
    code = output["contracts"][path][NAME]["evm"]["bytecode"]["object"]
    return json.dumps({"creation_code": f"0x{code}"}, indent=2) + "\n"


def is_outdated() -> bool:
    """Return whether the file is missing, or not what the source compiles to."""
    return not TARGET.exists() or TARGET.read_text("utf-8") != content()


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if the file is outdated.")
def main(check: bool) -> None:
    """Write node/chainkit_node/inboxes/signature_validator.json, or check it.

    Example: python -m tools.write_signature_validator
    """
    if not check:
        TARGET.write_text(content(), "utf-8")
    elif is_outdated():
        again = "run python -m tools.write_signature_validator"
        click.echo(f"{TARGET.name}: outdated; {again}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
