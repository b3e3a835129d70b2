"""Whether an account may act at all: an address that may not is seldom the council's."""

from __future__ import annotations

from eth_utils.address import to_checksum_address

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.state import ContractState


def has_role(state: ContractState, record: DeploymentRecord, address: str) -> bool:
    """Return whether an account owns the registry, is offered it, or administers a log.

    ``address`` is checksummed; read at the state's block, errors as in ``ContractState.ask``.
    """
    registry = record.node_registry
    holders: list[str] = [
        to_checksum_address(state.ask(registry.name, registry.address, function))
        for function in ("owner", "pendingOwner")
    ]
    for log in record.sequenced_logs:
        holders += state.administrators(log.name, log.address)
    return address in holders
