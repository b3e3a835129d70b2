"""``index run`` and ``index step``: follow the chain."""

from __future__ import annotations

from typing import Any

import click

from chainkit.chain.heads import HeadWatcher
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.keystore import load_signing_key
from chainkit.terminal.options import echo_json, gathered, json_option
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockHeader, BlockReference
from chainkit_indexer.follow.loop import StopRequest, collect_garbage_seldom
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.provenance import PageProver
from chainkit_indexer.follow.step import step
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_indexer.monitoring.narration import describe
from chainkit_indexer.service.opening import following
from chainkit_indexer.service.options import (
    FollowerOptions,
    RunOptions,
    follower_options,
    run_options,
)
from chainkit_indexer.service.run import Until, follow_chain
from chainkit_indexer.types import StepResult


@click.command("run", cls=CompleteCommand)
@follower_options
@click.option("--until-block", type=click.IntRange(min=0), help="End when this height is indexed.")
@click.option(
    "--until-idle",
    is_flag=True,
    help="End when contracts, registry and the heads of all endpoints are reached.",
)
@gathered(Until, "until")
@run_options
def run_command(follower: FollowerOptions, until: Until, options: RunOptions) -> None:
    """Follow the chain until a signal stops it (SIGINT or SIGTERM).

    Endpoint errors that may pass are retried; it exits 2 on those that a person must decide.
    Ending it in any way, also by kill -9, loses nothing.

    \b
    Example:
      chainkit index run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db
    """
    key = load_signing_key(follower.keystore_path, follower.password_path)
    stop = StopRequest()
    limits = ReadyLimits(
        options.stale_seconds, options.ready_lag_blocks, follower.serves_final_only
    )
    with (
        Monitor(stop, options.log_format, options.listen, limits) as monitor,
        following(follower, key, signs_beside=True) as follows,
        HeadWatcher(options.websocket_url, options.poll_seconds) as heads,
    ):
        stop.listen()
        collect_garbage_seldom()
        follow_chain(follows, heads, options.registry_urls, stop, monitor, until)


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
    key = load_signing_key(follower.keystore_path, follower.password_path)
    with following(follower, key) as follows:
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
