"""Options that several of the operator's commands share, and what they open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chainkit.terminal.options import deployment_option, keystore_option, password_option
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


def options_of_a_follower(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command everything that a step needs to know."""
    for option in reversed(
        (
            endpoints_option,
            deployment_option,
            keystore_option,
            password_option,
            database_option,
            finality_option,
            serve_option,
            page_option,
        )
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Following:
    """Everything that a step needs, proved to fit together."""

    pool: EndpointPool
    store: Store
    signer: Signer
    settings: IndexerSettings


@contextmanager
def following(
    rpc_urls: Sequence[str],
    deployment_path: Path,
    keystore_path: Path,
    password_path: Path | None,
    database: str,
    finality: FinalityPolicy,
    serve: str,
    page_blocks: int,
    signs_beside: bool = False,
) -> Iterator[Following]:
    """Open what a step needs; ``signs_beside`` starts a process that signs."""
    from chainkit.contracts.followed import read_followed_deployment
    from chainkit.terminal.keystore import load_signing_key
    from chainkit_indexer.follow.first_start import check_first_block
    from chainkit_indexer.follow.signing import Signer, SignerProcess
    from chainkit_indexer.storage.identity import Identity
    from chainkit_indexer.storage.store import Store

    key = load_signing_key(keystore_path, password_path)
    deployment = read_followed_deployment(deployment_path)
    pool = connect_endpoints(rpc_urls, deployment)
    settings = IndexerSettings(deployment, page_blocks, finality, serve == "final")
    with ExitStack() as stack:
        # Last, because it makes the database where there is none.
        store = Store.open(database, Identity.of(deployment, key.public_key))
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
