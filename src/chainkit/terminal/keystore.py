"""Keystores, and the passwords that open them: from a file, a descriptor or the terminal."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from eth_account import Account

from chainkit.documents.fields import read_json
from chainkit.documents.files import unreadable
from chainkit.errors import ConfigurationError
from chainkit.signatures import SigningKey

_FOREIGN_KEYSTORE: Final = (
    *(ValueError, TypeError, KeyError, AttributeError, AssertionError, NotImplementedError),
    *(ArithmeticError, MemoryError),
)
"""Errors that decrypting raises for numbers and texts which no keystore holds."""

_HEX: Final = re.compile("(?:[0-9a-fA-F]{2}){16,}")
_KEY_LENGTH: Final = 32
_MOST_WORK: Final = 2**24
"""The largest parameter of a derivation that some program writes, and many times more."""


def load_secret(
    keystore_path: Path, password_path: Path | None, password_descriptor: int | None = None
) -> bytes:
    """Decrypt a keystore to its 32-byte secret, asking for the password if nothing else has it.

    It is in a file, or comes through a file descriptor, which is closed afterwards. Raises
    ConfigurationError for a missing or foreign file and for a wrong password.
    """
    keystore = _read_keystore(keystore_path)
    if password_descriptor is None:
        password = read_password(password_path)
    else:
        password = _password_from(password_descriptor)
    return _decrypted(keystore_path, keystore, password)


def open_keystore(path: Path, password: str) -> SigningKey:
    """Decrypt a keystore with a password that is known already; errors are ``load_secret``'s."""
    return SigningKey(_decrypted(path, _read_keystore(path), password))


def write_keystore(path: Path, secret: bytes, password: str) -> None:
    """Write a secret of 32 bytes as a keystore that its owner alone may read.

    It appears whole or not at all, and never in the place of another file. Raises
    ConfigurationError where there is one, or it cannot be written.
    """
    content = json.dumps(Account.encrypt(secret, password)) + "\n"
    subject = f"keystore {path}"
    partial = path.with_name(f".{secrets.token_hex(16)}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(content)
            os.link(partial, path)
        finally:
            partial.unlink()
    except FileExistsError as error:
        raise ConfigurationError(subject, None, "already exists") from error
    except FileNotFoundError as error:
        raise ConfigurationError(
            subject, "a folder that exists", f"no folder {path.parent}"
        ) from error
    except OSError as error:
        raise ConfigurationError(subject, "a file that can be written", error.strerror) from error


def _decrypted(keystore_path: Path, keystore: dict[str, Any], password: str) -> bytes:
    try:
        return bytes(Account.decrypt(keystore, password))
    except _FOREIGN_KEYSTORE:
        # `from None`: nothing of the password or of the key belongs into a traceback.
        subject = f"keystore {keystore_path}"
        if _has_form(keystore):
            raise ConfigurationError(subject, "its password", "another password") from None
        raise ConfigurationError(subject, "a keystore v3", "another format") from None


def load_signing_key(keystore_path: Path, password_path: Path | None) -> SigningKey:
    """Decrypt a keystore to a key that signs; see ``load_secret``."""
    return SigningKey(load_secret(keystore_path, password_path))


def _read_keystore(path: Path) -> dict[str, Any]:
    content = read_json(path, f"keystore {path}")
    if not isinstance(content, dict):
        raise ConfigurationError(f"keystore {path}", "an object", type(content).__name__)
    return content


def _has_form(keystore: Mapping[str, Any]) -> bool:
    """Tell whether a keystore is one that programs write: then it is the password that is wrong."""
    crypto = keystore.get("crypto")
    if keystore.get("version") != 3 or not isinstance(crypto, dict):
        return False
    parameters = crypto.get("kdfparams")
    if not isinstance(parameters, dict):
        return False
    match crypto.get("kdf"):
        case "scrypt":
            numbers = tuple(parameters.get(name) for name in ("n", "r", "p"))
        case "pbkdf2" if parameters.get("prf") == "hmac-sha256":
            numbers = (parameters.get("c"),)
        case _:
            return False
    texts = (crypto.get("ciphertext"), crypto.get("mac"), parameters.get("salt"))
    return (
        parameters.get("dklen") == _KEY_LENGTH
        and all(isinstance(text, str) and _HEX.fullmatch(text) for text in texts)
        and all(isinstance(number, int) and 0 < number <= _MOST_WORK for number in numbers)
    )


def _has_terminal() -> bool:
    """Tell whether a password can be typed unseen: the terminal need not be standard input."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return sys.stdin is not None and sys.stdin.isatty()
    return True


def read_password(path: Path | None, confirm: bool = False) -> str:
    """Return the password in a file, or the one that is typed, twice where it is new.

    Raises ConfigurationError where there is neither a file nor a terminal.
    """
    if path is None:
        if not _has_terminal():
            raise ConfigurationError("password", "a terminal or --password-file", "neither")
        # To standard error: a script reads only the answer on standard output.
        typed: str = click.prompt(
            "Password", hide_input=True, confirmation_prompt=confirm, err=True
        )
        return typed
    try:
        password = path.read_text().rstrip("\r\n")
    except OSError as error:
        raise unreadable(ConfigurationError, f"password file {path}", error) from error
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
