"""Checks the deployment record once, before the first block is followed.

A wrong height in it would look like an endpoint that hides logs, for ever.
"""

from __future__ import annotations

from chainkit.chain import Endpoint, EndpointPool
from chainkit.contracts.counter import read_counter
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import ChainError, ConfigurationError


def check_record(pool: EndpointPool, deployment: FollowedDeployment) -> None:
    """Check the record by the endpoints in their order, until one of them confirms it.

    One endpoint may lie about a record that is right. Raises the first one's ConfigurationError
    where none confirms the record, and ChainError where none answers.
    """
    refusal: ConfigurationError | None = None
    for endpoint in pool.available():
        try:
            check_first_block(endpoint, deployment)
        except ConfigurationError as error:
            refusal = refusal or error
        except ChainError as error:
            pool.failed(endpoint, error)
        else:
            return
    if refusal is not None:
        raise refusal
    pool.first_answer(lambda endpoint: check_first_block(endpoint, deployment))


def check_first_block(endpoint: Endpoint, deployment: FollowedDeployment) -> None:
    """Prove that contracts exist, and counters begin, at the blocks of the record.

    A block whose state the endpoint does not keep is not checked. Raises ConfigurationError that
    names the contract and its block.
    """
    for contract in deployment.contracts:
        subject = f"deployment record, {contract.name}"
        # Raises InconsistentAnswer where there is none: a replica may lag.
        header = endpoint.header(contract.block)
        try:
            code = endpoint.code(contract.address, header.reference)
        except ChainError:
            continue
        if not code:
            got = f"no code at block {contract.block}"
            raise ConfigurationError(subject, "the block of its deployment", got)
    before = endpoint.header(max(deployment.first_block - 1, 0)).reference
    for originator_id, counter in deployment.counters.items():
        try:
            given = counter and read_counter(endpoint, counter, before)
        except ChainError:
            continue
        if given:
            raise ConfigurationError(
                "deployment record",
                f"the block before the first payload of originator {originator_id}",
                f"block {before.number}, at which {given} were posted already",
            )
