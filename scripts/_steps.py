"""A deployment's transactions, their order and their contracts' addresses, all from one nonce.

The sequence must know its two callers, the implementations must know the sequence, and the proxies
must know their implementations. The circle is cut by the deployer's nonces, which fix all addresses
before anything exists.
"""

from dataclasses import dataclass
from typing import Any

from eth_typing import HexAddress, HexStr
from eth_utils.address import to_checksum_address
from web3.types import Nonce
from web3.utils import get_create_address

from chainkit.contracts.artifacts import artifact
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import Parameters

_SEQUENCE, _REGISTRY = 0, 5
_IMPLEMENTATIONS = {"GroupMessages": 1, "IdentityUpdates": 2}
_PROXIES = {"GroupMessages": 3, "IdentityUpdates": 4}
"""The order of the six transactions, as offsets to the first nonce."""

_COUNT = 6

_STORED_WORDS = {"SequencedLogProxy": 8}
_STORED_WORDS_OF_OTHERS = 4
"""Words of storage that a trial fills: a little more than the constructor does."""
_ARGUMENTS_SIZE = 256
"""Bytes of a constructor's encoded arguments, at most."""


@dataclass(frozen=True, slots=True)
class Step:
    """One contract, deployed by one transaction."""

    place: tuple[str, ...]
    """The contract's place in the record, below its contracts."""
    contract: str
    arguments: tuple[Any, ...]
    """The constructor's arguments."""
    nonce: int
    address: str
    """Checksummed: the contract's future address."""

    @property
    def trial_code(self) -> bytes:
        """Creation code that takes a little more gas than this contract's, on every chain.

        The trial code stores as much code, fills as many words of storage and is as long, and needs
        no other contract. An endpoint can estimate its gas before the contracts that the real one
        names exist.
        """
        own = artifact(self.contract)
        # PUSH1 1, PUSH1 word, SSTORE; then PUSH2 size, PUSH1 0, RETURN: that many zeros.
        words = _STORED_WORDS.get(self.contract, _STORED_WORDS_OF_OTHERS)
        stores = b"".join(bytes((0x60, 1, 0x60, word, 0x55)) for word in range(words))
        returns = b"\x61" + len(own.masked_code).to_bytes(2, "big") + b"\x60\0\xf3"
        return stores + returns + own.creation_code + bytes(_ARGUMENTS_SIZE)

    @property
    def name(self) -> str:
        """The name that people read."""
        return "'s ".join(self.place)


def deployment_steps(deployer: str, first_nonce: int, parameters: Parameters) -> list[Step]:
    """Return the six steps in the order of their nonces."""
    sender = HexAddress(HexStr(deployer))
    addresses = [get_create_address(sender, Nonce(first_nonce + n)) for n in range(_COUNT)]

    def step(offset: int, place: tuple[str, ...], contract: str, *arguments: Any) -> Step:
        return Step(place, contract, arguments, first_nonce + offset, addresses[offset])

    proxies = [addresses[offset] for offset in _PROXIES.values()]
    steps = [step(_SEQUENCE, ("OriginatorSequence",), "OriginatorSequence", *proxies)]
    for name, offset in _IMPLEMENTATIONS.items():
        steps.append(step(offset, (name, "implementation"), name, addresses[_SEQUENCE]))
    for name, offset in _PROXIES.items():
        implementation = addresses[_IMPLEMENTATIONS[name]]
        call = _initialization(name, parameters)
        steps.append(step(offset, (name,), "SequencedLogProxy", implementation, call))
    owner = to_checksum_address(parameters.registry_owner)
    steps.append(step(_REGISTRY, ("NodeRegistry",), "NodeRegistry", owner))
    return steps


def _initialization(name: str, parameters: Parameters) -> bytes:
    bounds = parameters.payload_bounds[name]
    admin = to_checksum_address(parameters.message_admin)
    interface = shipped_interface(name)
    return interface.encode("initialize", admin, bounds.minimum, bounds.maximum)
