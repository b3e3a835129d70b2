"""Checks of an account, a signing key and an HTTP address before a call uses them."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from eth_utils.address import is_hex_address, to_checksum_address

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.errors import ConfigurationError
from chainkit.signatures import PUBLIC_KEY_LENGTH, is_valid_public_key
from chainkit.text.printable import printable

NO_ACCOUNT: Final = "0x" + 40 * "0"
"""The zero address: no account has this address."""

HTTP_ADDRESS_MAXIMUM: Final = 512
"""Bytes: what the registry's `maxHttpAddressLength` answers."""


def check_account(address: str, subject: str = "owner") -> str:
    """Return an account's address with its checksum; errors name the ``subject``.

    Raises ConfigurationError for anything but 0x and 40 hex digits, a checksum (EIP-55) that
    does not match, and the address that belongs to nobody.
    """
    if not address.startswith("0x") or not is_hex_address(address):
        raise ConfigurationError(subject, "0x and 40 hex digits", f'"{printable(address)}"')
    checksummed = to_checksum_address(address)
    # Digits all in one case carry no checksum.
    if address not in (checksummed, address.lower(), "0x" + address[2:].upper()):
        # The error does not show the right checksum of these digits: the digits may be wrong.
        expected = "an address that its own checksum (EIP-55) matches"
        raise ConfigurationError(subject, expected, f"{address}: copy it from its source again")
    if checksummed == NO_ACCOUNT:
        raise ConfigurationError(subject, "an account", "the zero address")
    return checksummed


def has_checksum(address: str) -> bool:
    """Return whether a well-formed address has its checksum: digits all in one case carry none."""
    return address == to_checksum_address(address)


def check_no_contract_of_ours(record: DeploymentRecord, address: str, subject: str) -> None:
    """Raise ConfigurationError where an address is one of the record's contracts.

    No contract of the record can use a right: the right would be lost.
    """
    for contract in record.contracts:
        if to_checksum_address(contract.address) == address:
            raise ConfigurationError(subject, "an account that can act", f"{contract.name} itself")


def check_public_key(public_key: bytes) -> None:
    """Raise ConfigurationError unless the key is an uncompressed secp256k1 point (§3.1.1)."""
    if len(public_key) != PUBLIC_KEY_LENGTH:
        got = f"{len(public_key)} bytes"
        raise ConfigurationError("public key", f"{PUBLIC_KEY_LENGTH} bytes", got)
    if not is_valid_public_key(public_key):
        expected = "0x04 and a point of secp256k1"
        raise ConfigurationError("public key", expected, f"0x{public_key.hex()[:16]}…")


def check_http_address(http_address: str) -> None:
    """Raise ConfigurationError unless this is a plain http(s) URL.

    Plain is printable ASCII (other hosts have a punycode form), with a host, and with no user
    before it: ``https://node.example@elsewhere`` would be read as the wrong host.
    """
    shown = f'"{printable(http_address)}"'
    if not http_address:
        raise ConfigurationError("http address", "an http:// or https:// URL", "an empty one")
    if len(http_address) > HTTP_ADDRESS_MAXIMUM:
        expected = f"at most {HTTP_ADDRESS_MAXIMUM} bytes"
        raise ConfigurationError("http address", expected, f"{len(http_address)} characters")
    if any(not 0x20 < ord(character) < 0x7F for character in http_address):
        raise ConfigurationError("http address", "printable ASCII without spaces", shown)
    # Browsers and libraries disagree on what a backslash separates.
    if "\\" in http_address:
        raise ConfigurationError("http address", "a URL without a backslash", shown)
    try:
        parts = urlsplit(http_address)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigurationError("http address", "an http:// or https:// URL with a host", shown)
    if "@" in parts.netloc:
        raise ConfigurationError("http address", "a host without a user before it", shown)
