"""Endpoints of the chain that a database was made from, where no deployment record is given."""

from __future__ import annotations

from collections.abc import Sequence

from chainkit.chain import EndpointPool
from chainkit.contracts.followed import FollowedDeployment
from chainkit_indexer.service.opening import connect_endpoints
from chainkit_indexer.storage.identity import Identity


def connect_to_chain_of(identity: Identity, rpc_urls: Sequence[str]) -> EndpointPool:
    """Connect to endpoints that each serve the chain of a database."""
    chain = FollowedDeployment(identity.chain_id, identity.genesis_hash, identity.contracts, {})
    return connect_endpoints(rpc_urls, chain)
