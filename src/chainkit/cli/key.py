"""``chainkit key``: the keystore that signs envelopes, reports or transactions."""

from __future__ import annotations

import os
from pathlib import Path

import click
from eth_account import Account

from chainkit.errors import ConfigurationError
from chainkit.signatures import SigningKey, address_of
from chainkit.terminal.command import CompleteGroup
from chainkit.terminal.keystore import load_signing_key, write_keystore
from chainkit.terminal.options import echo_json, json_option, keystore_option, password_option
from chainkit.terminal.passwords import read_password
from chainkit.text.hexadecimal import hex0x


@click.group(cls=CompleteGroup)
def key() -> None:
    """Make and show the key that signs envelopes, reports and transactions.

    \b
    Example:
      chainkit key new --keystore node.json
    """


@key.command("new")
@keystore_option
@password_option
@json_option
def new(keystore_path: Path, password_path: Path | None, as_json: bool) -> None:
    """Make a secp256k1 key and write it encrypted, readable by its owner alone.

    \b
    Example:
      chainkit key new --keystore node.json --password-file password.txt
    """
    if os.path.lexists(keystore_path):
        raise ConfigurationError(f"keystore {keystore_path}", None, "already exists")
    password = read_password(password_path, confirm=True)
    account = Account.create()
    write_keystore(keystore_path, bytes(account.key), password)
    _show(SigningKey(bytes(account.key)), as_json)


@key.command("show")
@keystore_option
@password_option
@json_option
def show(keystore_path: Path, password_path: Path | None, as_json: bool) -> None:
    """Print the public key to register and the account address; never the key itself.

    \b
    Example:
      chainkit key show --keystore node.json
    """
    _show(load_signing_key(keystore_path, password_path), as_json)


def _show(signing_key: SigningKey, as_json: bool) -> None:
    public_key, address = hex0x(signing_key.public_key), address_of(signing_key.public_key)
    if as_json:
        echo_json({"public_key": public_key, "address": address})
    else:
        click.echo(f"public key  {public_key}\naddress     {address}")
