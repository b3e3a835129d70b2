"""Events of the registry and of the payload contracts, encoded as the contracts emit them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import eth_abi
from eth_utils.address import to_checksum_address

from chainkit.signatures import keccak256
from chainkit.types import Log
from support.audit.identities import GROUP_MESSAGES, IDENTITY_UPDATES, NODE_REGISTRY, key_of

CONTRACTS = {
    "NodeRegistry": NODE_REGISTRY,
    "GroupMessages": GROUP_MESSAGES,
    "IdentityUpdates": IDENTITY_UPDATES,
}
COUNCIL, DEPLOYER, STRANGER, HOLDER = (to_checksum_address("0x" + digit * 40) for digit in "abcd")
NOBODY = "0x" + "0" * 40
ROLE = bytes(32)
BOUNDS = (1, 1000)
FIRST_CODE, SECOND_CODE = (to_checksum_address("0x" + digit * 40) for digit in "ef")

SIGNATURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OwnershipTransferred": (("address", "address"), ()),
    "OwnershipTransferStarted": (("address", "address"), ()),
    "HttpAddressUpdatesOpenChanged": (("address",), ("bool",)),
    "Transfer": (("address", "address", "uint256"), ()),
    "Approval": (("address", "address", "uint256"), ()),
    "NodeAdded": (("address", "uint256", "address"), ()),
    "NodeTransferred": (("address", "uint256", "address"), ()),
    "NodeHealthUpdated": (("address", "uint256"), ("bool",)),
    "NodeHttpAddressUpdated": (("address", "uint256"), ("string",)),
    "NodeUpdated": ((), ("uint256", "(bytes,string,bool)")),
    "RoleGranted": (("bytes32", "address", "address"), ()),
    "RoleRevoked": (("bytes32", "address", "address"), ()),
    "Paused": ((), ("address",)),
    "Unpaused": ((), ("address",)),
    "PayloadBoundsSet": ((), ("address", "uint32", "uint32")),
    "UpgradeAuthorized": ((), ("address", "address")),
    "Upgraded": (("address",), ()),
    "Initialized": ((), ("uint64",)),
}
"""Event to the types of its indexed arguments, which come first, and of the others."""


@dataclass
class History:
    """Logs in the chain's order; a test emits each in one line."""

    logs: list[Log] = field(default_factory=list)
    block: int | None = None
    """The block of the next logs; one block each where this is None."""

    def emit(self, contract: str, event: str, *arguments: Any) -> None:
        indexed, others = SIGNATURES[event]
        types = ",".join((*indexed, *others))
        first = zip(indexed, arguments, strict=False)
        topics = [eth_abi.encode((type_,), (value,)) for type_, value in first]
        self.logs.append(
            Log(
                address=CONTRACTS[contract],
                topics=(keccak256(f"{event}({types})".encode()), *topics),
                data=eth_abi.encode(others, arguments[len(indexed) :]),
                block_number=1 + len(self.logs) if self.block is None else self.block,
                block_hash=bytes(32),
                transaction_hash=bytes(32),
                transaction_index=0,
                log_index=len(self.logs),
            )
        )

    def deploy(self) -> None:
        """Create the contracts, for the council."""
        self.emit("NodeRegistry", "OwnershipTransferred", NOBODY, COUNCIL)
        for name in ("GroupMessages", "IdentityUpdates"):
            self.emit(name, "Upgraded", FIRST_CODE)
            self.emit(name, "RoleGranted", ROLE, COUNCIL, DEPLOYER)
            self.emit(name, "PayloadBoundsSet", DEPLOYER, *BOUNDS)
            self.emit(name, "Initialized", 1)

    def add_node(self, node_id: int, account: str = COUNCIL, **entry: Any) -> None:
        self.emit("NodeRegistry", "Transfer", NOBODY, HOLDER, node_id)
        self.emit("NodeRegistry", "NodeAdded", account, node_id, HOLDER)
        self.update(node_id, **entry)

    def update(self, node_id: int, **entry: Any) -> None:
        """Emit NodeUpdated alone."""
        key = entry.get("key", key_of(node_id).public_key)
        address = entry.get("http_address", f"https://node{node_id}.example")
        node = (key, address, entry.get("is_enabled", True))
        self.emit("NodeRegistry", "NodeUpdated", node_id, node)

    def set_status(
        self, node_id: int, is_enabled: bool, account: str = COUNCIL, **entry: Any
    ) -> None:
        self.emit("NodeRegistry", "NodeHealthUpdated", account, node_id, is_enabled)
        self.update(node_id, is_enabled=is_enabled, **entry)
