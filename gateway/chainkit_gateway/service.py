"""The gateway as a service: PayerApi over gRPC, until a signal stops the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, Final

from chainkit.errors import ChainError, StoreError
from chainkit.nodes.pool import Nodes
from chainkit.protocol.methods import BACKUP_API, PAYER_API
from chainkit.service.counting_gate import CountingGate
from chainkit.service.edge.server import SMALL_BYTES
from chainkit.service.grpc_methods import Bounds, Methods
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.monitor_server import MonitorServer, parse_listen
from chainkit.service.open_files import within_open_files
from chainkit.service.process import ended_by_signals, open_server
from chainkit.text.counting import counted
from chainkit_gateway.clients import Clients, OpenLimits
from chainkit_gateway.clients_gate import ClientsGate
from chainkit_gateway.fallen import Fallen
from chainkit_gateway.handlers import PayerHandlers
from chainkit_gateway.monitoring import CountedPublisher, GatewayMonitor
from chainkit_gateway.payer_account import PayerAccount
from chainkit_gateway.publishing import Payer, Publisher
from chainkit_gateway.registry import RegistryWatch
from chainkit_gateway.retention import RetentionPolicy
from chainkit_gateway.upload_grants import UploadGrants

_GRACE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 2.0
_HEARTBEAT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Gateway:
    """Everything that a running gateway needs, opened by its command line."""

    payer: Payer
    nodes: Nodes
    account: PayerAccount
    clients: Clients
    retention: RetentionPolicy
    upload_grants: UploadGrants | None
    """None where clients have no storage service."""
    registry: RegistryWatch | None
    """None where the command line gives the nodes."""
    registry_seconds: float
    """How often the registry is read."""
    monitor: GatewayMonitor
    listen: str | None
    """``HOST:PORT`` of the monitor server; None for no monitor server."""
    address: str
    """``HOST:PORT`` for clients; port 0 takes a free one."""
    limits: OpenLimits


async def serve(gateway: Gateway) -> None:
    """Answer clients until SIGINT or SIGTERM comes.

    Raises ConfigurationError where nobody can listen at the address.
    """
    ended = ended_by_signals()
    handlers = PayerHandlers(
        gateway.nodes,
        CountedPublisher(Publisher(gateway.payer), gateway.monitor),
        gateway.clients,
        gateway.retention,
    )
    methods = {
        "GetNodes": handlers.get_nodes,
        "PublishClientEnvelopes": handlers.publish_client_envelopes,
    }
    services = {PAYER_API: tuple(methods)}
    if gateway.upload_grants is not None:
        services[BACKUP_API] = ("GrantUpload",)
        methods["GrantUpload"] = gateway.upload_grants.grant_upload
    within_open_files(gateway.limits.connections)
    small = dict.fromkeys(("GetNodes", "GrantUpload"), SMALL_BYTES)
    gate = ClientsGate(gateway.clients, gateway.limits.calls_of_one)
    bounds = Bounds(CountingGate(gate, gateway.monitor.refused), gateway.limits.calls or None)
    server = open_server(Methods(of_callers=methods, request_bytes=small), services, bounds)
    watched = _watched(gateway)
    tasks = [asyncio.create_task(each) for each in _background_tasks(gateway)]
    try:
        port = await server.start(gateway.address)
        host = gateway.address.rpartition(":")[0]
        await server.say_ready(True)
        text = f"gateway for clients at http://{host}:{port}, nodes {_named(gateway.nodes)}"
        log_event(LogEvent("gateway_listening", text, {"port": port}))
        await ended.wait()
    finally:
        await server.stop(_GRACE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await gateway.nodes.close()
        if watched is not None:
            watched.close()


def _watched(gateway: Gateway) -> MonitorServer | None:
    if gateway.listen is None:
        return None
    paths = gateway.monitor.paths
    server = MonitorServer(parse_listen(gateway.listen), paths)
    text = f"listening on {server.address} for {', '.join(paths)}"
    log_event(LogEvent("listening", text, {"address": server.address}))
    return server


def _background_tasks(gateway: Gateway) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield the periodic tasks of the service."""
    yield _repeat(_HEARTBEAT_SECONDS, lambda: _heartbeat(gateway.monitor))
    fallen = Fallen(gateway.account, gateway.nodes)
    yield _repeat(_LOOK_SECONDS, lambda: _look(gateway.account, gateway.monitor, fallen))
    if gateway.registry is not None:
        yield _repeat(gateway.registry_seconds, gateway.registry.refresh)


async def _repeat(seconds: float, task: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await task()
        except Exception as error:
            # The service goes on; the task runs again at its next time.
            text = f"periodic task: expected its end, got {error!r}"
            log_event(LogEvent("task_failed", text, level=logging.ERROR))


async def _heartbeat(monitor: GatewayMonitor) -> None:
    monitor.heartbeat()


async def _look(account: PayerAccount, monitor: GatewayMonitor, fallen: Fallen) -> None:
    try:
        outcome = await asyncio.to_thread(account.process_pending)
        monitor.observe_account(outcome, await asyncio.to_thread(account.balance))
        await fallen.publish_again()
    except (ChainError, StoreError) as error:
        text = f"chain: retrying: {error}"
        log_event(LogEvent("chain_failed", text, level=logging.WARNING))
        return
    if count := outcome.resent:
        text = f"{counted(count, 'transaction')} sent again that the chain did not know"
        log_event(LogEvent("transactions_resent", text, {"transactions": count}))
    if count := outcome.not_kept:
        text = f"{counted(count, 'transaction')} taken by the endpoint, which then knows none"
        fields = {"transactions": count}
        log_event(LogEvent("transactions_not_kept", text, fields, level=logging.WARNING))
    if count := outcome.replaced:
        text = f"{counted(count, 'transaction')} replaced with higher fees"
        log_event(LogEvent("transactions_replaced", text, {"transactions": count}))


def _named(nodes: Nodes) -> str:
    return ", ".join(f"{each} at {url}" for each, url in sorted(nodes.urls.items()))
