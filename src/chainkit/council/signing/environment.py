"""A raw key in the environment: for a local chain, where nothing is at stake."""

from __future__ import annotations

import os
import re
from typing import Final

from chainkit.council.signing.key import KeySigner
from chainkit.errors import ConfigurationError, InvalidSignature

PRIVATE_KEY_VARIABLE: Final = "CHAINKIT_PRIVATE_KEY"

LOCAL_CHAIN_IDS: Final = (31337, 1337)
"""Chain ids of anvil, Hardhat and Ganache."""


def has_environment_key() -> bool:
    """Whether the variable is set at all."""
    return PRIVATE_KEY_VARIABLE in os.environ


def take_environment_key(chain_id: int) -> KeySigner:
    """Return the signer of the key in the environment, and remove the key from the environment.

    Raises ConfigurationError on any chain but a local one, and where the value is no private key.
    """
    text = os.environ.pop(PRIVATE_KEY_VARIABLE, "").strip()
    if chain_id not in LOCAL_CHAIN_IDS:
        expected = f"a local chain ({' or '.join(map(str, LOCAL_CHAIN_IDS))})"
        got = f"chain id {chain_id}: use --keystore FILE or --account ALIAS"
        raise ConfigurationError(PRIVATE_KEY_VARIABLE, expected, got)
    if re.fullmatch("(0x)?[0-9a-fA-F]{64}", text) is None:
        raise _no_key()
    try:
        return KeySigner(PRIVATE_KEY_VARIABLE, bytes.fromhex(text.removeprefix("0x")))
    except InvalidSignature:
        raise _no_key() from None


def _no_key() -> ConfigurationError:
    # The error shows no part of the value: the value may be a key with one digit too many.
    return ConfigurationError(PRIVATE_KEY_VARIABLE, "0x and 64 hex digits of a key", "other text")
