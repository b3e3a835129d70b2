"""``chainkit index``: the node operator's commands. The only place here that reads options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chainkit.cli.command import CompleteGroup, require_packages
from chainkit.cli.options import (
    deployment_option,
    echo_json,
    hex0x,
    json_option,
    keystore_option,
    open_chain,
    password_option,
    rpc_option,
)
from chainkit.types import BlockReference
from chainkit_indexer.config import (
    DEFAULT_PAGE_BLOCKS,
    DEFAULT_POLL_SECONDS,
    DEFAULT_WINDOW_BLOCKS,
    IndexerSettings,
)

if TYPE_CHECKING:
    # SQLAlchemy takes longer to import than `--help` to answer.
    from chainkit_indexer.status import Status
    from chainkit_indexer.store import Store
    from chainkit_indexer.types import StepResult

require_packages("sqlalchemy", "pyarrow")

database_option = click.option(
    "--database",
    envvar="CHAINKIT_DATABASE",
    show_envvar=True,
    required=True,
    metavar="FILE|URL",
    help="The node's database: a path for SQLite, or a SQLAlchemy URL.",
)
page_option = click.option(
    "--page-blocks",
    type=click.IntRange(min=1),
    default=DEFAULT_PAGE_BLOCKS,
    show_default=True,
    help="Most blocks that one step commits.",
)
window_option = click.option(
    "--window-blocks",
    type=click.IntRange(min=1),
    default=DEFAULT_WINDOW_BLOCKS,
    show_default=True,
    help="Depth of the deepest reorg that can be repaired.",
)


def _options_of_a_follower(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            rpc_option,
            deployment_option,
            keystore_option,
            password_option,
            database_option,
            page_option,
            window_option,
        )
    ):
        command = option(command)
    return command


@contextmanager
def _follower(
    rpc_url: str,
    deployment_path: Path,
    keystore_path: Path,
    password_path: Path | None,
    database: str,
    **portions: Any,
) -> Iterator[Callable[[], StepResult]]:
    """Give a step to call, after everything that it needs was proved to fit together."""
    from chainkit.cli.key import load_signing_key
    from chainkit_indexer.step import step
    from chainkit_indexer.store import Identity, Store

    key = load_signing_key(keystore_path, password_path)
    endpoint, record, _ = open_chain(rpc_url, deployment_path)
    settings = IndexerSettings(record, **portions)
    # Last, because it makes the database where there is none.
    store = Store.open(database, Identity.of(record, key.public_key))
    try:
        yield lambda: step(endpoint, store, key, settings)
    finally:
        store.close()


@contextmanager
def _existing(database: str) -> Iterator[Store]:
    from chainkit_indexer.store import Store

    store = Store.open_existing(database)
    try:
        yield store
    finally:
        store.close()


@click.group(cls=CompleteGroup)
def index() -> None:
    """Follow the chain and keep signed envelopes.

    \b
    Example:
      chainkit index run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db
    """


@index.command("run")
@_options_of_a_follower
@click.option(
    "--poll-seconds",
    type=click.FloatRange(min=0.01),
    default=DEFAULT_POLL_SECONDS,
    show_default=True,
    help="Pause while there is nothing to do.",
)
@click.option("--until-block", type=click.IntRange(min=0), help="End when this height is indexed.")
@click.option("--until-idle", is_flag=True, help="End when there is nothing to do.")
def run_command(
    poll_seconds: float, until_block: int | None, until_idle: bool, **options: Any
) -> None:
    """Follow the chain until it is told to stop (SIGINT or SIGTERM).

    Endpoint errors that may pass are retried; it exits 2 on those that a person must decide.
    Ending it in any way, also by kill -9, loses nothing.

    \b
    Example:
      chainkit index run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db
    """
    from chainkit_indexer.narration import Narrator, configure_logging
    from chainkit_indexer.run import Goal, StopRequest, run

    stop = StopRequest()
    configure_logging()
    with _follower(**options) as take_step:
        stop.listen()
        narrator = Narrator(progress_bar=sys.stderr.isatty())
        try:
            run(take_step, poll_seconds, Goal(until_block, until_idle), stop, narrator)
        finally:
            narrator.close()


@index.command("step")
@_options_of_a_follower
@json_option
def step_command(as_json: bool, **options: Any) -> None:
    """Do one bounded piece of work and say what it was.

    \b
    Example:
      chainkit index step --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db --json
    """
    from chainkit_indexer.narration import describe

    with _follower(**options) as take_step:
        result = take_step()
    click.echo(describe(result)) if not as_json else echo_json(_result_as_json(result))


def _result_as_json(result: StepResult) -> dict[str, Any]:
    names = {"Advanced": "advanced", "Idle": "idle", "RolledBack": "rolled back"}
    values = {name: getattr(result, name) for name in type(result).__slots__}
    return {"result": names[type(result).__name__]} | {
        name: asdict(value) | {"hash": hex0x(value.hash)}
        if isinstance(value, BlockReference)
        else value
        for name, value in values.items()
    }


@index.command("status")
@database_option
@click.option("--rpc", "rpc_url", metavar="URL", help="Also say how far behind this chain is.")
@click.option(
    "--deployment",
    "deployment_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --rpc, also say what the registry of nodes holds.",
)
@json_option
def status_command(
    database: str, rpc_url: str | None, deployment_path: Path | None, as_json: bool
) -> None:
    """Say how far the chain was followed, what is kept, and which reorgs there were.

    \b
    Example:
      chainkit index status --database node.db
    """
    from chainkit_indexer import status

    if deployment_path is not None and rpc_url is None:
        raise click.UsageError("--deployment needs --rpc URL, to ask the registry")
    with _existing(database) as store:
        found = status.read_status(store)
    behind = None if rpc_url is None else _blocks_behind(rpc_url, found)
    registry = _registry(rpc_url, deployment_path, found) if rpc_url and deployment_path else None
    if as_json:
        more = {"blocks_behind": behind, "registry": registry}
        echo_json(status.as_json(found) | {k: v for k, v in more.items() if v is not None})
        return
    click.echo(status.as_text(found))
    if behind is not None:
        click.echo(f"behind       {behind} blocks")
    if registry is not None:
        click.echo(f"registry     {_registry_as_text(registry)}")


def _blocks_behind(rpc_url: str, found: Status) -> int:
    from chainkit.chain import Endpoint
    from chainkit.errors import WrongChain

    endpoint = Endpoint.connect(rpc_url)
    genesis = endpoint.header(0)
    if genesis.hash != found.identity.genesis_hash:
        expected, got = hex0x(found.identity.genesis_hash), hex0x(genesis.hash)
        raise WrongChain(f"block 0 at {endpoint.name}", expected, got)
    height = found.cursor.number if found.cursor else found.identity.first_block - 1
    return endpoint.head().number - height


def _registry(rpc_url: str, deployment_path: Path, found: Status) -> dict[str, Any]:
    """Say which node this database is, and which nodes it is to follow (XIP-49 §3.2.3)."""
    from chainkit.registry import Registry, status_word

    endpoint, record, head = open_chain(rpc_url, deployment_path)
    nodes = Registry(endpoint, record.node_registry.address).nodes(head.reference)
    own = next((n for n in nodes if n.signing_key == found.identity.node_public_key), None)
    return {
        "block": {"number": head.number, "hash": hex0x(head.hash)},
        "node_id": own.node_id if own else None,
        "status": status_word(own) if own else "not registered",
        "enabled_nodes": [node.node_id for node in nodes if node.is_enabled],
    }


def _registry_as_text(registry: dict[str, Any]) -> str:
    own = f"node {registry['node_id']} is " if registry["node_id"] else "this key is "
    enabled = ", ".join(map(str, registry["enabled_nodes"])) or "none"
    return f"{own}{registry['status']}; enabled nodes: {enabled}"


@index.command("export")
@database_option
@click.option(
    "--out",
    "directory",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder to make; it must not exist yet.",
)
@json_option
def export_command(database: str, directory: Path, as_json: bool) -> None:
    """Write envelopes, quarantine and journal as Parquet, pinned to the cursor's block.

    It needs no key and may run beside the indexer.

    \b
    Example:
      chainkit index export --database node.db --out exports/node-100
    """
    from chainkit_indexer.export import write_export

    with _existing(database) as store:
        manifest = write_export(store, directory)
    if as_json:
        echo_json({name: getattr(manifest, name) for name in type(manifest).__slots__})
        return
    click.echo(f"exported up to block {manifest.to_block} {manifest.to_block_hash}")
    for name, about in sorted(manifest.files.items()):
        click.echo(f"  {name:<20} {about['rows']} rows")
