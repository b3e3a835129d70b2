"""anvil's development accounts. Their keys are public: never fund them elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from eth_account import Account
from eth_account.signers.local import LocalAccount

from localnet.private_file import write_private

MNEMONIC: Final = "test test test test test test test test test test test junk"

COUNCIL: Final = 1
"""Number of the account that deployments/parameters/local.json makes owner and admin."""

_ITERATIONS: Final = 4096


def development_account(number: int) -> LocalAccount:
    """Return one of the accounts that anvil funds."""
    Account.enable_unaudited_hdwallet_features()
    account: LocalAccount = Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{number}")
    return account


def write_keystore(path: Path, password: str, number: int) -> None:
    """Write an account's key as a keystore, as real owners hold theirs."""
    account = development_account(number)
    # Everybody knows the key: a password that is slow to guess would only cost time.
    keystore = Account.encrypt(bytes(account.key), password, iterations=_ITERATIONS)
    write_private(path, json.dumps(keystore) + "\n")
