"""The gateway as a service: PayerApi over gRPC, until it is asked to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from dataclasses import dataclass
from typing import Final

from chainkit.errors import ChainError
from chainkit.service.grpc_server import GrpcServer, Methods
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.text.counting import counted
from chainkit_gateway.clients import Clients
from chainkit_gateway.desk import ClientDesk
from chainkit_gateway.nodes import Nodes
from chainkit_gateway.payer_account import PayerAccount
from chainkit_gateway.publishing import Payer, Publisher

_SERVICE: Final = "xmtp.xmtpv4.payer_api.PayerApi"
_GRACE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Gateway:
    """Everything that a running gateway needs, opened by its command line."""

    payer: Payer
    nodes: Nodes
    account: PayerAccount
    clients: Clients
    address: str
    """``HOST:PORT`` for clients; port 0 takes a free one."""


async def serve(gateway: Gateway) -> None:
    """Answer clients until SIGINT or SIGTERM comes.

    Raises ConfigurationError where nobody can listen at the address.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    desk = ClientDesk(gateway.nodes, Publisher(gateway.payer), gateway.clients)
    methods = {
        "GetNodes": desk.get_nodes,
        "PublishClientEnvelopes": desk.publish_client_envelopes,
    }
    server = GrpcServer(Methods(of_callers=methods), {_SERVICE: tuple(methods)})
    try:
        port = await server.start(gateway.address)
        host = gateway.address.rpartition(":")[0]
        await server.say_ready(True)
        text = f"gateway for clients at http://{host}:{port}, nodes {_named(gateway.nodes)}"
        log_event(LogEvent("gateway_listening", text, {"port": port}))
        await _watch(gateway, stop)
    finally:
        await server.stop(_GRACE_SECONDS)
        await gateway.nodes.close()


async def _watch(gateway: Gateway, stop: asyncio.Event) -> None:
    """Until the end, look now and then after transactions that wait, or that a reorg dropped."""
    while not stop.is_set():
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await stop.wait()
        except TimeoutError:
            await _tend(gateway.account)


async def _tend(account: PayerAccount) -> None:
    try:
        tended = await asyncio.to_thread(account.tend)
    except ChainError as error:
        text = f"chain: retrying: {error}"
        log_event(LogEvent("chain_failed", text, level=logging.WARNING))
        return
    if count := tended.resent:
        text = f"{counted(count, 'transaction')} sent again that the chain did not know"
        log_event(LogEvent("transactions_resent", text, {"transactions": count}))
    if count := tended.replaced:
        text = f"{counted(count, 'transaction')} replaced with higher fees"
        log_event(LogEvent("transactions_replaced", text, {"transactions": count}))


def _named(nodes: Nodes) -> str:
    return ", ".join(f"{each} at {url}" for each, url in sorted(nodes.urls.items()))
