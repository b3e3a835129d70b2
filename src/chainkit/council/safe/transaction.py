"""A Safe's transaction: its hashes (EIP-712), and the calldata that executes it.

This module uses no network: the hash follows from the chain id, the Safe and the transaction, as
Safe 1.3.0 and later compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Self

from eth_utils.address import to_checksum_address

from chainkit.contracts.interface import shipped_interface
from chainkit.council.safe.multi_send import InnerCall, decode_batch, encode_batch
from chainkit.errors import MalformedData
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit.types import ADDRESS_LENGTH

ZERO_ADDRESS: Final = bytes(ADDRESS_LENGTH)

_SUBJECT: Final = "Safe transaction"
_WORD: Final = 32
Fields = tuple[tuple[str, str], ...]
"""Names and types of an EIP-712 struct, in the order of hashing."""

_DOMAIN_FIELDS: Final[Fields] = (("chainId", "uint256"), ("verifyingContract", "address"))
_TRANSACTION_FIELDS: Final[Fields] = (
    ("to", "address"),
    ("value", "uint256"),
    ("data", "bytes"),
    ("operation", "uint8"),
    ("safeTxGas", "uint256"),
    ("baseGas", "uint256"),
    ("gasPrice", "uint256"),
    ("gasToken", "address"),
    ("refundReceiver", "address"),
    ("nonce", "uint256"),
)


class Operation(IntEnum):
    """The kind of call that a Safe makes to its target."""

    CALL = 0
    DELEGATECALL = 1
    """The target's code can do anything to the Safe, so only MultiSendCallOnly is allowed."""


@dataclass(frozen=True, slots=True)
class SafeTransaction:
    """A transaction of a Safe; two are equal where their hashes are."""

    chain_id: int
    safe: bytes
    """20 bytes."""
    to: bytes
    """20 bytes."""
    value: int
    """Wei."""
    data: bytes
    operation: Operation
    safe_tx_gas: int
    base_gas: int
    gas_price: int
    """The Safe's refund per gas, in wei of ``gas_token``."""
    gas_token: bytes
    """20 bytes; zero for the chain's own coin."""
    refund_receiver: bytes
    """20 bytes; zero for whoever executes."""
    nonce: int

    def __post_init__(self) -> None:
        """Raise MalformedData for a field that does not fit its Solidity type."""
        for name in ("safe", "to", "gas_token", "refund_receiver"):
            if len(address := getattr(self, name)) != ADDRESS_LENGTH:
                expected = f"{ADDRESS_LENGTH} bytes"
                raise MalformedData(_SUBJECT, expected, f"{len(address)} bytes", name)
        for name in ("chain_id", "value", "safe_tx_gas", "base_gas", "gas_price", "nonce"):
            if not 0 <= (number := getattr(self, name)) < 2 ** (8 * _WORD):
                raise MalformedData(_SUBJECT, "a uint256", number, name)
        if self.operation not in tuple(Operation):
            raise MalformedData(_SUBJECT, "operation 0 or 1", int(self.operation), "operation")

    @classmethod
    def of_calls(
        cls,
        *,
        chain_id: int,
        safe: bytes,
        nonce: int,
        calls: Sequence[InnerCall],
        multi_send: bytes,
    ) -> Self:
        """Return the transaction that makes the calls, without value and repaying no gas.

        One call is made by the Safe itself, several by a delegatecall of MultiSendCallOnly, whose
        20-byte address is ``multi_send``. Raises MalformedData without any call.
        """
        if len(calls) == 1:
            to, data, operation = calls[0].target, calls[0].calldata, Operation.CALL
        else:
            to, data, operation = multi_send, encode_batch(calls), Operation.DELEGATECALL
        return cls(
            chain_id=chain_id,
            safe=safe,
            to=to,
            value=0,
            data=data,
            operation=operation,
            safe_tx_gas=0,
            base_gas=0,
            gas_price=0,
            gas_token=ZERO_ADDRESS,
            refund_receiver=ZERO_ADDRESS,
            nonce=nonce,
        )

    def inner_calls(self, multi_send: bytes) -> tuple[InnerCall, ...]:
        """Return the calls that a transaction made by ``of_calls`` makes.

        Raises MalformedData for all else: value, gas that the Safe repays or sets aside, and a
        delegatecall of anything but a batch of calls by ``multi_send``.
        """
        for name in ("value", "safe_tx_gas", "base_gas", "gas_price"):
            if number := getattr(self, name):
                raise MalformedData(_SUBJECT, f"{name} 0", number, name)
        for name in ("gas_token", "refund_receiver"):
            if (address := getattr(self, name)) != ZERO_ADDRESS:
                raise MalformedData(_SUBJECT, f"no {name}", to_checksum_address(address), name)
        if self.operation == Operation.CALL:
            return (InnerCall(self.to, self.data),)
        if self.to != multi_send:
            expected = f"a delegatecall of MultiSendCallOnly {to_checksum_address(multi_send)} only"
            raise MalformedData(_SUBJECT, expected, to_checksum_address(self.to), "to")
        return decode_batch(self.data)

    @property
    def domain_hash(self) -> bytes:
        """32 bytes: the hash of the Safe and its chain, the contract's ``domainSeparator()``."""
        type_hash = _type_hash("EIP712Domain", _DOMAIN_FIELDS)
        return keccak256(type_hash + _word(self.chain_id) + _word(self.safe))

    @property
    def message_hash(self) -> bytes:
        """32 bytes: the transaction's hash without Safe and chain, as hardware wallets show it."""
        values = self._values() | {"data": keccak256(self.data)}
        type_hash = _type_hash("SafeTx", _TRANSACTION_FIELDS)
        return keccak256(type_hash + b"".join(map(_word, values.values())))

    @property
    def hash(self) -> bytes:
        """32 bytes: what the owners sign, the contract's ``getTransactionHash``."""
        return keccak256(self.encoded)

    @property
    def encoded(self) -> bytes:
        """66 bytes, whose hash the owners sign: an owner that is a contract checks these bytes."""
        return b"\x19\x01" + self.domain_hash + self.message_hash

    def typed_data(self) -> dict[str, Any]:
        """Return the JSON that ``eth_signTypedData_v4`` and hardware wallets sign.

        Numbers of the message are decimal strings: JavaScript would round large ones.
        """
        values = self._values()
        return {
            "types": {
                "EIP712Domain": _json_fields(_DOMAIN_FIELDS),
                "SafeTx": _json_fields(_TRANSACTION_FIELDS),
            },
            "primaryType": "SafeTx",
            "domain": {
                "chainId": self.chain_id,
                "verifyingContract": to_checksum_address(self.safe),
            },
            "message": {
                name: _json_value(kind, values[name]) for name, kind in _TRANSACTION_FIELDS
            },
        }

    def exec_calldata(self, signatures: bytes) -> bytes:
        """Return the calldata that executes the transaction; ``signatures`` in ``pack``'s order."""
        *values, _ = self.arguments
        return shipped_interface("Safe").encode("execTransaction", *values, signatures)

    @property
    def arguments(self) -> tuple[int | bytes, ...]:
        """The arguments of the Safe's ``getTransactionHash``, in its order."""
        return tuple(self._values().values())

    def _values(self) -> dict[str, int | bytes]:
        """Return what the owners sign, by name and in the order of _TRANSACTION_FIELDS."""
        return {
            "to": self.to,
            "value": self.value,
            "data": self.data,
            "operation": self.operation,
            "safeTxGas": self.safe_tx_gas,
            "baseGas": self.base_gas,
            "gasPrice": self.gas_price,
            "gasToken": self.gas_token,
            "refundReceiver": self.refund_receiver,
            "nonce": self.nonce,
        }


def _type_hash(name: str, fields: Fields) -> bytes:
    return keccak256(f"{name}({','.join(f'{kind} {field}' for field, kind in fields)})".encode())


def _word(value: int | bytes) -> bytes:
    return value.to_bytes(_WORD, "big") if isinstance(value, int) else value.rjust(_WORD, b"\0")


def _json_fields(fields: Fields) -> list[dict[str, str]]:
    return [{"name": name, "type": kind} for name, kind in fields]


def _json_value(kind: str, value: int | bytes) -> str:
    if isinstance(value, int):
        return str(int(value))
    return to_checksum_address(value) if kind == "address" else hex0x(value)
