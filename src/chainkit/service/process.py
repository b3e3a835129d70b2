"""The process of a service, whether Envoy's or Python's own: its server, its loop, its signals."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

from chainkit.service.certificate import ServerCertificate
from chainkit.service.edge.inside import ENDING, Inside
from chainkit.service.edge.server import EdgeServer
from chainkit.service.grpc_methods import UNBOUNDED, Bounds, Methods
from chainkit.service.grpc_server import GrpcServer

_T = TypeVar("_T")


class Server(Protocol):
    """A server of methods that take and give bytes; used on the event loop's thread."""

    async def start(self, address: str, certificate: ServerCertificate | None = None) -> int:
        """Listen at ``HOST:PORT``, and return the port. Raises ConfigurationError."""

    async def say_ready(self, is_ready: bool) -> None:
        """Answer health checks with whether the service is ready."""

    async def stop(self, grace_seconds: float) -> None:
        """Accept no more calls, and end open calls after so many seconds."""


def open_server(
    methods: Methods, services: Mapping[str, Collection[str]], bounds: Bounds = UNBOUNDED
) -> Server:
    """Return this process's server: Envoy's inside Envoy, else that of Python's library."""
    if Inside.present is not None:
        return EdgeServer(methods, services, bounds, process=Inside.present)
    return GrpcServer(methods, services, bounds)


def run_service(service: Coroutine[Any, Any, _T]) -> _T:
    """Run a service on the event loop of its server, to its end."""
    return asyncio.run(service) if Inside.present is None else Inside.present.run(service)


def ended_by_signals() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set; on the event loop's thread."""
    if Inside.present is not None:
        return Inside.present.ended_by_signals()
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, ended.set)
    return ended
