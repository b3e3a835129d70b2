"""The part of a deployment record that exports need: of our own contracts, or of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import (
    FollowedDeployment,
    SequenceCounter,
    payload_contract_content,
)
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.text.hexadecimal import hex0x

_REGISTRY: Final = "NodeRegistry"
"""The name of the registry in a record of our own contracts."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The contracts of a record, and the counters of their payloads."""

    chain_id: int
    genesis_hash: bytes
    """32 bytes: hash of block 0."""
    addresses: Mapping[str, bytes]
    """Contract name to 20 bytes: all that the manifest names."""
    first_block: int
    """The height below which no contract of the record has a log."""
    contracts: tuple[PayloadContract, ...]
    """Those whose events are payloads."""
    counters: Mapping[int, SequenceCounter]
    """By originator id; none for an originator that no contract counts."""
    is_listed: bool
    """Whether the record lists its contracts: then they are not our own, and the manifest describes
    them."""

    @property
    def originator_ids(self) -> tuple[int, ...]:
        """Those that the contracts post under, in rising order."""
        return tuple(sorted({contract.originator_id for contract in self.contracts}))

    @property
    def about(self) -> dict[str, Any]:
        """Fields of a chain export's manifest."""
        listed: Sequence[Mapping[str, Any]] | None = None
        if self.is_listed:
            listed = [payload_contract_content(contract) for contract in self.contracts]
        return {
            **self.about_network,
            "first_block": self.first_block,
            "first_payload_block": min(contract.block for contract in self.contracts),
            "payload_contracts": listed,
        }

    @property
    def about_network(self) -> dict[str, Any]:
        """Fields of the manifest of an export of any kind."""
        return {
            "chain_id": self.chain_id,
            "genesis_hash": hex0x(self.genesis_hash),
            "contracts": {name: hex0x(address) for name, address in self.addresses.items()},
        }

    def about_counters(
        self, before: Mapping[int, int], after: Mapping[int, int | None]
    ) -> dict[str, Any]:
        """Return the manifest's fields of the counters' numbers, by originator id."""
        if self.is_listed:
            numbers = {
                str(originator_id): {"before": before[originator_id], "after": after[originator_id]}
                for originator_id in sorted(self.counters)
            }
            return {"counters": numbers}
        (originator_id,) = self.counters
        return {"sequence_before": before[originator_id], "sequence_after": after[originator_id]}


def recorded(record: DeploymentRecord | FollowedDeployment) -> Recorded:
    """Return what an export takes from a record of either kind."""
    followed = FollowedDeployment.of(record) if isinstance(record, DeploymentRecord) else record
    addresses = {contract.name: contract.address for contract in record.contracts}
    first_block, registry = followed.first_block, followed.registry
    if isinstance(record, DeploymentRecord):
        first_block = record.first_block
    elif registry is not None and registry.genesis_hash == record.genesis_hash:
        addresses[_REGISTRY] = registry.address
        first_block = min(first_block, registry.block)
    return Recorded(
        chain_id=record.chain_id,
        genesis_hash=record.genesis_hash,
        addresses=addresses,
        first_block=first_block,
        contracts=followed.contracts,
        counters={key: each for key, each in followed.counters.items() if each is not None},
        is_listed=not isinstance(record, DeploymentRecord),
    )
