"""The chain that a command reads, opened by options that all such commands share.

This module imports an HTTP client, so a command that opens no chain does not import the module.
"""

from __future__ import annotations

from pathlib import Path

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord, read_deployment_record
from chainkit.contracts.followed import FollowedDeployment, read_recorded_deployment
from chainkit.contracts.right_chain import check_deployment
from chainkit.types import BlockHeader


def open_chain(
    rpc_url: str, deployment_path: Path
) -> tuple[Endpoint, DeploymentRecord, BlockHeader]:
    """Connect and prove that the endpoint serves the record's chain; also return the head."""
    record = read_deployment_record(deployment_path)
    endpoint = Endpoint.connect(rpc_url)
    return endpoint, record, check_deployment(endpoint, record)


def open_recorded_chain(
    rpc_url: str, deployment_path: Path
) -> tuple[Endpoint, DeploymentRecord | FollowedDeployment, BlockHeader]:
    """Open the chain of a record that may list its ``payload_contracts``; see ``open_chain``."""
    record = read_recorded_deployment(deployment_path)
    endpoint = Endpoint.connect(rpc_url)
    return endpoint, record, check_deployment(endpoint, record)
