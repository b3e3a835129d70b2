"""``node run``: the indexer, the sequencer and the gRPC server in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import click

from chainkit.chain import Endpoint, HeadWatcher
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.keystore import load_signing_key
from chainkit_indexer.follow.loop import StopRequest, collect_garbage_seldom
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_indexer.service.opening import following
from chainkit_indexer.service.options import (
    FollowerOptions,
    RunOptions,
    follower_options,
    run_options,
)
from chainkit_node.cli.options import (
    ListenOptions,
    RecordOptions,
    listen_options,
    node_limit_options,
    record_options,
    report_option,
    stranger_options,
    wallet_option,
    watch_option,
)
from chainkit_node.inboxes.contract_wallets import ContractWallets
from chainkit_node.process import ServingSettings
from chainkit_node.reporting.bounds import ReportRate
from chainkit_node.service import NodeService, run_node
from chainkit_node.serving.certificate import server_credentials
from chainkit_node.serving.open_files import within_open_files
from chainkit_node.settings import NodeLimits, StrangerLimits


@click.command("run", cls=CompleteCommand)
@follower_options
@listen_options
@stranger_options
@node_limit_options
@report_option
@watch_option
@record_options
@wallet_option
@run_options
def run_command(
    follower: FollowerOptions,
    options: RunOptions,
    listening: ListenOptions,
    strangers: StrangerLimits,
    nodes: NodeLimits,
    report_rate: ReportRate,
    watch_seconds: float,
    records: RecordOptions,
    wallet_endpoints: Mapping[int, Sequence[Endpoint]],
) -> None:
    """Follow the chain, serve readers and originate for payers, until a signal stops it.

    It does all that `chainkit index run` does, on the same database, and cannot run beside it. The
    node originates as soon as the registry lists its key as enabled. With --listen it has a page
    for its operator, at / there.

    \b
    Example:
      chainkit node run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db
    """
    files = listening.certificate_files()
    certificate = None if files is None else server_credentials(files)
    key = load_signing_key(follower.keystore_path, follower.password_path)
    stop = StopRequest()
    limits = ReadyLimits(
        options.stale_seconds, options.ready_lag_blocks, follower.serves_final_only
    )
    with (
        Monitor(stop, options.log_format, options.listen, limits) as monitor,
        following(follower, key, signs_beside=True) as follows,
        records.opened() as record,
        HeadWatcher(options.websocket_url, options.poll_seconds) as heads,
    ):
        collect_garbage_seldom()
        asyncio.run(
            run_node(
                NodeService(
                    follows=follows,
                    heads=heads,
                    registry_urls=options.registry_urls,
                    key=key,
                    wallets=ContractWallets(wallet_endpoints),
                    record=record,
                    stop=stop,
                    monitor=monitor,
                    serving=ServingSettings(
                        strangers=within_open_files(strangers),
                        nodes=nodes,
                        report_rate=report_rate,
                        address=listening.grpc_address,
                        certificate=certificate,
                    ),
                    watch_seconds=watch_seconds,
                )
            )
        )
