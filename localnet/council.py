"""A security council on a private chain: a Safe of three owners, two of whom must sign."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from eth_utils.address import to_checksum_address

from localnet.accounts import COUNCIL, development_account, write_keystore
from localnet.anvil import Anvil
from localnet.safe import create_safe, deploy_safe_contracts

SAFE_VERSION: Final = "1.4.1"
THRESHOLD: Final = 2
OWNERS: Final[dict[str, int]] = {"ann": 3, "ben": 4, "cleo": 5}
"""Development accounts by the names that the owners have."""

DEPLOYER: Final = "deployer"
"""The first owner of the contracts of a local deployment, until the hand-over to the Safe."""
PAYER: Final = "payer"
"""The account that executes: none of the owners."""
_NUMBERS: Final = {**OWNERS, DEPLOYER: COUNCIL, PAYER: 6}


def create_council(anvil: Anvil, folder: Path, password: str) -> str:
    """Create the Safe, and everybody's keystore in the folder; return the Safe's address."""
    for name, number in _NUMBERS.items():
        write_keystore(keystore(folder, name), password, number)
    deploy_safe_contracts(anvil, SAFE_VERSION)
    owners = [development_account(number).address for number in OWNERS.values()]
    return to_checksum_address(create_safe(anvil, SAFE_VERSION, owners, THRESHOLD))


def keystore(folder: Path, name: str) -> Path:
    """Return where somebody's keystore is."""
    return folder / f"{name}.keystore"
