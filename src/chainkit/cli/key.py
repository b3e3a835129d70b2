"""``chainkit key``: the keystore that signs envelopes, reports or transactions."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import click
from eth_account import Account

from chainkit.cli.command import CompleteGroup
from chainkit.cli.options import echo_json, hex0x, json_option, keystore_option, password_option
from chainkit.errors import ConfigurationError
from chainkit.fields import read_json
from chainkit.signatures import SigningKey, address_of

_FOREIGN_KEYSTORE: Final = (
    *(ValueError, TypeError, KeyError, AttributeError, AssertionError, NotImplementedError),
    *(ArithmeticError, MemoryError),
)
"""What numbers and texts that no keystore holds make of its decryption."""


def load_secret(
    keystore_path: Path, password_path: Path | None, password_descriptor: int | None = None
) -> bytes:
    """Decrypt a keystore to its 32-byte secret, asking for the password if nothing else has it.

    It is in a file, or comes through a file descriptor, which is closed afterwards. Raises
    ConfigurationError for a missing or foreign file and for a wrong password.
    """
    keystore = _read_keystore(keystore_path)
    if password_descriptor is None:
        password = _password(password_path)
    else:
        password = _password_from(password_descriptor)
    try:
        return bytes(Account.decrypt(keystore, password))
    except _FOREIGN_KEYSTORE:
        # `from None`: nothing of the password or of the key belongs into a traceback.
        raise ConfigurationError(
            f"keystore {keystore_path}",
            "a keystore v3 and its password",
            "another password or another format",
        ) from None


def load_signing_key(keystore_path: Path, password_path: Path | None) -> SigningKey:
    """Decrypt a keystore to a key that signs; see ``load_secret``."""
    return SigningKey(load_secret(keystore_path, password_path))


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
        raise ConfigurationError(f"keystore {keystore_path}", "a file that does not exist", "one")
    password = _password(password_path, confirm=True)
    account = Account.create()
    _write_keystore(keystore_path, json.dumps(Account.encrypt(bytes(account.key), password)))
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


def _write_keystore(path: Path, content: str) -> None:
    try:
        # O_EXCL: a key is never written over another one, nor for a moment readable by others.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(content + "\n")
        except OSError:
            path.unlink()  # half a key is none
            raise
    except OSError as error:
        subject = f"keystore {path}"
        raise ConfigurationError(subject, "a file that can be written", error.strerror) from error


def _read_keystore(path: Path) -> dict[str, Any]:
    content = read_json(path, f"keystore {path}")
    if not isinstance(content, dict):
        raise ConfigurationError(f"keystore {path}", "an object", type(content).__name__)
    return content


def _has_terminal() -> bool:
    """Tell whether a password can be typed unseen: the terminal need not be standard input."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return sys.stdin is not None and sys.stdin.isatty()
    return True


def _password(path: Path | None, confirm: bool = False) -> str:
    if path is None:
        if not _has_terminal():
            raise ConfigurationError("password", "a terminal or --password-file", "neither")
        # To standard error: what a script reads on standard output is the answer alone.
        typed: str = click.prompt(
            "Password", hide_input=True, confirmation_prompt=confirm, err=True
        )
        return typed
    try:
        password = path.read_text().rstrip("\r\n")
    except OSError as error:
        raise ConfigurationError(
            f"password file {path}", "a readable file", error.strerror
        ) from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"password file {path}", "UTF-8 text", "other bytes") from None
    if confirm and not password:
        raise ConfigurationError(f"password file {path}", "a password", "an empty file")
    return password


def _password_from(descriptor: int) -> str:
    subject = f"--password-fd {descriptor}"
    try:
        with os.fdopen(descriptor, "rb") as file:
            return file.read().decode().rstrip("\r\n")
    except OSError as error:
        expected = "a descriptor open for reading"
        raise ConfigurationError(subject, expected, error.strerror) from error
    except UnicodeDecodeError:
        raise ConfigurationError(subject, "UTF-8 text", "other bytes") from None
