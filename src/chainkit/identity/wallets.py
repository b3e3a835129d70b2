"""Contract wallets (ERC-1271, ERC-6492): the one kind of signature that only a chain can check."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from chainkit.errors import MalformedData

_ACCOUNT_ID: Final = re.compile(r"eip155:([1-9][0-9]{0,18}):0x([0-9a-fA-F]{40})")


class WalletSignature(NamedTuple):
    """A signature that a contract wallet is claimed to have made."""

    chain_id: int
    """EIP-155; the chain of the wallet's contract."""
    address: bytes
    """20 bytes."""
    block_number: int
    """The block of that chain whose state answers; a uint64, chosen by the signer."""
    digest: bytes
    """32 bytes: the text's digest by ERC-191."""
    signature: bytes
    """Any length that fits into the update."""


class WalletVerifier(Protocol):
    """Asks a chain for a contract wallet's signature. It does the I/O that this package does not.

    The verifier returns True or False only if the chain gave this answer. It raises
    WalletUnanswered, or another ChainError, where there is no answer yet: then the update stays
    undecided. For a block that did not exist when the update was published the answer must be
    False: an update that names a block far ahead would otherwise delay its inbox for years.
    """

    def __call__(self, signature: WalletSignature) -> bool:
        """Return whether the wallet accepts the signature, by the state of its block."""


@dataclass(frozen=True, slots=True)
class Wallets:
    """The chains whose contract wallets count, and the verifier that asks the chains."""

    chain_ids: Set[int]
    """The same for all nodes of a network. An update that names another chain is refused: waiting
    for an answer that nobody can give would hold up an inbox for ever."""
    is_valid: WalletVerifier


def _no_chain(signature: WalletSignature) -> bool:
    raise NotImplementedError(f"no chain is supported, not even {signature.chain_id}")


NO_WALLETS: Final = Wallets(frozenset(), _no_chain)
"""Refuses every contract wallet."""


def parse_account_id(text: str) -> tuple[int, bytes]:
    """Return chain id and 20-byte address of a CAIP-10 account. Raises MalformedData."""
    match = _ACCOUNT_ID.fullmatch(text)
    if match is None:
        expected = "eip155, a chain id and an address (CAIP-10)"
        raise MalformedData("account", expected, "another form")
    return int(match[1]), bytes.fromhex(match[2])
