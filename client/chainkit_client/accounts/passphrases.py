"""The passphrase of a backup account file: typed, or derived from a wallet's signature (H26).

Not each wallet signs the same text twice alike, and a contract wallet's signature is of no fixed
form: a file that such a signature sealed would never open again. So the wallet signs twice before a
file is made, and its key must be the one that both signatures show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from Crypto.Hash import SHA256
from Crypto.Protocol.KDF import HKDF

from chainkit.errors import ChainkitError, ConfigurationError, InvalidSignature
from chainkit.identity.text import eip191_digest
from chainkit.signatures import address_of, recover_public_key

LEAST_PASSPHRASE: Final = 12
"""Characters of a new passphrase: whoever steals the file may try for years."""

_CONTEXT: Final = b"chainkit backup account file: wallet, version 1"
_KEY_LENGTH: Final = 32
_WALLETS_V: Final = 27
_SCALARS: Final = 64

Sign = Callable[[bytes], bytes]
"""Returns a wallet's signature (ERC-191) of a text: 65 bytes."""


class UnsteadyWallet(ChainkitError):
    """A wallet signed one text in two ways, so that its signature opens nothing later."""


def check_passphrase(passphrase: str) -> str:
    """Return a passphrase for a new file. Raises ConfigurationError for a short one."""
    if len(passphrase) < LEAST_PASSPHRASE:
        expected = f"at least {LEAST_PASSPHRASE} characters"
        raise ConfigurationError("passphrase", expected, f"{len(passphrase)}")
    return passphrase


def signed_text(salt: bytes) -> bytes:
    """Return the text that a wallet signs: each file has another one."""
    return (
        "Open a chainkit backup account file\n\n"
        f"File: {salt.hex()}\n\n"
        "This signature and the file together open all messages of this account. Sign only in a "
        "program that you started yourself to make or to restore this file."
    ).encode()


def new_wallet_passphrase(salt: bytes, address: str, sign: Sign) -> str:
    """Return the passphrase for a new file, after the wallet has signed twice.

    Raises UnsteadyWallet, and InvalidSignature for one of another wallet than the address's.
    """
    first, second = (_scalars(salt, address, sign) for _ in range(2))
    if first != second:
        expected = "the same signature of the same text twice: seal by a passphrase"
        raise UnsteadyWallet("wallet", expected, "two different ones")
    return _derived(first, salt)


def wallet_passphrase(salt: bytes, address: str, sign: Sign) -> str:
    """Return the passphrase of a file. Raises InvalidSignature as for a new one."""
    return _derived(_scalars(salt, address, sign), salt)


def _scalars(salt: bytes, address: str, sign: Sign) -> bytes:
    """Return R and S: wallets write the last byte in several ways."""
    text = signed_text(salt)
    signature = sign(text)
    v = signature[_SCALARS:][:1]
    if v and v[0] >= _WALLETS_V:
        signature = signature[:_SCALARS] + bytes([v[0] - _WALLETS_V]) + signature[_SCALARS + 1 :]
    signer = address_of(recover_public_key(signature, eip191_digest(text))).lower()
    if signer != address:
        raise InvalidSignature("signature", f"one by the wallet {address}", f"one by {signer}")
    return signature[:_SCALARS]


def _derived(scalars: bytes, salt: bytes) -> str:
    # The library's stubs allow several keys.
    key: Any = HKDF(scalars, _KEY_LENGTH, salt, SHA256, context=_CONTEXT)
    return bytes(key).hex()
