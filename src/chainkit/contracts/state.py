"""Code, storage and answers of our contracts, all read at one block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.parameters import PayloadBounds
from chainkit.signatures import keccak256
from chainkit.types import ADDRESS_LENGTH, BlockReference

DEFAULT_ADMIN_ROLE: Final = bytes(32)
"""The role that may pause, set bounds, upgrade and name other administrators."""

LOCKED: Final = 2**64 - 1
"""Value of Initializable's slot in an implementation that can never be initialized."""

_DELEGATION: Final = b"\xef\x01\x00"
"""EIP-7702: code that lets an account with a key act through a contract, and is no contract."""


def erc1967_slot(name: str) -> int:
    """Return the slot in which ERC-1967 keeps ``implementation``, ``admin`` or ``beacon``."""
    return int.from_bytes(keccak256(f"eip1967.proxy.{name}".encode()), "big") - 1


def erc7201_slot(namespace: str) -> int:
    """Return the first slot of a namespace (ERC-7201)."""
    inner = int.from_bytes(keccak256(namespace.encode()), "big") - 1
    return int.from_bytes(keccak256(inner.to_bytes(32, "big")), "big") & ~0xFF


IMPLEMENTATION_SLOT: Final = erc1967_slot("implementation")
INITIALIZABLE_SLOT: Final = erc7201_slot("openzeppelin.storage.Initializable")


@dataclass(frozen=True, slots=True)
class ContractState:
    """The contracts at one block; errors as in Endpoint.call."""

    endpoint: Endpoint
    block: BlockReference

    def code(self, address: bytes) -> bytes:
        """Return the runtime code at an address, empty if there is none."""
        return self.endpoint.code(address, self.block)

    def is_contract(self, address: bytes) -> bool:
        """Whether an address has code, such as a Safe's, so that no key signs for it."""
        code = self.code(address)
        return bool(code) and not code.startswith(_DELEGATION)

    def word(self, address: bytes, slot: int) -> int:
        """Return one slot of a contract's storage."""
        return self.endpoint.storage(address, slot, self.block)

    def implementation(self, proxy: bytes) -> bytes:
        """Return the address in a proxy's ERC-1967 slot, 20 bytes."""
        return self.word(proxy, IMPLEMENTATION_SLOT).to_bytes(32, "big")[-ADDRESS_LENGTH:]

    def ask(self, name: str, address: bytes, function: str, *arguments: Any) -> Any:
        """Return the answer of a contract's function: a tuple unless it is one value."""
        interface = shipped_interface(name)
        values = interface.call(self.endpoint, address, self.block, function, *arguments)
        return values[0] if len(values) == 1 else values

    def administrators(self, name: str, proxy: bytes) -> tuple[str, ...]:
        """Return the checksummed holders of DEFAULT_ADMIN_ROLE, sorted."""
        members = self.ask(name, proxy, "getRoleMembers", DEFAULT_ADMIN_ROLE)
        return tuple(sorted(to_checksum_address(member) for member in members))

    def payload_bounds(self, name: str, proxy: bytes) -> PayloadBounds:
        """Return the sizes that a payload may have."""
        return PayloadBounds(*self.ask(name, proxy, "payloadBounds"))
