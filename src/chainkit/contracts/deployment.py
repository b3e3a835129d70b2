"""The deployment record: the addresses of the contracts, as data, for every part that reads them.

``scripts/deploy.py`` writes it. A chain id alone does not name a chain (every local chain is
31337), so the record also holds the hash of block 0, and each reader looks for code at the record's
addresses. Two local chains may still pass for each other: started within the same second they have
the same block 0, and the same deployer's contracts get the same addresses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.parameters import SEQUENCED_LOGS, Parameters, PayloadBounds
from chainkit.documents.fields import Fields, read_json
from chainkit.documents.files import replace_file
from chainkit.errors import ConfigurationError
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH

RECORD_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class DeployedContract:
    """One contract: for an upgradeable one, its proxy."""

    name: str
    address: bytes
    """20 bytes."""
    block: int
    """Height at which the contract was deployed: there is no log below."""
    transaction: bytes
    """32 bytes."""
    implementation: DeployedContract | None = None
    """The implementation a proxy was deployed with; None for a contract that is no proxy."""


@dataclass(frozen=True, slots=True)
class RecordedParameters:
    """The accounts and bounds at the deployment; the council may have changed them since."""

    message_admin: bytes
    """20 bytes: was given DEFAULT_ADMIN_ROLE on GroupMessages and IdentityUpdates."""
    registry_owner: bytes
    """20 bytes: was given the NodeRegistry."""
    payload_bounds: Mapping[str, PayloadBounds]
    """By contract name, for each of SEQUENCED_LOGS."""

    @classmethod
    def of(cls, parameters: Parameters) -> RecordedParameters:
        """Return the part of a deployment's parameters that its record keeps."""
        return cls(parameters.message_admin, parameters.registry_owner, parameters.payload_bounds)

    def content(self) -> dict[str, Any]:
        """Return the parameters as the record's JSON holds them under ``parameters``."""
        return {
            "message_admin": to_checksum_address(self.message_admin),
            "registry_owner": to_checksum_address(self.registry_owner),
            "payload_bounds": {
                name: {"minimum": bounds.minimum, "maximum": bounds.maximum}
                for name, bounds in self.payload_bounds.items()
            },
        }


@dataclass(frozen=True, slots=True)
class DeploymentRecord:
    """The contracts of one network on one chain."""

    chain_id: int
    genesis_hash: bytes
    """32 bytes: hash of block 0."""
    group_messages: DeployedContract
    identity_updates: DeployedContract
    node_registry: DeployedContract
    originator_sequence: DeployedContract
    deployer: bytes
    """20 bytes: the account that sent the transactions."""
    parameters: RecordedParameters | None = None
    """None in a record that was written before records kept parameters."""

    @property
    def contracts(self) -> tuple[DeployedContract, ...]:
        """All contracts of the record."""
        return (
            self.group_messages,
            self.identity_updates,
            self.node_registry,
            self.originator_sequence,
        )

    @property
    def payload_addresses(self) -> tuple[bytes, bytes]:
        """The two contracts whose events become node-0 envelopes."""
        return (self.group_messages.address, self.identity_updates.address)

    @property
    def sequenced_logs(self) -> tuple[DeployedContract, DeployedContract]:
        """The two logs' proxies, in the order of SEQUENCED_LOGS."""
        return (self.group_messages, self.identity_updates)

    @property
    def first_block(self) -> int:
        """The height below which none of the contracts has a log."""
        return min(contract.block for contract in self.contracts)


def read_deployment_record(path: Path) -> DeploymentRecord:
    """Read a deployment record. Raises ConfigurationError that names the file and the field."""
    return parse_deployment_record(read_json(path, record_subject(path)), record_subject(path))


def replace_implementation(path: Path, name: str, implementation: DeployedContract) -> None:
    """Write a proxy's new implementation into a record, in one step; the other fields stay.

    Raises ConfigurationError where the file is no record, is a link, or cannot be written.
    """
    content = read_json(path, record_subject(path))
    parse_deployment_record(content, record_subject(path))
    content["contracts"][name]["implementation"] = implementation_content(implementation)
    text = json.dumps(content, indent=2, sort_keys=True) + "\n"
    replace_file(path, text.encode(), record_subject(path))


def implementation_content(implementation: DeployedContract) -> dict[str, Any]:
    """Return an implementation as the record's JSON holds it under its proxy."""
    return {
        "address": to_checksum_address(implementation.address),
        "block": implementation.block,
        "transaction": "0x" + implementation.transaction.hex(),
    }


def parse_deployment_record(content: Any, subject: str) -> DeploymentRecord:
    """Build the record from parsed JSON. Raises ConfigurationError that names the field.

    A record with ``payload_contracts``, which is written by hand, names too little for what is
    built here: see ``followed``.
    """
    fields = Fields(content, subject)
    if fields.has("payload_contracts") and not fields.has("contracts"):
        expected = "a record that the deploy script wrote"
        place = "payload_contracts: see deployments/README.md"
        raise ConfigurationError(subject, expected, "one written by hand", place)
    if (version := fields.integer("format")) != RECORD_FORMAT:
        raise ConfigurationError(subject, f"format {RECORD_FORMAT}", version)
    contracts = fields.inner("contracts")
    return DeploymentRecord(
        chain_id=fields.integer("chain_id"),
        genesis_hash=fields.bytes("genesis_hash", HASH_LENGTH),
        deployer=fields.bytes("deployer", ADDRESS_LENGTH),
        group_messages=_proxy(contracts, "GroupMessages"),
        identity_updates=_proxy(contracts, "IdentityUpdates"),
        node_registry=_contract(contracts, "NodeRegistry"),
        originator_sequence=_contract(contracts, "OriginatorSequence"),
        parameters=_recorded_parameters(fields),
    )


def _recorded_parameters(fields: Fields) -> RecordedParameters | None:
    if not fields.has("parameters"):
        return None
    parameters = fields.inner("parameters")
    bounds = parameters.inner("payload_bounds")
    return RecordedParameters(
        message_admin=parameters.bytes("message_admin", ADDRESS_LENGTH),
        registry_owner=parameters.bytes("registry_owner", ADDRESS_LENGTH),
        payload_bounds={name: _bounds(bounds, name) for name in SEQUENCED_LOGS},
    )


def record_subject(path: Path) -> str:
    """Return what errors call the record in a file."""
    return f"deployment record {path}"


def _bounds(parent: Fields, name: str) -> PayloadBounds:
    fields = parent.inner(name)
    return PayloadBounds(fields.integer("minimum"), fields.integer("maximum"))


def _contract(parent: Fields, name: str) -> DeployedContract:
    fields = parent.inner(name)
    return DeployedContract(
        name=name,
        address=fields.bytes("address", ADDRESS_LENGTH),
        block=fields.integer("block"),
        transaction=fields.bytes("transaction", HASH_LENGTH),
    )


def _proxy(parent: Fields, name: str) -> DeployedContract:
    implementation = _contract(parent.inner(name), "implementation")
    return replace(_contract(parent, name), implementation=implementation)
