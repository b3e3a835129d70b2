"""One call of one of our contracts, by name and arguments.

The command always decodes the calldata again by the package's own ABI, and takes the contract's
name from the reader's own deployment record. It trusts neither a file nor its author.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from eth_utils.address import to_checksum_address

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import SELECTOR_LENGTH, render_call, shipped_interface
from chainkit.contracts.parameters import SEQUENCED_LOGS
from chainkit.errors import ConfigurationError, MalformedData

REGISTRY_FUNCTIONS: Final = (
    "addNode",
    "updateHealth",
    "transferFrom",
    "setHttpAddressUpdatesOpen",
    "updateHttpAddress",
    "transferOwnership",
    "acceptOwnership",
)
LOG_FUNCTIONS: Final = (
    "pause",
    "unpause",
    "grantRole",
    "revokeRole",
    "setPayloadBounds",
    "upgradeToAndCall",
)
FUNCTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "NodeRegistry": REGISTRY_FUNCTIONS,
    **dict.fromkeys(SEQUENCED_LOGS, LOG_FUNCTIONS),
}
"""A council's functions, by contract: no other one is ever proposed, shown or signed."""

SAFE: Final = "Safe"
OWNER_FUNCTIONS: Final = ("addOwnerWithThreshold", "removeOwner", "swapOwner", "changeThreshold")
"""A Safe's functions about its own owners: apart from FUNCTIONS, and only when asked for."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a council may make; equal where target and calldata are."""

    contract: str
    """The contract's name in the deployment record, one of FUNCTIONS; or SAFE."""
    target: bytes
    """20 bytes."""
    function: str
    arguments: Mapping[str, Any]
    """By name, decoded from ``calldata``; addresses are checksummed."""
    calldata: bytes
    """Selector and arguments, encoded in the one way that Solidity itself encodes them."""

    @classmethod
    def make(cls, record: DeploymentRecord, contract: str, function: str, *arguments: Any) -> Self:
        """Return the call of a function of one of the record's contracts."""
        target = _targets(record)[contract]
        return cls.read(record, target, shipped_interface(contract).encode(function, *arguments))

    @classmethod
    def read(cls, record: DeploymentRecord, target: bytes, calldata: bytes) -> Self:
        """Return the call that calldata to an address is.

        Raises ConfigurationError where the address is none of the record's contracts that a council
        administers, and MalformedData where the calldata calls none of FUNCTIONS, or is not encoded
        as Solidity does: bytes that no argument shows could mean something to other code.
        """
        contract = _contract_at(record, target)
        return cls._of(contract, FUNCTIONS[contract], target, calldata)

    @classmethod
    def make_of_safe(cls, safe: bytes, function: str, *arguments: Any) -> Self:
        """Return the call by which a Safe changes its own owners."""
        return cls.read_of_safe(safe, shipped_interface(SAFE).encode(function, *arguments))

    @classmethod
    def read_of_safe(cls, safe: bytes, calldata: bytes) -> Self:
        """Return the call of a Safe to itself that calldata encodes.

        Raises MalformedData where the calldata calls none of OWNER_FUNCTIONS: a module, a guard or
        a fallback handler would let others act for the council.
        """
        return cls._of(SAFE, OWNER_FUNCTIONS, safe, calldata)

    @classmethod
    def _of(cls, contract: str, functions: Sequence[str], target: bytes, calldata: bytes) -> Self:
        interface, selector = shipped_interface(contract), calldata[:SELECTOR_LENGTH]
        function = next((name for name in functions if interface.selector(name) == selector), None)
        if function is None:
            expected = f"one of {', '.join(functions)}"
            raise MalformedData(f"call of {contract}", expected, f"selector 0x{selector.hex()}")
        arguments = interface.arguments(function, calldata)
        if interface.encode(function, *arguments.values()) != calldata:
            expected = "its arguments alone, as Solidity encodes them"
            got = f"{len(calldata)} bytes that are encoded otherwise"
            raise MalformedData(f"calldata of {function}", expected, got)
        return cls(contract, target, function, arguments, calldata)

    @property
    def target_address(self) -> str:
        """Checksummed address of the contract."""
        return to_checksum_address(self.target)

    def __str__(self) -> str:
        """The call in one line, safe to print."""
        return f"{self.contract}.{render_call(self.function, self.arguments)}"


def _targets(record: DeploymentRecord) -> dict[str, bytes]:
    return {
        contract.name: contract.address
        for contract in record.contracts
        if contract.name in FUNCTIONS
    }


def _contract_at(record: DeploymentRecord, target: bytes) -> str:
    targets = _targets(record)
    for name, address in targets.items():
        if address == target:
            return name
    expected = ", ".join(f"{name} {to_checksum_address(place)}" for name, place in targets.items())
    raise ConfigurationError("target of a call", expected, to_checksum_address(target))
