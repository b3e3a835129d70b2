"""The sender of a transaction, and the address of a contract that it creates."""

from __future__ import annotations

from typing import Final

from chainkit.errors import InvalidSignature, MalformedData
from chainkit.ethereum.row import ADDRESS, Column, Row, encoded, integer_item
from chainkit.ethereum.row import transaction_subject as subject_of
from chainkit.ethereum.transaction import (
    ARBITRUM_INTERNAL,
    LEGACY,
    SIGNATURE_COLUMNS,
    TRANSACTION_TYPES,
    signed_chain_id,
    signed_items,
    typed,
)
from chainkit.signatures import keccak256, recover_public_key
from chainkit.types import ADDRESS_LENGTH

ARBOS_ADDRESS: Final = 0xA4B05.to_bytes(ADDRESS_LENGTH, "big")
"""The sender of all internal transactions of an Arbitrum chain."""

_FROM: Final = Column("from_address", ADDRESS)


def recover_sender(transaction: Row) -> bytes:
    """Return the 20 bytes of the account that sent a row of transactions.

    Deposits, and the types that Arbitrum adds, have no signature: their sender is the row's, to
    which the hash commits, or always the same (internal transactions). Raises Unprovable as
    transaction_bytes does; MalformedData where ``v`` does not fit its type, and InvalidSignature
    where the signature recovers to no key or has a high S (EIP-2).
    """
    if transaction["type"] == ARBITRUM_INTERNAL:
        return ARBOS_ADDRESS
    type_ = TRANSACTION_TYPES.get(transaction["type"])
    if type_ is not None and not type_.is_signed:
        return bytes(_FROM.checked(transaction, subject_of))
    digest = signing_hash(transaction)
    v, r, s = (column.checked(transaction, subject_of) for column in SIGNATURE_COLUMNS)
    signature = r + s + bytes([_y_parity(transaction, int(v))])
    try:
        return keccak256(recover_public_key(signature, digest)[1:])[-ADDRESS_LENGTH:]
    except InvalidSignature as error:
        subject, place = subject_of(transaction), error.subject
        raise InvalidSignature(subject, error.expected, error.got, place) from error


def signing_hash(transaction: Row) -> bytes:
    """Return the 32 bytes that the sender of a row of transactions signed.

    Raises Unprovable for a type that nobody signs; else as transaction_bytes does.
    """
    items = signed_items(transaction)
    if transaction["type"] == LEGACY:
        chain_id = signed_chain_id(transaction)
        items += [] if chain_id is None else [integer_item(chain_id), b"", b""]
    return keccak256(typed(transaction, items))


def create_address(sender: bytes, nonce: int) -> bytes:
    """Return the 20 bytes of the contract that a transaction creates (yellow paper, section 7)."""
    return keccak256(encoded([sender, integer_item(nonce)]))[-ADDRESS_LENGTH:]


def _y_parity(transaction: Row, v: int) -> int:
    if transaction["type"] == LEGACY:
        # 27 and 28, or from 35 on two for each chain: the odd one is parity 0.
        return (v + 1) % 2
    if v not in (0, 1):
        raise MalformedData(subject_of(transaction), "0 or 1", v, "column v")
    return v
