"""A key that this process holds: of a keystore, or of the environment on a local chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainkit.council.signing.hashes import (
    encode_transaction,
    transaction_digest,
    typed_data_digest,
)
from chainkit.signatures import SigningKey, address_of


class KeySigner:
    """Signs with a key in memory; its repr shows only the address."""

    __slots__ = ("_key", "address", "label")

    def __init__(self, label: str, secret: bytes) -> None:
        """Take the 32-byte secret. Raises InvalidSignature if it is no scalar of the curve."""
        self.label = label
        self._key = SigningKey(secret)
        self.address = address_of(self._key.public_key)

    def __repr__(self) -> str:
        """Show the key's address, never the key."""
        return f"KeySigner({self.label}, {self.address})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse to be pickled: that would write the secret."""
        raise TypeError("a KeySigner does not leave the process")

    def sign_typed_data(self, typed_data: Mapping[str, Any]) -> bytes:
        """Sign EIP-712 JSON; see ``Signer``."""
        signature = self._key.sign(typed_data_digest(typed_data))
        return signature[:-1] + bytes([27 + signature[-1]])

    def sign_transaction(self, fields: Mapping[str, Any]) -> bytes:
        """Sign an EIP-1559 transaction; see ``Signer``."""
        return encode_transaction(fields, self._key.sign(transaction_digest(fields)))
