"""The application that Envoy calls: the command line, started again inside Envoy's process."""

from __future__ import annotations

from functools import cache

from chainkit.cli.main import main
from chainkit.service.edge.calls import Receive, Scope, Send
from chainkit.service.edge.inside import Inside


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Take ASGI's events; the first one, the start of the lifespan, takes over the process."""
    await _inside().application(scope, receive, send)


@cache
def _inside() -> Inside:
    return Inside(main)
