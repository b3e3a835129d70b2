"""``index run`` and ``index step``: follow the chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from chainkit.chain import Endpoint, HeadWatcher
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, gathered, json_option
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockHeader, BlockReference
from chainkit_indexer.config import DEFAULT_POLL_SECONDS
from chainkit_indexer.follow.idle import IdleCheck
from chainkit_indexer.follow.loop import Goal, StopRequest, collect_garbage_seldom, run
from chainkit_indexer.follow.pages import PageReader
from chainkit_indexer.follow.provenance import PageProver
from chainkit_indexer.follow.step import step
from chainkit_indexer.monitoring.limits import (
    DEFAULT_READY_LAG_BLOCKS,
    DEFAULT_STALE_SECONDS,
    ReadyLimits,
)
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_indexer.monitoring.narration import describe, narrate_start
from chainkit_indexer.monitoring.other_chains import OtherChains
from chainkit_indexer.monitoring.registration import RegistrationNarrator
from chainkit_indexer.monitoring.web_socket import WebSocketNarrator
from chainkit_indexer.registry.watch import RegistryWatch, is_behind, watch_registry
from chainkit_indexer.replay.keeper import RawTransactionKeeper
from chainkit_indexer.service.opening import Following, following
from chainkit_indexer.service.options import FollowerOptions, follower_options
from chainkit_indexer.types import Idle, StepResult
from chainkit_indexer.verification.background import BackgroundProver


@dataclass(frozen=True, slots=True)
class _RunOptions:
    """The options of ``index run`` alone."""

    websocket_url: str | None
    registry_urls: tuple[str, ...]
    poll_seconds: float
    until_block: int | None
    until_idle: bool
    log_format: str
    listen: str | None
    stale_seconds: float
    ready_lag_blocks: int


@click.command("run", cls=CompleteCommand)
@follower_options
@click.option(
    "--websocket",
    "websocket_url",
    envvar="CHAINKIT_WEBSOCKET",
    show_envvar=True,
    metavar="URL",
    help="ws:// or wss:// endpoint that tells of new heads; without it, the chain is polled.",
)
@click.option(
    "--registry-rpc",
    "registry_urls",
    multiple=True,
    metavar="URL",
    help="Endpoint of the node registry's chain, where that is another one.",
)
@click.option(
    "--poll-seconds",
    type=click.FloatRange(min=0.01),
    default=DEFAULT_POLL_SECONDS,
    show_default=True,
    help="Pause while there is nothing to do, also beside a WebSocket.",
)
@click.option("--until-block", type=click.IntRange(min=0), help="End when this height is indexed.")
@click.option(
    "--until-idle",
    is_flag=True,
    help="End when contracts, registry and the heads of all endpoints are reached.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines for a person, or one JSON object a line.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Serve /metrics, /healthz and /readyz there; port 0 takes a free one.",
)
@click.option(
    "--stale-seconds",
    type=click.FloatRange(min=0),
    default=DEFAULT_STALE_SECONDS,
    show_default=True,
    help="Age of the head at which /readyz turns red; 0 for a chain that may stand still.",
)
@click.option(
    "--ready-lag-blocks",
    type=click.IntRange(min=0),
    default=DEFAULT_READY_LAG_BLOCKS,
    show_default=True,
    help="Blocks between cursor and head at which /readyz turns red.",
)
@gathered(_RunOptions, "options")
def run_command(follower: FollowerOptions, options: _RunOptions) -> None:
    """Follow the chain until a signal stops it (SIGINT or SIGTERM).

    Endpoint errors that may pass are retried; it exits 2 on those that a person must decide.
    Ending it in any way, also by kill -9, loses nothing.

    \b
    Example:
      chainkit index run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db
    """
    stop = StopRequest()
    limits = ReadyLimits(
        options.stale_seconds, options.ready_lag_blocks, follower.serves_final_only
    )
    with (
        Monitor(stop, options.log_format, options.listen, limits) as monitor,
        following(follower, signs_beside=True) as follows,
        HeadWatcher(options.websocket_url, options.poll_seconds) as heads,
    ):
        stop.listen()
        narrate_start(follows.pool.statistics())
        collect_garbage_seldom()
        position = follows.store.position()
        others = OtherChains(follows.pool)
        background = BackgroundProver(
            follows.store, follows.settings, follows.pool.others, follows.pool.failed
        )
        sequence_ids = position.sequence_ids if position else {}
        monitor.watch(
            follows.pool, heads, sequence_ids, others.differing, lambda: background.differences
        )
        settings = follows.settings
        registry = watch_registry(
            follows.store, settings.deployment, follows.pool, options.registry_urls
        )
        idle = IdleCheck(
            follows.pool, settings.deployment.chain_id, lambda: registry is None or registry.is_done
        )
        run(
            _steps(follows),
            follows.pool,
            heads,
            Goal(options.until_block, idle.is_done if options.until_idle else None),
            stop,
            monitor,
            _chores(follows, registry, heads, others, background),
        )


def _steps(follows: Following) -> Callable[[Endpoint], StepResult]:
    store, settings = follows.store, follows.settings
    prover = PageProver(settings, follows.pool.others)
    reader = PageReader(settings, follows.signer, prefetches=True, prover=prover)
    return lambda endpoint: step(endpoint, store, settings, reader)


def _chores(
    follows: Following,
    watch: RegistryWatch | None,
    heads: HeadWatcher,
    others: OtherChains,
    background: BackgroundProver,
) -> Callable[[Endpoint, StepResult], bool]:
    """Return the work between two steps, which delays no step."""
    web_socket, registration = WebSocketNarrator(heads), RegistrationNarrator(follows.store)
    keeper = RawTransactionKeeper(follows.store, follows.pool.failed)

    def work(endpoint: Endpoint, result: StepResult) -> bool:
        web_socket.look()
        others.look(endpoint, result.cursor)
        if isinstance(result, Idle):
            keeper.keep(endpoint, result.final_block)
            background.prove(endpoint, result.final_block)
        registry = watch() if watch else None
        registration.look(registry)
        return is_behind(registry)

    return work


@click.command("step", cls=CompleteCommand)
@follower_options
@json_option
def step_command(follower: FollowerOptions, as_json: bool) -> None:
    """Do one bounded piece of work and print its result.

    \b
    Example:
      chainkit index step --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db --json
    """
    with following(follower) as follows:
        endpoint = follows.pool.choose()
        prover = PageProver(follows.settings, follows.pool.others)
        reader = PageReader(follows.settings, follows.signer, prover=prover)
        result = step(endpoint, follows.store, follows.settings, reader)
    click.echo(describe(result)) if not as_json else echo_json(_result_as_json(result))


def _result_as_json(result: StepResult) -> dict[str, Any]:
    names = {"Advanced": "advanced", "Idle": "idle", "RolledBack": "rolled back"}
    values = {name: _as_json(getattr(result, name)) for name in type(result).__slots__}
    return {"result": names[type(result).__name__]} | values


def _as_json(value: object) -> object:
    if isinstance(value, BlockHeader | BlockReference):
        return {"number": value.number, "hash": hex0x(value.hash)}
    return value
