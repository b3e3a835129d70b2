"""Sends a transaction of each type to an anvil after Prague, one block each."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Any

import rlp
from eth_account import Account

from chainkit.errors import RefusedRequest
from chainkit.signatures import SigningKey, keccak256
from localnet.anvil import Anvil
from support.chains.chain import dev_secret

_SENDER = 4
_TO = b"\x11" * 20
_FEE, _TIP, _GAS = 10**11, 1, 200_000
_ZERO_BLOB = bytes(4096 * 32)
_POINT_AT_INFINITY = b"\xc0" + bytes(47)
"""The commitment to a blob of zeros, and its proof: no trusted setup is needed for that one."""


def send_every_type(anvil: Anvil) -> list[int]:
    """Send one of each of the types 0 to 4; return the types, in the order of their blocks."""
    secret = dev_secret(_SENDER)
    chain_id = int(anvil.request("eth_chainId"), 16)
    address = Account.from_key(secret).address
    call = {"chainId": chain_id, "to": "0x" + _TO.hex(), "value": 1, "gas": _GAS}
    fees = {"maxFeePerGas": _FEE, "maxPriorityFeePerGas": _TIP}
    access = [{"address": "0x" + "22" * 20, "storageKeys": ["0x" + "33" * 32, "0x" + "00" * 32]}]
    delegation = {"chainId": 0, "address": "0x" + "44" * 20, "nonce": 4}
    signed: list[dict[str, Any]] = [
        {"gasPrice": _FEE},
        {"gasPrice": _FEE, "accessList": access},
        fees | {"data": "0x1234"},
        fees | {"authorizationList": [Account.sign_authorization(delegation, secret)]},
    ]
    raw = [
        bytes(Account.sign_transaction(call | each | {"nonce": nonce}, secret).raw_transaction)
        for nonce, each in enumerate(signed)
    ]
    # An accepted delegation counts as a transaction of its signer.
    raw.append(_blob_transaction(chain_id, nonce=len(signed) + 1, secret=secret))
    for nonce, transaction in zip((0, 1, 2, 3, 5), raw, strict=True):
        _send(anvil, transaction)
        while _newest_nonce(anvil, address) != nonce:
            time.sleep(0.005)  # anvil answers before it mines
    return [0, 1, 2, 4, 3]


def _newest_nonce(anvil: Anvil, address: str) -> int | None:
    """Return the nonce of an account's transaction in the newest block, None if there is none.

    The account's own count is updated before the block is there.
    """
    for transaction in anvil.request("eth_getBlockByNumber", "latest", True)["transactions"]:
        if transaction["from"] == address.lower():
            return int(transaction["nonce"], 16)
    return None


def _send(anvil: Anvil, transaction: bytes) -> None:
    try:
        anvil.request("eth_sendRawTransaction", "0x" + transaction.hex())
    except RefusedRequest as error:
        # A very busy machine answers so late that the transaction was sent once more.
        if "already imported" not in str(error.got):
            raise


def _blob_transaction(chain_id: int, nonce: int, secret: bytes) -> bytes:
    """Return a signed transaction with one blob of zeros beside it (EIP-4844, network form)."""
    versioned_hash = _versioned_hash(_POINT_AT_INFINITY)
    fields = [chain_id, nonce, _TIP, _FEE, _GAS, _TO, 1, b"", [], 10**9, [versioned_hash]]
    signature = SigningKey(secret).sign(keccak256(b"\x03" + rlp.encode(fields)))
    r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:64]))
    sidecar = [[_ZERO_BLOB], [_POINT_AT_INFINITY], [_POINT_AT_INFINITY]]
    return b"\x03" + bytes(rlp.encode([[*fields, signature[64], r, s], *sidecar]))


def _versioned_hash(commitment: bytes) -> bytes:
    return b"\x01" + sha256(commitment).digest()[1:]
