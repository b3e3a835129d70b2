"""Endpoints of the chain that a database was made from, where no deployment record is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chainkit_indexer.cli.options import connect_endpoints

if TYPE_CHECKING:
    from chainkit.chain import EndpointPool
    from chainkit_indexer.storage.identity import Identity


def connect_to_chain_of(identity: Identity, rpc_urls: Sequence[str]) -> EndpointPool:
    """Connect to endpoints that each serve the chain of a database."""
    from chainkit.contracts.followed import FollowedDeployment

    chain = FollowedDeployment(identity.chain_id, identity.genesis_hash, identity.contracts, {})
    return connect_endpoints(rpc_urls, chain)
