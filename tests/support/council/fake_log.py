"""The two logs at one block, in memory: what their effects read, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from eth_utils.address import to_checksum_address

from chainkit.contracts.artifacts import artifact
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.implementation import implementation_code
from chainkit.contracts.parameters import PayloadBounds
from chainkit.contracts.state import INITIALIZABLE_SLOT, LOCKED, ContractState
from chainkit.types import BlockReference

SEQUENCE = b"\x44" * 20
CURRENT = b"\x55" * 20
"""Address of the code that the proxies run."""
PROPOSED = b"\x66" * 20
"""Where this package's GroupMessages stands, locked."""
BOUNDS = PayloadBounds(1, 100)
BLOCK = BlockReference(7, b"\x07" * 32)
FIRST, SECOND, STRANGER = (to_checksum_address("0x" + digit * 40) for digit in "abc")


def _deployed(name: str, address: bytes) -> DeployedContract:
    return DeployedContract(name, address, 1, bytes(32))


RECORD = DeploymentRecord(
    chain_id=31337,
    genesis_hash=bytes(32),
    group_messages=_deployed("GroupMessages", b"\x11" * 20),
    identity_updates=_deployed("IdentityUpdates", b"\x22" * 20),
    node_registry=_deployed("NodeRegistry", b"\x33" * 20),
    originator_sequence=_deployed("OriginatorSequence", SEQUENCE),
    deployer=bytes(20),
)


def old_code() -> bytes:
    """Code of GroupMessages that no release knows."""
    return artifact("GroupMessages").masked_code[:-1] + b"\x00"


@dataclass
class FakeLog:
    """The answers of a log; both logs give the same here."""

    members: tuple[str, ...] = (FIRST, SECOND)
    bounds: PayloadBounds = BOUNDS
    is_paused: bool = False
    sequence: bytes = SEQUENCE
    running: bytes = CURRENT
    codes: dict[bytes, bytes] = field(
        default_factory=lambda: {
            CURRENT: old_code(),
            PROPOSED: implementation_code("GroupMessages", PROPOSED, SEQUENCE),
        }
    )
    initialized: dict[bytes, int] = field(default_factory=lambda: {PROPOSED: LOCKED})
    block: BlockReference = BLOCK

    def state(self) -> ContractState:
        return cast(ContractState, self)

    def administrators(self, name: str, proxy: bytes) -> tuple[str, ...]:
        return self.members

    def payload_bounds(self, name: str, proxy: bytes) -> PayloadBounds:
        return self.bounds

    def ask(self, name: str, address: bytes, function: str) -> Any:
        return {
            "paused": self.is_paused,
            "originatorSequence": to_checksum_address(self.sequence),
        }[function]

    def implementation(self, proxy: bytes) -> bytes:
        return self.running

    def code(self, address: bytes) -> bytes:
        return self.codes.get(address, b"")

    def word(self, address: bytes, slot: int) -> int:
        assert slot == INITIALIZABLE_SLOT
        return self.initialized.get(address, 0)
