"""The hashes that are signed: of EIP-712 JSON, and of an EIP-1559 transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import rlp
from eth_abi.exceptions import EncodingError
from eth_account.messages import SignableMessage, encode_typed_data
from eth_utils.exceptions import ValidationError
from rlp.exceptions import RLPException

from chainkit.errors import InvalidSignature, MalformedData
from chainkit.signatures import SIGNATURE_LENGTH, keccak256

_TYPE: Final = b"\x02"
"""EIP-2718's prefix of an EIP-1559 transaction."""

_FIELDS: Final = (
    "chainId",
    "nonce",
    "maxPriorityFeePerGas",
    "maxFeePerGas",
    "gas",
    "to",
    "value",
    "data",
)
_UNSIGNED: Final = len(_FIELDS) + 1
"""The fields and the access list, which is always empty."""
_WORD: Final = 32
_SUBJECT: Final = "signed transaction"

_NO_TYPED_DATA: Final = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    EncodingError,
    ValidationError,
)
"""Errors that the encoder raises for malformed content."""


def typed_data_message(typed_data: Mapping[str, Any]) -> SignableMessage:
    """Return EIP-712 JSON as wallets take it: the hash of its domain, and that of its message.

    Raises MalformedData where the JSON is no typed data.
    """
    try:
        return encode_typed_data(full_message=dict(typed_data))
    except _NO_TYPED_DATA as error:
        expected = "types, primaryType, domain and message of EIP-712"
        raise MalformedData("typed data", expected, f"{type(error).__name__}: {error}") from error


def typed_data_digest(typed_data: Mapping[str, Any]) -> bytes:
    """Return the 32-byte hash that an EIP-712 signature is over; errors as above."""
    message = typed_data_message(typed_data)
    return keccak256(b"\x19" + message.version + message.header + message.body)


def transaction_digest(fields: Mapping[str, Any]) -> bytes:
    """Return the 32-byte hash that a transaction's signature is over."""
    return keccak256(_TYPE + rlp.encode(_unsigned(fields)))


def encode_transaction(fields: Mapping[str, Any], signature: bytes) -> bytes:
    """Return the EIP-2718 envelope of a transaction with its signature, V 0 or 1."""
    r, s = _integer(signature[:_WORD]), _integer(signature[_WORD : 2 * _WORD])
    encoded: bytes = rlp.encode([*_unsigned(fields), signature[-1], r, s])
    return _TYPE + encoded


def decode_transaction(raw: bytes) -> tuple[bytes, bytes]:
    """Return the hash that an envelope's signature signs, and the signature, V 27 or 28.

    Raises InvalidSignature where the bytes are no such envelope.
    """
    items = _items(raw)
    v, r, s = items[_UNSIGNED:]
    if v not in (b"", b"\x01") or max(len(r), len(s)) > _WORD:
        raise InvalidSignature(_SUBJECT, "a signature in it", "other bytes")
    signature = r.rjust(_WORD, b"\0") + s.rjust(_WORD, b"\0") + bytes([27 + _integer(v)])
    assert len(signature) == SIGNATURE_LENGTH
    return keccak256(_TYPE + rlp.encode(items[:_UNSIGNED])), signature


def transaction_cost(raw: bytes) -> int:
    """Return the most wei that the gas of an envelope's transaction may cost; errors as above."""
    items = _items(raw)
    return _integer(items[_FIELDS.index("gas")]) * _integer(items[_FIELDS.index("maxFeePerGas")])


def _items(raw: bytes) -> list[Any]:
    """Return an envelope's fields, access list and signature."""
    expected, got = "an EIP-1559 envelope", f"{len(raw)} other bytes"
    try:
        items = rlp.decode(raw[1:])
    except RLPException as error:
        raise InvalidSignature(_SUBJECT, expected, got) from error
    if raw[:1] != _TYPE or not isinstance(items, list) or len(items) != _UNSIGNED + 3:
        raise InvalidSignature(_SUBJECT, expected, got)
    return items


def _unsigned(fields: Mapping[str, Any]) -> list[Any]:
    return [*(fields.get(name, b"") for name in _FIELDS), []]


def _integer(value: bytes) -> int:
    return int.from_bytes(value, "big")
