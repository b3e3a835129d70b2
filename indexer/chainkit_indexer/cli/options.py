"""Options that several of the operator's commands share, and what they open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chainkit.terminal.options import (
    deployment_option,
    gathered,
    keystore_option,
    password_option,
    several,
)
from chainkit_indexer.config import DEFAULT_PAGE_BLOCKS, IndexerSettings
from chainkit_indexer.finality import DEFAULT_BLOCKS, FinalityPolicy

if TYPE_CHECKING:
    # SQLAlchemy takes longer to import than `--help` to answer.
    from chainkit.chain import EndpointPool
    from chainkit.contracts.followed import FollowedDeployment
    from chainkit_indexer.follow.signing import Signer
    from chainkit_indexer.storage.store import Store

database_option = click.option(
    "--database",
    envvar="CHAINKIT_DATABASE",
    show_envvar=True,
    required=True,
    metavar="FILE|URL",
    help="The node's database: a path for SQLite, or postgresql+psycopg://…",
)
endpoints_option = click.option(
    "--rpc",
    "rpc_urls",
    envvar="CHAINKIT_RPC",
    show_envvar=True,
    required=True,
    multiple=True,
    metavar="URL",
    help="JSON-RPC endpoint; give several, in order of preference, to fail over.",
)
page_option = click.option(
    "--page-blocks",
    type=click.IntRange(min=1),
    default=DEFAULT_PAGE_BLOCKS,
    show_default=True,
    help="Most blocks that one step commits.",
)
finality_option = click.option(
    "--finality",
    "finality",
    default=str(DEFAULT_BLOCKS),
    show_default=True,
    metavar="N|Nms|safe|finalized",
    callback=lambda context, parameter, value: FinalityPolicy.parse(value),
    help="Final blocks: N blocks behind the head, N ms older than it, or the chain's own tag. "
    "Reorgs above it are repaired; nothing at or below it is ever changed.",
)
serve_option = click.option(
    "--serve",
    type=click.Choice(["head", "final"]),
    default="head",
    show_default=True,
    help="Up to where: the head, taking back what a reorg drops, or only what is final.",
)


@dataclass(frozen=True, slots=True)
class FollowerOptions:
    """What a command that follows the chain is told."""

    rpc_urls: tuple[str, ...]
    deployment_path: Path
    keystore_path: Path
    password_path: Path | None
    database: str
    finality: FinalityPolicy
    serve: str
    page_blocks: int

    @property
    def serves_final_only(self) -> bool:
        """Whether only what is final is served."""
        return self.serve == "final"


follower_options = several(
    endpoints_option,
    deployment_option,
    keystore_option,
    password_option,
    database_option,
    finality_option,
    serve_option,
    page_option,
    gathered(FollowerOptions, "follower"),
)
"""Decorator: everything that a step needs to know; the command takes a FollowerOptions."""


@dataclass(frozen=True, slots=True)
class Following:
    """Everything that a step needs, proved to fit together."""

    pool: EndpointPool
    store: Store
    signer: Signer
    settings: IndexerSettings


@contextmanager
def following(options: FollowerOptions, signs_beside: bool = False) -> Iterator[Following]:
    """Open what a step needs; ``signs_beside`` starts a process that signs."""
    from chainkit.contracts.followed import read_followed_deployment
    from chainkit.terminal.keystore import load_signing_key
    from chainkit_indexer.follow.first_start import check_first_block
    from chainkit_indexer.follow.signing import Signer, SignerProcess
    from chainkit_indexer.storage.identity import Identity
    from chainkit_indexer.storage.store import Store

    key = load_signing_key(options.keystore_path, options.password_path)
    deployment = read_followed_deployment(options.deployment_path)
    pool = connect_endpoints(options.rpc_urls, deployment)
    settings = IndexerSettings(
        deployment, options.page_blocks, options.finality, options.serves_final_only
    )
    with ExitStack() as stack:
        # Last, because it makes the database where there is none.
        store = Store.open(options.database, Identity.of(deployment, key.public_key))
        stack.callback(store.close)
        if store.position() is None:
            pool.first_answer(lambda endpoint: check_first_block(endpoint, deployment))
        signer = SignerProcess(key) if signs_beside else Signer(key)
        stack.callback(signer.close)
        yield Following(pool, store, signer, settings)


def connect_endpoints(urls: Sequence[str], deployment: FollowedDeployment) -> EndpointPool:
    """Connect to endpoints that each serve the deployment's chain."""
    from chainkit.chain import EndpointPool
    from chainkit.contracts.right_chain import check_deployment

    return EndpointPool.connect(urls, lambda endpoint: check_deployment(endpoint, deployment))


@contextmanager
def existing(database: str) -> Iterator[Store]:
    """Give a database of any identity that is only read."""
    from chainkit_indexer.storage.store import Store

    store = Store.open_existing(database)
    try:
        yield store
    finally:
        store.close()
