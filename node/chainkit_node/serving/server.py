"""The gRPC server of a node's process, from its start to the signal that ends it."""

from __future__ import annotations

import asyncio
from typing import Final

from chainkit.service.certificate import ServerCertificate
from chainkit.service.grpc_methods import Bounds, Methods
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.process import open_server
from chainkit_node.serving.api import SERVICES
from chainkit_node.serving.metrics import NodeMetrics

_GRACE_SECONDS: Final = 5.0


class NodeServer:
    """Serves the node's methods; made and used on the event loop's thread."""

    def __init__(self, methods: Methods, bounds: Bounds, metrics: NodeMetrics) -> None:
        """Take the methods, the bounds of callers, and the metrics."""
        self._loop = asyncio.get_running_loop()
        self._metrics = metrics
        self._server = open_server(methods, SERVICES, bounds)

    async def start(self, address: str, certificate: ServerCertificate | None, name: str) -> None:
        """Listen at ``HOST:PORT``, and log that as ``name``; not ready until ``set_ready``.

        Raises ConfigurationError where nobody can listen there.
        """
        port = await self._server.start(address, certificate)
        await self._server.say_ready(False)
        how = "plain text" if certificate is None else "TLS"
        text = f"{name} at {address.rpartition(':')[0]}:{port} (gRPC, {how})"
        log_event(LogEvent("node_listening", text, {"port": port}))

    def set_ready(self, is_ready: bool) -> None:
        """Set whether health checks report the node as serving; from any thread."""
        self._metrics.said_ready(is_ready)
        asyncio.run_coroutine_threadsafe(self._server.say_ready(is_ready), self._loop)

    async def stop(self) -> None:
        """Take no more calls, and end those that are open soon."""
        await self._server.stop(_GRACE_SECONDS)
