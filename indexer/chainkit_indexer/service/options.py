"""Options that several of the operator's commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from chainkit.errors import ConfigurationError
from chainkit.terminal.options import (
    Option,
    deployment_option,
    endpoints_option,
    gathered,
    keystore_option,
    log_format_option,
    monitor_option,
    password_option,
    several,
)
from chainkit_indexer.config import DEFAULT_PAGE_BLOCKS, DEFAULT_POLL_SECONDS
from chainkit_indexer.finality import DEFAULT_BLOCKS, FinalityPolicy
from chainkit_indexer.monitoring.limits import DEFAULT_READY_LAG_BLOCKS, DEFAULT_STALE_SECONDS


def _database(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and value.startswith("postgres://"):
        # The scheme as libpq and hosters write it; no other part is shown, as it may be a password.
        expected, written = "postgresql+psycopg://…", "postgres://…"
        raise ConfigurationError("database", expected, written, "the rest of the URL stays")
    return value


def _database_option(*, required: bool) -> Option:
    return click.option(
        "--database",
        envvar="CHAINKIT_DATABASE",
        show_envvar=True,
        required=required,
        metavar="FILE|URL",
        callback=_database,
        help="The node's database: a path for SQLite, or postgresql+psycopg://…",
    )


database_option = _database_option(required=True)
optional_database_option = _database_option(required=False)
"""The command gets None where the option is not given."""
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

trust_option = click.option(
    "--trust-one-endpoint",
    "trusts_one_endpoint",
    envvar="CHAINKIT_TRUST_ONE_ENDPOINT",
    show_envvar=True,
    is_flag=True,
    help="Sign what one endpoint alone says where its blocks cannot be proved; without it, such "
    "blocks wait for an endpoint of another host that says the same.",
)


@dataclass(frozen=True, slots=True)
class FollowerOptions:
    """The options of a command that follows the chain."""

    rpc_urls: tuple[str, ...]
    deployment_path: Path
    keystore_path: Path
    password_path: Path | None
    database: str
    finality: FinalityPolicy
    serve: str
    page_blocks: int
    trusts_one_endpoint: bool

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
    trust_option,
    gathered(FollowerOptions, "follower"),
)
"""Decorator: everything that a step needs to know; the command takes a FollowerOptions."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a service that follows the chain."""

    websocket_url: str | None
    registry_urls: tuple[str, ...]
    poll_seconds: float
    log_format: str
    listen: str | None
    stale_seconds: float
    ready_lag_blocks: int


run_options = several(
    click.option(
        "--websocket",
        "websocket_url",
        envvar="CHAINKIT_WEBSOCKET",
        show_envvar=True,
        metavar="URL",
        help="ws:// or wss:// endpoint that tells of new heads; without it, the chain is polled.",
    ),
    click.option(
        "--registry-rpc",
        "registry_urls",
        multiple=True,
        metavar="URL",
        help="Endpoint of the node registry's chain, where that is another one.",
    ),
    click.option(
        "--poll-seconds",
        type=click.FloatRange(min=0.01),
        default=DEFAULT_POLL_SECONDS,
        show_default=True,
        help="Pause while there is nothing to do, also beside a WebSocket.",
    ),
    log_format_option,
    monitor_option,
    click.option(
        "--stale-seconds",
        type=click.FloatRange(min=0),
        default=DEFAULT_STALE_SECONDS,
        show_default=True,
        help="Age of the head at which /readyz turns red; 0 for a chain that may stand still.",
    ),
    click.option(
        "--ready-lag-blocks",
        type=click.IntRange(min=0),
        default=DEFAULT_READY_LAG_BLOCKS,
        show_default=True,
        help="Blocks between cursor and head at which /readyz turns red.",
    ),
    gathered(RunOptions, "options"),
)
"""Decorator: how a service follows and is watched; the command takes a RunOptions."""
