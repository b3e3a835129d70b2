"""The process of a service, which is Envoy's: its server, its loop, its signals."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Coroutine, Mapping
from typing import Any, Final, TypeVar

from chainkit.service.edge.inside import Inside
from chainkit.service.edge.server import EdgeServer
from chainkit.service.grpc_methods import UNBOUNDED, Bounds, Methods

_T = TypeVar("_T")

_TURN_SECONDS: Final = 0.0005
"""For how long a thread keeps Python while others wait for it. Judging and storing give Python up
at each signature and statement, and Python's own 5 ms would be waited for at each of these."""


def open_server(
    methods: Methods, services: Mapping[str, Collection[str]], bounds: Bounds = UNBOUNDED
) -> EdgeServer:
    """Return a server of methods that take and give bytes; on the event loop's thread."""
    return EdgeServer(methods, services, bounds, process=_inside())


def run_service(service: Coroutine[Any, Any, _T]) -> _T:
    """Run a service on the event loop of its server, to its end."""
    sys.setswitchinterval(_TURN_SECONDS)
    return _inside().run(service)


def ended_by_signals() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set; on the event loop's thread."""
    return _inside().ended_by_signals()


def _inside() -> Inside:
    """Return this process, which is Envoy's behind ``launch.enter``."""
    assert Inside.present is not None
    return Inside.present
