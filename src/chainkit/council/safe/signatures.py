"""Signatures of a Safe's owners: their signers, and the order that the Safe requires.

A Safe tells kinds of signatures apart by their last byte, V. Only those are taken that a key made
over the transaction's hash: 27 and 28 (EIP-712), 31 and 32 (``eth_sign``, with its prefix).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from chainkit.errors import InvalidSignature
from chainkit.signatures import SIGNATURE_LENGTH, address_of, keccak256, recover_public_key
from chainkit.types import HASH_LENGTH

_ETH_SIGN_PREFIX: Final = b"\x19Ethereum Signed Message:\n32"
_TYPED_DATA: Final = (27, 28)
_ETH_SIGN: Final = (31, 32)
_KEYLESS_KINDS: Final = {0: "a contract's signature", 1: "a hash approved on the chain"}
_EXPECTED: Final = "V 27 or 28 (EIP-712), or 31 or 32 (eth_sign)"


def recover_owner(hash_: bytes, signature: bytes) -> str:
    """Return the checksummed address whose key signed the 32-byte hash of a SafeTransaction.

    Raises InvalidSignature for another length than 65 bytes, for another V than 27, 28, 31 and 32,
    a high S (each signature would otherwise have a second form), or where it recovers to nobody.
    """
    if len(hash_) != HASH_LENGTH:
        raise InvalidSignature("signed hash", f"{HASH_LENGTH} bytes", f"{len(hash_)} bytes")
    if len(signature) != SIGNATURE_LENGTH:
        got = f"{len(signature)} bytes"
        raise InvalidSignature("owner's signature", f"{SIGNATURE_LENGTH} bytes", got)
    kind = signature[-1]
    if kind in _TYPED_DATA:
        signed, parity = hash_, kind - _TYPED_DATA[0]
    elif kind in _ETH_SIGN:
        signed, parity = keccak256(_ETH_SIGN_PREFIX + hash_), kind - _ETH_SIGN[0]
    else:
        words = f", {_KEYLESS_KINDS[kind]}" if kind in _KEYLESS_KINDS else ""
        raise InvalidSignature("owner's signature", _EXPECTED, f"V {kind}{words}")
    return address_of(recover_public_key(signature[:-1] + bytes([parity]), signed))


def as_eth_sign(signature: bytes) -> bytes | None:
    """Return the signature with the V of ``eth_sign``, to which some devices do not add 4.

    None where its V is not that of EIP-712.
    """
    kind = signature[-1]
    return signature[:-1] + bytes([kind + 4]) if kind in _TYPED_DATA else None


def check_signatures(
    hash_: bytes, owners: Collection[str], signatures: Iterable[bytes]
) -> Mapping[str, bytes]:
    """Return the signatures by the checksummed address of the owner who made each.

    The order is the Safe's own. Raises InvalidSignature for one that ``recover_owner`` refuses, one
    by somebody who is no owner, and a second one by the same owner, of whatever kind.
    """
    found: dict[str, bytes] = {}
    for number, signature in enumerate(signatures, start=1):
        owner, place = recover_owner(hash_, signature), f"signature {number}"
        if owner not in owners:
            expected = "that of an owner of the Safe"
            raise InvalidSignature("owner's signature", expected, f"that of {owner}", place)
        if owner in found:
            expected = "one of each owner"
            raise InvalidSignature("owner's signature", expected, f"a second of {owner}", place)
        found[owner] = signature
    return dict(sorted(found.items(), key=lambda item: int(item[0], 16)))


def pack(hash_: bytes, signatures: Iterable[bytes]) -> bytes:
    """Return the signatures one behind the other, by ascending address of the signers.

    A Safe takes no other order: so it sees that no owner signed twice. Raises InvalidSignature as
    ``recover_owner`` does, and for two by the same signer.
    """
    given = tuple(signatures)
    signers = {recover_owner(hash_, signature) for signature in given}
    return b"".join(check_signatures(hash_, signers, given).values())
