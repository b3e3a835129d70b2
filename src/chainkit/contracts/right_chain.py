"""Is this the chain that a deployment record was written for?"""

from __future__ import annotations

from chainkit.chain.endpoint import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import WrongChain
from chainkit.types import BlockHeader


def check_deployment(
    endpoint: Endpoint, record: DeploymentRecord | FollowedDeployment
) -> BlockHeader:
    """Prove that an endpoint serves the chain that a record was written for.

    Compares chain id and the hash of block 0, and that each contract has code at the head,
    which is returned. Raises WrongChain with what differs.
    """
    chain_id = endpoint.chain_id()
    if chain_id != record.chain_id:
        raise WrongChain(f"chain id at {endpoint.name}", record.chain_id, chain_id)
    genesis = endpoint.header(0)
    if genesis.hash != record.genesis_hash:
        expected, got = f"0x{record.genesis_hash.hex()}", f"0x{genesis.hash.hex()}"
        place = "the deployment record is of another chain"
        raise WrongChain(f"block 0 at {endpoint.name}", expected, got, place)
    head = endpoint.head()
    for contract in record.contracts:
        if not endpoint.code(contract.address, head.reference):
            raise WrongChain(
                f"{contract.name} at 0x{contract.address.hex()}", "a contract", "no code"
            )
    return head
