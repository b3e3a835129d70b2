"""Keystores: files with a key, which a password opens."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any, Final

from eth_account import Account

from chainkit.documents.fields import parse_json
from chainkit.documents.files import read_regular
from chainkit.errors import ConfigurationError, InvalidSignature
from chainkit.signatures import SigningKey, address_of
from chainkit.terminal.keystore_form import address_in, read_form
from chainkit.terminal.passwords import password_from, read_password, unmarked

_COUNTER_DIGITS: Final = 32
_LARGEST_FILE: Final = 2**16
"""Bytes of a keystore, of which programs write some hundreds."""


def load_secret(
    keystore_path: Path, password_path: Path | None, password_descriptor: int | None = None
) -> bytes:
    """Decrypt a keystore to its 32-byte secret; ask for the password if no option names its source.

    The password is in a file, or comes through a file descriptor, which is closed afterwards.
    Raises ConfigurationError for a missing or foreign file and for a wrong password.
    """
    keystore = _read_keystore(keystore_path)
    if password_descriptor is None:
        password = read_password(password_path)
    else:
        password = password_from(password_descriptor)
    return _decrypted(f"keystore {keystore_path}", keystore, password)


def open_keystore(path: Path, password: str) -> SigningKey:
    """Decrypt a keystore with a password that is known already; errors are ``load_secret``'s."""
    return SigningKey(_decrypted(f"keystore {path}", _read_keystore(path), password))


def write_keystore(path: Path, secret: bytes, password: str) -> None:
    """Write a secret of 32 bytes as a keystore that only its owner may read.

    The keystore appears whole or not at all, and never replaces another file. Raises
    ConfigurationError where the file exists, or cannot be written.
    """
    keystore = Account.encrypt(secret, password)
    # eth-keyfile leaves out leading zeros, without which other programs refuse the file.
    parameters = keystore["crypto"]["cipherparams"]
    parameters["iv"] = parameters["iv"].zfill(_COUNTER_DIGITS)
    content = json.dumps(keystore) + "\n"
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


def _decrypted(subject: str, keystore: dict[str, Any], password: str) -> bytes:
    address = address_in(keystore, subject)
    # `from None`: nothing of the password or of the key belongs into a traceback.
    try:
        secret = bytes(Account.decrypt(keystore, password))
        found = address_of(SigningKey(secret).public_key)
    except InvalidSignature:
        raise ConfigurationError(subject, "a key of secp256k1", "another number") from None
    except ValueError:
        raise ConfigurationError(subject, "its password", "another password") from None
    except MemoryError:
        raise ConfigurationError(subject, "memory for its scrypt", "too little") from None
    if address not in (None, found.lower()):
        expected = f"the key of {address}, as its address says"
        raise ConfigurationError(subject, expected, f"the key of {found.lower()}", "address")
    return secret


def load_signing_key(keystore_path: Path, password_path: Path | None) -> SigningKey:
    """Decrypt a keystore to a key that signs; see ``load_secret``."""
    return SigningKey(load_secret(keystore_path, password_path))


def _read_keystore(path: Path) -> dict[str, Any]:
    subject = f"keystore {path}"
    content = parse_json(unmarked(read_regular(path, subject, _LARGEST_FILE)), subject)
    return read_form(content, subject)
