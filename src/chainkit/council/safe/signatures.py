"""Signatures of a Safe's owners: their signers, and the order that the Safe requires.

A Safe tells kinds of signatures apart by their byte V, the last of 65. A key makes them over the
transaction's hash: 27 and 28 (EIP-712), 31 and 32 (``eth_sign``, with its prefix). A contract's
signature (V 0, EIP-1271) is a claim until the Safe has asked the contract. An approval on the chain
(V 1) is in no file: only the chain has the approval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from eth_utils.address import to_checksum_address

from chainkit.errors import InvalidSignature
from chainkit.signatures import SIGNATURE_LENGTH, address_of, keccak256, recover_public_key
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH

_ETH_SIGN_PREFIX: Final = b"\x19Ethereum Signed Message:\n32"
_TYPED_DATA: Final = (27, 28)
_ETH_SIGN: Final = (31, 32)
_KEYLESS_KINDS: Final = {0: "a contract's signature", 1: "a hash approved on the chain"}
_EXPECTED: Final = "V 27 or 28 (EIP-712), or 31 or 32 (eth_sign)"
_WORD: Final = 32
_CONTRACT: Final = b"\0"
_APPROVED: Final = b"\1"


def signer_of(hash_: bytes, signature: bytes) -> str:
    """Return the checksummed address of the owner who made a signature, or is claimed to.

    A signature of more than 65 bytes is a contract's, and proves nothing before the contract was
    asked. Raises InvalidSignature as ``recover_owner``, and for a contract's signature in another
    form than ``contract_signature`` writes.
    """
    if not is_of_contract(signature):
        return recover_owner(hash_, signature)
    if not has_contract_form(signature):
        expected = "the contract, 65, V 0, and the length of what follows"
        raise InvalidSignature("contract's signature", expected, f"{len(signature)} other bytes")
    return to_checksum_address(signature[_WORD - ADDRESS_LENGTH : _WORD])


def is_of_contract(signature: bytes) -> bool:
    """Return whether a signature is a contract's, which has a tail behind its 65 bytes."""
    return len(signature) > SIGNATURE_LENGTH


def has_contract_form(signature: bytes) -> bool:
    """Return whether bytes have the form that ``contract_signature`` writes."""
    owner = signature[_WORD - ADDRESS_LENGTH : _WORD]
    return signature == contract_signature(owner, signature[SIGNATURE_LENGTH + _WORD :])


def contract_signature(owner: bytes, signature: bytes) -> bytes:
    """Return a contract's signature in the Safe's form, as if it were the only signature.

    ``owner`` are the contract's 20 bytes, ``signature`` is what its ``isValidSignature`` takes.
    """
    place, length = (number.to_bytes(_WORD) for number in (SIGNATURE_LENGTH, len(signature)))
    return owner.rjust(_WORD, b"\0") + place + _CONTRACT + length + signature


def approval(owner: bytes) -> bytes:
    """Return the 65 bytes that refer a Safe to the approval of an owner (20 bytes) on the chain."""
    return owner.rjust(_WORD, b"\0") + bytes(_WORD) + _APPROVED


def recover_owner(hash_: bytes, signature: bytes) -> str:
    """Return the checksummed address whose key signed the 32-byte hash of a SafeTransaction.

    Raises InvalidSignature for another length than 65 bytes, for another V than 27, 28, 31 and 32,
    a high S (each signature would otherwise have a second form), or where no key is recovered.
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

    The order is the Safe's own. Raises InvalidSignature for a signature that ``signer_of`` refuses,
    for a signer who is no owner, and for a second signature by the same owner, of whatever kind.
    """
    found: dict[str, bytes] = {}
    for number, signature in enumerate(signatures, start=1):
        owner, place = signer_of(hash_, signature), f"signature {number}"
        if owner not in owners:
            expected = "that of an owner of the Safe"
            raise InvalidSignature("owner's signature", expected, f"that of {owner}", place)
        if owner in found:
            expected = "one of each owner"
            raise InvalidSignature("owner's signature", expected, f"a second of {owner}", place)
        found[owner] = signature
    return _ascending(found)


def pack(hash_: bytes, signatures: Iterable[bytes], approved: Collection[str] = ()) -> bytes:
    """Return the signatures, concatenated by ascending address of the signers.

    ``approved`` are the checksummed addresses of owners who approved the hash on the chain. A Safe
    takes no other order: so it sees that no owner signed twice. The tails of contracts' signatures
    follow all others. Raises InvalidSignature as ``signer_of`` does, and for two by the same
    signer.
    """
    given = tuple(signatures)
    signers = {signer_of(hash_, signature) for signature in given}
    approvals = {owner: approval(bytes.fromhex(owner[2:])) for owner in approved}
    found = _ascending({**approvals, **check_signatures(hash_, signers, given)})
    heads, tails = b"", b""
    for signature in found.values():
        head, tail = signature[:SIGNATURE_LENGTH], signature[SIGNATURE_LENGTH:]
        if tail:
            place = len(found) * SIGNATURE_LENGTH + len(tails)
            head = head[:_WORD] + place.to_bytes(_WORD) + _CONTRACT
        heads, tails = heads + head, tails + tail
    return heads + tails


def _ascending(found: Mapping[str, bytes]) -> dict[str, bytes]:
    return dict(sorted(found.items(), key=lambda item: int(item[0], 16)))
