"""Changes to an anvil: some that nobody could make on a real chain, some by an administrator."""

from __future__ import annotations

from typing import Any

import eth_abi

from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.state import DEFAULT_ADMIN_ROLE, erc7201_slot
from chainkit.signatures import keccak256
from support.chains.chain import REGISTRY_OWNER, LocalChain, dev_address

ADMINISTRATOR = REGISTRY_OWNER
"""The development account that holds everything on the local chain."""

ACCESS_CONTROL_SLOT = erc7201_slot("openzeppelin.storage.AccessControl")


def write_slot(chain: LocalChain, address: bytes, slot: int, value: int) -> None:
    place = ("0x" + address.hex(), f"0x{slot:064x}")
    chain.anvil.request("anvil_setStorageAt", *place, f"0x{value:064x}")


def write_code(chain: LocalChain, address: bytes, code: bytes) -> None:
    chain.anvil.request("anvil_setCode", "0x" + address.hex(), "0x" + code.hex())


def change_last_byte(chain: LocalChain, address: bytes) -> bytes:
    """Change one byte of the compiler's metadata: the code behaves the same. Return the code."""
    code = chain.endpoint.code(address, chain.head().reference)
    changed = code[:-1] + bytes([code[-1] ^ 1])
    write_code(chain, address, changed)
    return changed


def call_as(
    chain: LocalChain, sender: int, name: str, address: bytes, function: str, *arguments: Any
) -> None:
    """Send a transaction of a development account, and see that it succeeds."""
    transaction = chain.send(address, shipped_interface(name).encode(function, *arguments), sender)
    receipt = chain.endpoint.receipt(transaction)
    assert receipt is not None and receipt["status"] == "0x1", receipt


def set_hidden_role(chain: LocalChain, proxy: bytes, account: int, holds: bool) -> None:
    """Write the holder of DEFAULT_ADMIN_ROLE where `hasRole` reads it, but no listing does."""
    slot = _mapping_slot(_role_slot(), bytes.fromhex(dev_address(account)[2:]))
    write_slot(chain, proxy, slot, int(holds))


def set_role_admin(chain: LocalChain, proxy: bytes, role: int) -> None:
    """Let the holders of another role name administrators."""
    write_slot(chain, proxy, _role_slot() + 1, role)


def _role_slot() -> int:
    return _mapping_slot(ACCESS_CONTROL_SLOT, DEFAULT_ADMIN_ROLE)


def _mapping_slot(slot: int, key: bytes) -> int:
    packed = eth_abi.encode(["bytes32", "uint256"], [key.rjust(32, b"\0"), slot])
    return int.from_bytes(keccak256(packed), "big")
