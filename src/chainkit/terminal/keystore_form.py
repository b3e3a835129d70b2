"""The form of a keystore v3: read strictly, before its password costs any time or memory.

A library that decrypts reads no more than it needs, so that a file of another form could open as
another account: by a cipher that is not read, or a derived key too short to check a password.
"""

from __future__ import annotations

import re
from typing import Any, Final

from chainkit.documents.fields import Fields
from chainkit.errors import ConfigurationError

_KEY_LENGTH: Final = 32
"""Bytes of a derived key: one half decrypts, and the other checks the password."""

MOST_MEMORY: Final = 2**30
"""Bytes that scrypt may take, four times what geth's keystores take."""
_MOST_WORK: Final = 2**24
"""Rounds of pbkdf2, or n·r·p of scrypt: eight times those of geth's keystores, some seconds."""
_MOST_WIDTH: Final = 2**7
"""r·p of scrypt, of which no program writes half: each takes rounds that are slow in Python."""
_BYTES_PER_BLOCK: Final = 128
"""Bytes that scrypt takes for each unit of n·r."""

_ADDRESS: Final = re.compile("(?:0x)?([0-9a-fA-F]{40})")
_HASH: Final = re.compile("(?:0x)?[0-9a-fA-F]{64}")
_SALT: Final = re.compile("(?:0x)?(?:[0-9a-fA-F]{2}){1,64}")
_COUNTER: Final = re.compile("(?:0x)?(?:[0-9a-fA-F]{2}){1,16}")
"""eth-keyfile leaves out leading zeros of the counter's start."""


def read_form(content: Any, subject: str) -> dict[str, Any]:
    """Return a keystore with its names lowered, as ethers writes ``Crypto``.

    Raises ConfigurationError about ``subject`` that names a field which does not belong to a
    keystore v3, or takes more than MOST_MEMORY or minutes of work.
    """
    lowered: dict[str, Any] = _lowered(content, subject)
    keystore = Fields(lowered, subject)
    _check_version(keystore, subject)
    crypto = keystore.inner("crypto")
    crypto.matching("cipher", re.compile("aes-128-ctr"), "cipher aes-128-ctr")
    kdf = crypto.matching("kdf", re.compile("scrypt|pbkdf2"), "scrypt or pbkdf2").group()
    parameters = crypto.inner("kdfparams")
    _check_costs(kdf, parameters, subject)
    parameters.matching("salt", _SALT, "1 to 64 bytes in hex digits")
    crypto.inner("cipherparams").matching("iv", _COUNTER, "1 to 16 bytes in hex digits")
    for name in ("ciphertext", "mac"):
        crypto.matching(name, _HASH, "64 hex digits")
    return lowered


def address_in(keystore: dict[str, Any], subject: str) -> str | None:
    """Return the address in a keystore, 0x and lower-case digits; None where it has none.

    Raises ConfigurationError where the address has another form.
    """
    if not keystore.get("address"):
        return None
    match = Fields(keystore, subject).matching("address", _ADDRESS, "40 hex digits")
    return f"0x{match.group(1).lower()}"


def _lowered(content: Any, subject: str) -> Any:
    if not isinstance(content, dict):
        return content
    lowered = {name.lower(): _lowered(value, subject) for name, value in content.items()}
    if len(lowered) < len(content):
        expected = "names that differ in more than capitals"
        raise ConfigurationError(subject, expected, "a field twice")
    return lowered


def _check_version(keystore: Fields, subject: str) -> None:
    if keystore.integer("version") != 3:
        got = f"version {keystore.integer('version')}"
        raise ConfigurationError(subject, "a keystore v3", got, "version")


def _check_costs(kdf: str, parameters: Fields, subject: str) -> None:
    length = parameters.integer("dklen")
    if length != _KEY_LENGTH:
        place = parameters.path("dklen")
        raise ConfigurationError(subject, f"a key of {_KEY_LENGTH} bytes", length, place)
    if kdf == "pbkdf2":
        parameters.matching("prf", re.compile("hmac-sha256"), "hmac-sha256")
        _positive(parameters, "c", subject, _MOST_WORK)
        return
    n, r, p = (
        _positive(parameters, name, subject, most)
        for name, most in (("n", _MOST_WORK), ("r", _MOST_WIDTH), ("p", _MOST_WIDTH))
    )
    if n & (n - 1) or n == 1:
        raise ConfigurationError(subject, "a power of 2 above 1", n, parameters.path("n"))
    for words, found, most in (
        ("r times p", r * p, _MOST_WIDTH),
        ("bytes of memory for n and r", _BYTES_PER_BLOCK * n * r, MOST_MEMORY),
        ("n times r times p", n * r * p, _MOST_WORK),
    ):
        if found > most:
            raise ConfigurationError(subject, f"{words} up to {most}", found, "crypto.kdfparams")


def _positive(parameters: Fields, name: str, subject: str, most: int) -> int:
    value = parameters.integer(name, most)
    if not value:
        place = parameters.path(name)
        raise ConfigurationError(subject, f"an integer from 1 to {most}", value, place)
    return value
