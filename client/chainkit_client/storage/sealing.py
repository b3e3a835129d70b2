"""Seals the secret columns of the database with a key that a password opens.

scrypt derives a key from the password; this key opens the database's key, which seals the values.
So a change of password touches no row. XChaCha20-Poly1305 seals each value, with random nonces of
24 bytes, and binds the value to its table, column and row: a value that is moved to another row
does not open there. An older copy of a whole row does open: the seal does not prevent that a writer
of the file sets a row back.

A value that rows are found by is stored as a tag, an HMAC under a key of its own: the hash of a
short text would show the text to a reader who tries all short texts.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from typing import Any, Final, cast

from Crypto.Cipher import ChaCha20_Poly1305
from Crypto.Protocol.KDF import scrypt

from chainkit.errors import ConfigurationError, StoreError

KEY_LENGTH: Final = 32
SALT_LENGTH: Final = 16
_NONCE_LENGTH: Final = 24
_TAG_LENGTH: Final = 16
_KEY_COLUMN: Final = "keyring.sealed_key"
_BLOCK_SIZE: Final = 8
_PARALLEL: Final = 1
_TAGS: Final = b"chainkit client: tags"

SCRYPT_COST: Final = 2**15
"""scrypt's N: 32 MB of memory and about 0.1 s for each guess."""
_MOST_COST: Final = 2**20
"""The highest accepted cost: a forged higher cost would take the machine's memory."""


class WrongPassword(ConfigurationError):
    """The password does not open the database's key."""


class DamagedValue(StoreError):
    """A sealed value was changed, or is in another row than the one it was sealed for."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """The database's key, as stored."""

    salt: bytes
    """16 bytes."""
    cost: int
    """scrypt's N, a power of 2."""
    sealed_key: bytes


class Seal:
    """Seals and opens values; its repr shows no key."""

    def __init__(self, key: bytes) -> None:
        """Take the database's key of 32 bytes."""
        self._key = key
        self._tag_key = hmac.digest(key, _TAGS, "sha256")

    def tag(self, value: bytes, column: str) -> bytes:
        """Return the 32 bytes that stand for a value in a column (``table.column``)."""
        return hmac.digest(self._tag_key, _place(column, value), "sha256")

    def sealed(self, value: bytes, column: str, row: bytes) -> bytes:
        """Return a value sealed for a column (``table.column``) and the identity of its row."""
        nonce = os.urandom(_NONCE_LENGTH)
        cipher = ChaCha20_Poly1305.new(key=self._key, nonce=nonce)
        cipher.update(_place(column, row))
        content, tag = cipher.encrypt_and_digest(value)
        return nonce + tag + content

    def opened(self, sealed: bytes, column: str, row: bytes) -> bytes:
        """Return the value that was sealed for this column and row.

        Raises DamagedValue where the value was changed, or sealed for another place.
        """
        nonce, rest = sealed[:_NONCE_LENGTH], sealed[_NONCE_LENGTH:]
        try:
            cipher = ChaCha20_Poly1305.new(key=self._key, nonce=nonce)
            cipher.update(_place(column, row))
            return cipher.decrypt_and_verify(rest[_TAG_LENGTH:], rest[:_TAG_LENGTH])
        except ValueError as error:
            subject = f"{column} of row 0x{row.hex()[:16]}"
            raise DamagedValue(subject, "the value as sealed", "another") from error


def new_keyring(password: str, cost: int = SCRYPT_COST) -> tuple[Keyring, Seal]:
    """Draw a key for a new database, and seal it with a password."""
    key, salt = os.urandom(KEY_LENGTH), os.urandom(SALT_LENGTH)
    sealed = _password_seal(password, salt, cost).sealed(key, _KEY_COLUMN, _row(salt, cost))
    return Keyring(salt, cost, sealed), Seal(key)


def open_keyring(keyring: Keyring, password: str) -> Seal:
    """Return the seal of a database's key. Raises WrongPassword where the key does not open.

    A changed keyring looks like a wrong password.
    """
    if not 1 < keyring.cost <= _MOST_COST or keyring.cost & (keyring.cost - 1):
        expected = f"a power of 2 of up to {_MOST_COST}"
        raise StoreError("cost of the password", expected, keyring.cost)
    seal = _password_seal(password, keyring.salt, keyring.cost)
    try:
        key = seal.opened(keyring.sealed_key, _KEY_COLUMN, _row(keyring.salt, keyring.cost))
    except DamagedValue as error:
        raise WrongPassword("password", "the one of this database", "another") from error
    return Seal(key)


def _password_seal(password: str, salt: bytes, cost: int) -> Seal:
    # The library also takes bytes, but its stubs know only text.
    key: Any = scrypt(password, cast(str, salt), KEY_LENGTH, cost, _BLOCK_SIZE, _PARALLEL)
    return Seal(key)


def _row(salt: bytes, cost: int) -> bytes:
    return salt + cost.to_bytes(4, "big")


def _place(column: str, row: bytes) -> bytes:
    # A zero byte ends the column, so that no two places have one form.
    return column.encode() + b"\0" + row
