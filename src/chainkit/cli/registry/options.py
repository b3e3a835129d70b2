"""Options and words that the registry's commands share, and a registry opened at a block."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import click
from eth_utils.address import to_checksum_address

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment, node_registry_of
from chainkit.contracts.registry import Registry
from chainkit.errors import ConfigurationError
from chainkit.signatures import address_of, is_valid_public_key
from chainkit.terminal.connection import open_chain, open_recorded_chain
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import height_option
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json
from chainkit.types import BlockHeader, BlockReference, Node

NODE_ID: Final = click.IntRange(1, 2**256 - 1)
"""The range of the registry's uint256, from its first id."""

_Record = TypeVar("_Record", DeploymentRecord, DeploymentRecord | FollowedDeployment)

block_option = height_option(
    "--block", "block_number", "Height to read at; the newest block where it is not given."
)


def open_registry(
    rpc_url: str, deployment_path: Path, block_number: int | None
) -> tuple[Registry, DeploymentRecord, BlockReference]:
    """Open the chain and return its registry and the block to read at.

    Raises ConfigurationError for a block above the head or below the registry's own.
    """
    return _registry_at(*open_chain(rpc_url, deployment_path), block_number)


def open_recorded_registry(
    rpc_url: str, deployment_path: Path, block_number: int | None
) -> tuple[Registry, DeploymentRecord | FollowedDeployment, BlockReference]:
    """Open the registry of a record that may list its ``payload_contracts``; see ``open_registry``.

    Raises ConfigurationError also where the record names no registry on its chain.
    """
    return _registry_at(*open_recorded_chain(rpc_url, deployment_path), block_number)


def echo_registry(record: DeploymentRecord) -> None:
    """Print which registry is read."""
    address = checksummed(record.node_registry.address)
    echo_fact("registry", f"{address} (chain id {record.chain_id})")


def place_json(record: DeploymentRecord, block: BlockReference) -> dict[str, Any]:
    """Return what was read, and at which block, for a script."""
    return {
        "chain_id": record.chain_id,
        "registry": checksummed(record.node_registry.address),
        "block": reference_as_json(block),
    }


def node_json(node: Node) -> dict[str, Any]:
    """Return a node for a script."""
    return {
        "node_id": node.node_id,
        "status": "enabled" if node.is_enabled else "disabled",
        "signing_key": hex0x(node.signing_key),
        "http_address": node.http_address,
    }


def key_address(node: Node) -> str:
    """Return the address of a node's key, for a person."""
    return address_of(node.signing_key) if is_valid_public_key(node.signing_key) else "no valid key"


def checksummed(address: bytes) -> str:
    """Return the checksummed form of a 20-byte address."""
    return to_checksum_address(address)


def _registry_at(
    endpoint: Endpoint, record: _Record, head: BlockHeader, number: int | None
) -> tuple[Registry, _Record, BlockReference]:
    registry = node_registry_of(record)
    if number is None:
        return Registry(endpoint, registry.address), record, head.reference
    if not registry.block <= number <= head.number:
        expected = f"a height from {registry.block} (the registry's) to {head.number} (the head)"
        raise ConfigurationError("--block", expected, number)
    return Registry(endpoint, registry.address), record, endpoint.header(number).reference
