"""The database, the endpoints and the signer that the operator's options name, opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from chainkit.chain import EndpointPool
from chainkit.contracts.followed import FollowedDeployment, read_followed_deployment
from chainkit.contracts.right_chain import check_deployment
from chainkit.signatures import SigningKey
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.first_start import check_can_prove, check_record
from chainkit_indexer.follow.signing import Signer, SignerProcess
from chainkit_indexer.service.options import FollowerOptions
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store


@dataclass(frozen=True, slots=True)
class Following:
    """Everything that a step needs, proved to fit together."""

    pool: EndpointPool
    store: Store
    signer: Signer
    settings: IndexerSettings


@contextmanager
def following(
    options: FollowerOptions, key: SigningKey, signs_beside: bool = False
) -> Iterator[Following]:
    """Open what a step needs; ``signs_beside`` starts a process that signs with the node's key."""
    deployment = read_followed_deployment(options.deployment_path)
    pool = connect_endpoints(options.rpc_urls, deployment)
    settings = IndexerSettings(
        deployment,
        options.page_blocks,
        options.finality,
        options.serves_final_only,
        options.trusts_one_endpoint,
    )
    with ExitStack() as stack:
        # Last, because this call makes the database where there is none.
        store = Store.open(options.database, Identity.of(deployment, key.public_key))
        stack.callback(store.close)
        check_can_prove(pool, options.trusts_one_endpoint)
        if store.position() is None:
            check_record(pool, deployment)
        signer = SignerProcess(key) if signs_beside else Signer(key)
        stack.callback(signer.close)
        yield Following(pool, store, signer, settings)


def connect_endpoints(urls: Sequence[str], deployment: FollowedDeployment) -> EndpointPool:
    """Connect to endpoints that each serve the deployment's chain."""
    return EndpointPool.connect(urls, lambda endpoint: check_deployment(endpoint, deployment))


@contextmanager
def existing(database: str) -> Iterator[Store]:
    """Open a database of any identity, only to read."""
    store = Store.open_existing(database)
    try:
        yield store
    finally:
        store.close()
