"""Keys of a private chain: anvil's development accounts, which are public, and nodes' own.

Never fund these accounts elsewhere.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from eth_account import Account
from eth_account.signers.local import LocalAccount

from chainkit.signatures import SigningKey
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
    _write(path, password, bytes(development_account(number).key))


def write_new_keystore(path: Path, password: str) -> SigningKey:
    """Write a new key as a keystore, for a node of a private chain, and return the key."""
    secret = bytes(Account.create().key)
    _write(path, password, secret)
    return SigningKey(secret)


def _write(path: Path, password: str, secret: bytes) -> None:
    # No such key protects anything: a password that is slow to guess would only cost time.
    keystore = Account.encrypt(secret, password, iterations=_ITERATIONS)
    write_private(path, json.dumps(keystore) + "\n")
