"""Signers of the tests: honest ones of development accounts, and wallets with a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chainkit.council.signing import KeySigner
from support.chains.chain import dev_secret

TYPED_DATA: dict[str, Any] = {
    "types": {
        "EIP712Domain": [
            {"name": "chainId", "type": "uint256"},
            {"name": "verifyingContract", "type": "address"},
        ],
        "Transfer": [{"name": "to", "type": "address"}, {"name": "nonce", "type": "uint256"}],
    },
    "primaryType": "Transfer",
    "domain": {"chainId": 31337, "verifyingContract": "0x" + "11" * 20},
    "message": {"to": "0x" + "22" * 20, "nonce": 7},
}
FIELDS: dict[str, Any] = {
    "type": 2,
    "chainId": 31337,
    "nonce": 3,
    "to": b"\x33" * 20,
    "value": 0,
    "data": b"\x01\x02\x03\x04",
    "gas": 50_000,
    "maxPriorityFeePerGas": 10**9,
    "maxFeePerGas": 10**10,
}


def dev_signer(number: int) -> KeySigner:
    """The signer of an anvil development account."""
    return KeySigner("keystore", dev_secret(number))


@dataclass
class FaultyWallet:
    """A wallet that changes the data before it signs, or its signature afterwards."""

    inner: KeySigner
    before: Callable[[Any], Any] = lambda asked: asked
    after: Callable[[bytes], bytes] = lambda signed: signed
    label: str = "wallet"

    @property
    def address(self) -> str:
        return self.inner.address

    def sign_typed_data(self, typed_data: Mapping[str, Any]) -> bytes:
        return self.after(self.inner.sign_typed_data(self.before(typed_data)))

    def sign_transaction(self, fields: Mapping[str, Any]) -> bytes:
        return self.after(self.inner.sign_transaction(self.before(fields)))
