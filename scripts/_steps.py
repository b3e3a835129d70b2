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

from chainkit.contracts.artifacts import creation_code
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import Parameters

_SEQUENCE, _REGISTRY = 0, 5
_IMPLEMENTATIONS = {"GroupMessages": 1, "IdentityUpdates": 2}
_PROXIES = {"GroupMessages": 3, "IdentityUpdates": 4}
"""The order of the six transactions, as offsets to the first nonce."""

_COUNT = 6

_GAS_OF_CREATION = 21_000 + 32_000
"""A transaction, and CREATE."""
_GAS_PER_BYTE = 16 + 200
"""A byte of creation code that is not zero, and that the chain then stores."""
_GAS_OF_STORAGE = 50_000
"""Storage of a proxy's constructor; its creation code, which is not all stored, saves the rest."""


@dataclass(frozen=True, slots=True)
class Step:
    """One contract, deployed by one transaction."""

    place: tuple[str, ...]
    """Where the record holds it, below its contracts."""
    contract: str
    arguments: tuple[Any, ...]
    """The constructor's arguments."""
    nonce: int
    address: str
    """Checksummed: where it will stand."""

    @property
    def gas(self) -> int:
        """Gas that its transaction takes where gas costs what it does on Ethereum, rounded up.

        No endpoint can estimate it before the contracts that it names are there.
        """
        size = len(creation_code(self.contract))
        return _GAS_OF_CREATION + _GAS_PER_BYTE * size + _GAS_OF_STORAGE

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
