"""Keys of mappings for the values that a transaction may change.

A mapping's slot is a hash that does not show its key. So the keys of the transaction are hashed to
find the name of a changed slot. A superfluous key does no harm, a missing key leaves a slot
undecoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Self

from eth_utils.address import is_checksum_address, to_checksum_address

from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, ContractState
from chainkit.council.calls import Call
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH

_NODE_INCREMENT: Final = 100
_MOST_NODES: Final = 10_000
"""How many of the newest nodes are candidates beside those that a call names."""

_PUBLIC_KEY_LENGTH: Final = 65
_NAMES: Final[Mapping[bytes, str]] = {DEFAULT_ADMIN_ROLE: "DEFAULT_ADMIN_ROLE"}


@dataclass(frozen=True, slots=True)
class CandidateKeys:
    """Keys by kind."""

    numbers: frozenset[int] = frozenset()
    """uint256."""
    addresses: frozenset[bytes] = frozenset()
    """20 bytes each."""
    words: frozenset[bytes] = frozenset()
    """Roles and hashes, 32 bytes each."""

    def __or__(self, other: CandidateKeys) -> CandidateKeys:
        """Return the keys of both."""
        return CandidateKeys(
            self.numbers | other.numbers,
            self.addresses | other.addresses,
            self.words | other.words,
        )

    @classmethod
    def of_addresses(cls, addresses: Iterable[bytes]) -> Self:
        """Return keys that are addresses of 20 bytes."""
        return cls(addresses=frozenset(addresses))

    def of_type(self, key_type: str) -> Iterator[tuple[bytes, str]]:
        """Yield each key of a type as 32 bytes, as Solidity hashes it, and in words.

        None for a type that no mapping of the contracts has, such as text. An address is also a
        bytes32: OpenZeppelin's sets of addresses store it in this form.
        """
        if key_type == "address" or key_type.startswith("contract "):
            yield from self._address_words()
        elif key_type.startswith("uint"):
            yield from (
                (number.to_bytes(32, "big"), str(number)) for number in sorted(self.numbers)
            )
        elif key_type == "bytes32":
            for word in sorted(self.words):
                yield word, _NAMES.get(word, hex0x(word))
            # None twice: a slot would be named twice.
            yield from (each for each in self._address_words() if each[0] not in self.words)

    def _address_words(self) -> Iterator[tuple[bytes, str]]:
        for address in sorted(self.addresses):
            yield address.rjust(32, b"\0"), to_checksum_address(address)


def keys_of_arguments(call: Call) -> CandidateKeys:
    """Return the keys that a call's own arguments give."""
    found = map(_keys_of_value, call.arguments.values())
    return reduce(CandidateKeys.__or__, found, CandidateKeys())


def read_candidate_keys(state: ContractState, calls: Iterable[Call]) -> CandidateKeys:
    """Return the keys that calls may touch: their arguments, the nodes and the roles' members.

    Errors as in Endpoint.call.
    """
    calls = tuple(calls)
    found = CandidateKeys(words=frozenset({DEFAULT_ADMIN_ROLE}))
    for call in calls:
        found |= keys_of_arguments(call)
        found |= CandidateKeys.of_addresses(_members(state, call))
    return found | CandidateKeys(numbers=_node_ids(state, calls))


def _keys_of_value(value: Any) -> CandidateKeys:
    if isinstance(value, int):
        return CandidateKeys(numbers=frozenset({int(value)}))
    if isinstance(value, str) and is_checksum_address(value):
        return CandidateKeys.of_addresses([bytes.fromhex(value[2:])])
    if isinstance(value, bytes) and len(value) == HASH_LENGTH:
        return CandidateKeys(words=frozenset({value}))
    if isinstance(value, bytes) and len(value) == _PUBLIC_KEY_LENGTH:
        # The registry records a node's key by the key's address.
        return CandidateKeys.of_addresses([keccak256(value[1:])[-ADDRESS_LENGTH:]])
    return CandidateKeys()


def _members(state: ContractState, call: Call) -> Iterator[bytes]:
    """Yield the holders of a call's role: when one holder leaves, the last takes the free place."""
    role = call.arguments.get("role")
    if isinstance(role, bytes):
        for member in state.ask(call.contract, call.target, "getRoleMembers", role):
            yield bytes.fromhex(member[2:])


def _node_ids(state: ContractState, calls: tuple[Call, ...]) -> frozenset[int]:
    """Return the ids of the nodes, and those that the calls will add."""
    targets = [call.target for call in calls if call.contract == "NodeRegistry"]
    if not targets:
        return frozenset()
    added = sum(call.function == "addNode" for call in calls)
    last = state.ask("NodeRegistry", targets[0], "nodeCount") + added
    first = max(1, last - _MOST_NODES)
    return frozenset(range(first * _NODE_INCREMENT, (last + 1) * _NODE_INCREMENT, _NODE_INCREMENT))
