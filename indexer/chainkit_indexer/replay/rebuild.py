"""Signed transactions as bytes (EIP-2718): decoded, or rebuilt from an endpoint's fields.

Both functions use the same layouts; a rebuilt transaction is proved by its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import rlp

from chainkit.chain import parse_integer
from chainkit.errors import MalformedData
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import parse_bytes

_SIGNATURE: Final = ("yParity", "r", "s")
_CALL: Final = ("gas", "to", "value", "input")
_FEES: Final = ("maxPriorityFeePerGas", "maxFeePerGas")
_LAYOUTS: Final[Mapping[int, tuple[str, ...]]] = {
    0: ("nonce", "gasPrice", *_CALL, "v", "r", "s"),
    1: ("chainId", "nonce", "gasPrice", *_CALL, "accessList", *_SIGNATURE),
    2: ("chainId", "nonce", *_FEES, *_CALL, "accessList", *_SIGNATURE),
    4: ("chainId", "nonce", *_FEES, *_CALL, "accessList", "authorizationList", *_SIGNATURE),
}
"""By type, in the order of the encoding: EIP-155, 2930, 1559 and 7702. A blob transaction (type 3)
cannot be sent again: its blobs are not part of it."""

_FIRST_LEGACY_BYTE: Final = 0xC0
_CHAIN_ID_OFFSET: Final = 35
"""The number that EIP-155 adds to twice the chain id in a legacy signature's v."""


@dataclass(frozen=True, slots=True)
class SentTransaction:
    """A signed transaction's request, and its highest possible cost."""

    raw: bytes
    hash: bytes
    """32 bytes."""
    sender: str
    """Checksummed address, recovered from the signature."""
    chain_id: int | None
    """None for a legacy transaction that any chain would take (before EIP-155)."""
    nonce: int
    fee_per_gas: int
    """Highest price per gas, in wei."""
    gas: int
    """Most gas that the transaction may use."""
    to: bytes | None
    """20 bytes; None if the transaction deploys a contract."""
    value: int
    """In wei."""
    calldata: bytes

    @property
    def highest_cost(self) -> int:
        """The balance that the sender needs for the transaction to be accepted, in wei."""
        return self.gas * self.fee_per_gas + self.value


def read_transaction(raw: bytes) -> SentTransaction:
    """Decode a signed transaction. Raises MalformedData for one that cannot be sent again."""
    from eth_account import Account

    kind = 0 if raw[:1] >= bytes([_FIRST_LEGACY_BYTE]) else int.from_bytes(raw[:1], "big")
    if kind not in _LAYOUTS:
        raise MalformedData("transaction", "type 0, 1, 2 or 4", kind)
    names = _LAYOUTS[kind]
    try:
        items = dict(zip(names, rlp.decode(raw if kind == 0 else raw[1:]), strict=True))
        sender = Account.recover_transaction(raw)
        return _sent_transaction(raw, sender, items)
    # The libraries raise any error for bytes that are no transaction.
    except Exception as error:
        raise MalformedData("transaction", f"one of type {kind}", error) from error


def _sent_transaction(raw: bytes, sender: str, items: Mapping[str, bytes]) -> SentTransaction:
    def number(name: str) -> int:
        return int.from_bytes(items[name], "big")

    return SentTransaction(
        raw=raw,
        hash=keccak256(raw),
        sender=sender,
        chain_id=number("chainId") if "chainId" in items else _chain_id_of(number("v")),
        nonce=number("nonce"),
        fee_per_gas=number("maxFeePerGas" if "maxFeePerGas" in items else "gasPrice"),
        gas=number("gas"),
        to=items["to"] or None,
        value=number("value"),
        calldata=items["input"],
    )


def _chain_id_of(v: int) -> int | None:
    return (v - _CHAIN_ID_OFFSET) // 2 if v >= _CHAIN_ID_OFFSET else None


def rebuild_transaction(fields: Mapping[str, Any]) -> bytes | None:
    """Rebuild a signed transaction from the answer to ``eth_getTransactionByHash``.

    None for a type that cannot be sent again. The caller compares the hash. Raises KeyError,
    TypeError or ValueError where a field is missing or has another form.
    """
    kind = parse_integer(fields.get("type") or "0x0")
    if kind not in _LAYOUTS:
        return None
    encoded: bytes = rlp.encode([_item(fields, name) for name in _LAYOUTS[kind]])
    return encoded if kind == 0 else bytes([kind]) + encoded


def _item(fields: Mapping[str, Any], name: str) -> Any:
    if name == "to":
        return parse_bytes(fields["to"], 20) if fields.get("to") else b""
    if name == "input":
        return parse_bytes(fields["input"])
    if name == "accessList":
        return [_access(entry) for entry in fields["accessList"]]
    if name == "authorizationList":
        return [_authorization(entry) for entry in fields["authorizationList"]]
    if name == "yParity":
        # Some endpoints still use only the field's older name.
        return parse_integer(fields.get("yParity") or fields["v"])
    return parse_integer(fields[name])


def _access(entry: Mapping[str, Any]) -> Sequence[Any]:
    keys = [parse_bytes(key, 32) for key in entry["storageKeys"]]
    return [parse_bytes(entry["address"], 20), keys]


def _authorization(entry: Mapping[str, Any]) -> Sequence[Any]:
    return [
        parse_integer(entry["chainId"]),
        parse_bytes(entry["address"], 20),
        parse_integer(entry["nonce"]),
        *(parse_integer(entry[name]) for name in _SIGNATURE),
    ]
