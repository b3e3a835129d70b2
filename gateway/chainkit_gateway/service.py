"""The gateway as a service: PayerApi over gRPC, until it is asked to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Final

from chainkit.errors import ChainError
from chainkit.service.grpc_server import GrpcServer, Methods
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.text.counting import counted
from chainkit_gateway.publishing import ClientDesk, Payer

_SERVICE: Final = "xmtp.xmtpv4.payer_api.PayerApi"
_GRACE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 5.0


async def serve(address: str, payer: Payer) -> None:
    """Answer clients at ``HOST:PORT`` until SIGINT or SIGTERM comes; port 0 takes a free one.

    Raises ConfigurationError where nobody can listen at the address.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    desk = ClientDesk(payer)
    methods = {
        "GetNodes": desk.get_nodes,
        "PublishClientEnvelopes": desk.publish_client_envelopes,
    }
    server = GrpcServer(Methods(methods), {_SERVICE: tuple(methods)})
    try:
        port = await server.start(address)
        host = address.rpartition(":")[0]
        await server.say_ready(True)
        text = f"gateway for clients at http://{host}:{port}, nodes {_named(payer)}"
        log_event(LogEvent("gateway_listening", text, {"port": port}))
        await _watch(payer, stop)
    finally:
        await server.stop(_GRACE_SECONDS)
        await payer.nodes.close()


async def _watch(payer: Payer, stop: asyncio.Event) -> None:
    """Until the end, look now and then whether a reorg dropped transactions."""
    while not stop.is_set():
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                await stop.wait()
        except TimeoutError:
            await _resend_lost(payer)


async def _resend_lost(payer: Payer) -> None:
    try:
        count = await asyncio.to_thread(payer.chain.resend_lost)
    except ChainError as error:
        text = f"chain: retrying: {error}"
        log_event(LogEvent("chain_failed", text, level=logging.WARNING))
        return
    if count:
        text = f"{counted(count, 'transaction')} sent again after a reorg"
        log_event(LogEvent("transactions_resent", text, {"transactions": count}))


def _named(payer: Payer) -> str:
    return ", ".join(f"{each} at {url}" for each, url in sorted(payer.nodes.urls.items()))
