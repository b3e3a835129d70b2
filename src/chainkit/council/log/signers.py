"""The signers of a Safe's execution, recovered from the signatures over the executed hash.

A Safe looks at as many signatures as its threshold demands, and accepts two kinds that no key made:
an approval on the chain, and a contract's signature. The parts that cannot be proved here are
reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from eth_utils.address import to_checksum_address

from chainkit.council.safe import recover_owner
from chainkit.errors import InvalidSignature
from chainkit.signatures import SIGNATURE_LENGTH
from chainkit.types import ADDRESS_LENGTH

_WORD: Final = 32
_CONTRACT: Final = 0
_APPROVED: Final = 1


@dataclass(frozen=True, slots=True)
class Signer:
    """An owner who signed, or whose agreement the executor claimed."""

    address: str
    """Checksummed."""
    is_proved: bool
    """By his key's signature of the hash, or by an approval that he himself sent."""
    was_owner: bool
    """Whether the signer was an owner when the transaction began, by the Safe's events and last
    owners."""
    remark: str
    """How he signed where no key did; empty otherwise."""


def signers_of(
    hash_: bytes,
    signatures: bytes,
    owners: Collection[str],
    approvals: Collection[tuple[bytes, str]],
    caller: str | None,
) -> tuple[tuple[Signer, ...], str]:
    """Return the signers of a hash, each once, and which signatures are invalid (empty if none is).

    ``approvals`` are hashes with the owners who approved them before; ``caller`` is the account
    that called the Safe, whose agreement counts without a signature, None where it is not known.
    """
    found: dict[str, Signer] = {}
    count = _count(signatures)
    faults = []
    for number in range(count):
        signature = signatures[number * SIGNATURE_LENGTH : (number + 1) * SIGNATURE_LENGTH]
        kind = signature[-1]
        if kind in (_CONTRACT, _APPROVED):
            signer = _keyless(hash_, signature, kind, owners, approvals, caller)
        else:
            try:
                address = recover_owner(hash_, signature)
            except InvalidSignature as error:
                faults.append(f"signature {number + 1} is none: {error.got}")
                continue
            signer = Signer(address, True, address in owners, "")
        if signer.address not in found or signer.is_proved:
            found[signer.address] = signer
    rest = len(signatures) - count * SIGNATURE_LENGTH
    if rest and not any(signer.remark.startswith("a contract") for signer in found.values()):
        faults.append(f"{rest} bytes behind the signatures are none")
    return tuple(found.values()), "; ".join(faults)


def _keyless(
    hash_: bytes,
    signature: bytes,
    kind: int,
    owners: Collection[str],
    approvals: Collection[tuple[bytes, str]],
    caller: str | None,
) -> Signer:
    address = to_checksum_address(signature[_WORD - ADDRESS_LENGTH : _WORD])
    was_owner = address in owners
    if kind == _CONTRACT:
        return Signer(address, False, was_owner, "a contract's signature, not checked here")
    if address == caller:
        return Signer(address, True, was_owner, "by executing it")
    if (hash_, address) in approvals:
        return Signer(address, True, was_owner, "approved on the chain")
    return Signer(address, False, was_owner, "approved on the chain before, not seen here")


def _count(signatures: bytes) -> int:
    """Return how many signatures precede the tails of contracts' signatures."""
    starts = list(_contract_parts(signatures))
    return min([len(signatures), *starts]) // SIGNATURE_LENGTH


def _contract_parts(signatures: bytes) -> Iterator[int]:
    """Yield the start of each contract's tail, as the contract's 65 bytes state it."""
    for start in range(0, len(signatures) - SIGNATURE_LENGTH + 1, SIGNATURE_LENGTH):
        signature = signatures[start : start + SIGNATURE_LENGTH]
        place = int.from_bytes(signature[_WORD : 2 * _WORD], "big")
        # A tail may look like a signature: a real one can only point to bytes behind itself.
        if signature[-1] == _CONTRACT and place >= start + SIGNATURE_LENGTH:
            yield place
