"""The transaction of an account with a key: signed by its owner, as there is no Safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chainkit.council.signing.hashes import encode_transaction, transaction_digest


@dataclass(frozen=True, slots=True)
class AccountTransaction:
    """An EIP-1559 transaction without value."""

    chain_id: int
    sender: bytes
    """20 bytes."""
    to: bytes
    """20 bytes."""
    data: bytes
    nonce: int
    gas: int
    """The most gas that the transaction may use."""
    max_fee_per_gas: int
    """Wei."""
    max_priority_fee_per_gas: int
    """Wei."""

    @property
    def fields(self) -> dict[str, Any]:
        """The transaction by Ethereum's names, as signers take it."""
        return {
            "type": 2,
            "chainId": self.chain_id,
            "nonce": self.nonce,
            "to": self.to,
            "value": 0,
            "data": self.data,
            "gas": self.gas,
            "maxFeePerGas": self.max_fee_per_gas,
            "maxPriorityFeePerGas": self.max_priority_fee_per_gas,
        }

    @property
    def hash(self) -> bytes:
        """The hash that the sender signs, 32 bytes."""
        return transaction_digest(self.fields)

    def raw(self, signature: bytes) -> bytes:
        """Return the signed EIP-2718 envelope; ``signature`` is 65 bytes with V 27 or 28."""
        return encode_transaction(self.fields, signature[:-1] + bytes([signature[-1] - 27]))
