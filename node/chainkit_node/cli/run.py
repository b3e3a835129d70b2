"""``node run``: the indexer, the sequencer and the gRPC server in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from chainkit.chain import Endpoint
from chainkit.chain.heads import HeadWatcher
from chainkit.contracts.deployment import record_subject
from chainkit.contracts.followed import read_followed_deployment
from chainkit.nodes.trust import peer_ca_option
from chainkit.service.edge.launch import enter
from chainkit.service.process import run_service
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.edge import print_edge_option
from chainkit.terminal.keystore import load_signing_key
from chainkit_indexer.follow.loop import StopRequest
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_indexer.service.opening import following
from chainkit_indexer.service.options import (
    FollowerOptions,
    RunOptions,
    follower_options,
    run_options,
)
from chainkit_node.cli.limits import LimitOptions, limit_options
from chainkit_node.cli.options import (
    ListenOptions,
    RecordOptions,
    listen_options,
    payer_report_option,
    record_options,
    wallet_option,
    watch_option,
)
from chainkit_node.inboxes.contract_wallets import ContractWallets
from chainkit_node.service import NodeService, run_node


@click.command("run", cls=CompleteCommand)
@follower_options
@listen_options
@print_edge_option
@limit_options
@watch_option
@payer_report_option
@record_options
@wallet_option
@peer_ca_option
@run_options
def run_command(
    follower: FollowerOptions,
    options: RunOptions,
    listening: ListenOptions,
    is_edge_printed: bool,
    limits: LimitOptions,
    watch_seconds: float,
    payer_report_seconds: float,
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
    deployment = read_followed_deployment(follower.deployment_path)
    deployment.contracts_by_kind(record_subject(follower.deployment_path))
    serving = limits.serving(listening)
    enter(serving.edge(), is_printed=is_edge_printed)
    key = load_signing_key(follower.keystore_path, follower.password_path)
    stop = StopRequest()
    ready = ReadyLimits(options.stale_seconds, options.ready_lag_blocks, follower.serves_final_only)
    with (
        Monitor(stop, options.log_format, options.listen, ready) as monitor,
        following(follower, key, signs_beside=True) as follows,
        records.opened(follows.store.file) as record,
        HeadWatcher(options.websocket_url, options.poll_seconds) as heads,
    ):
        place = records.place(follows.store.file)
        if place is not None:
            monitor.watch_disk(place.parent)
        run_service(
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
                    serving=serving,
                    watch_seconds=watch_seconds,
                    report_seconds=payer_report_seconds,
                )
            )
        )
