"""Connections of strangers over HTTP/1.1: how many, for how long, and how refusals are answered.

Each connection carries one request, and is closed with its answer: so the time of a connection is
the time of its head, its body and its answer, which are bounded one by one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from aiohttp import web

from chainkit.errors import ConfigurationError
from chainkit.service.allowance import Held, address_of
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.monitor_server import parse_listen
from chainkit_backups.types import OutOfRange, Refused

REST_SECONDS: Final = 60.0
"""The time in which a client must take what is left of an answer, some 100 KB at most."""

MOST_CONNECTIONS: Final = 500
MOST_CONNECTIONS_OF_ONE: Final = 32
"""Connections of one address at a time; a trusted proxy has no limit of its own."""

_LINGER_SECONDS: Final = 1.0
"""How long the rest of a refused body is read, so that its sender reads the refusal."""

_SILENT: Final = logging.Logger("http", logging.CRITICAL + 1)
"""The library would log a traceback for each bad request of a stranger."""

_GRACE_SECONDS: Final = 5.0
_FORWARDED: Final = "X-Forwarded-For"
EVERYWHERE: Final = {
    "Server": "chainkit",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Content-Range, ETag, Retry-After",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def caller_address(request: web.Request, proxies: Collection[str]) -> str:
    """Return the address for which a request counts: see ``address_of``.

    ``proxies`` are IP addresses whose statement about their clients is trusted.
    """
    peer = request.remote or ""
    if peer not in proxies:
        return counted(peer)
    # A proxy appends the address that it saw; all addresses before it are the client's own text.
    last = ",".join(request.headers.getall(_FORWARDED, [])).rpartition(",")[2].strip()
    return counted(last if _is_address(last) else peer)


def counted(host: str) -> str:
    """Return the unit in which an IP address counts: itself, or its network of 64 bits."""
    return address_of(f"ipv6:[{host}]:0" if ":" in host else f"ipv4:{host}:0")


class HttpServer:
    """Serves the paths of a table; made and used on the event loop's thread."""

    def __init__(
        self, routes: web.RouteTableDef, proxies: Collection[str], patience: float
    ) -> None:
        """Take the paths, and the IP addresses of proxies, which may hold many connections.

        ``patience`` is the time in seconds in which a connection must bring its request's head.
        """
        application = web.Application(middlewares=[self._timed, _answered])
        application.add_routes(routes)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_SILENT,
            # A body of few bytes must stay one of few bytes.
            auto_decompress=False,
            lingering_time=_LINGER_SECONDS,
            shutdown_timeout=_GRACE_SECONDS,
        )
        self._held = Held(MOST_CONNECTIONS, MOST_CONNECTIONS_OF_ONE)
        self._proxies = frozenset(proxies)
        self._patience = patience
        self._ends: dict[web.RequestHandler, Callable[[float | None], None]] = {}
        self._listener: asyncio.Server | None = None

    async def start(self, address: str) -> int:
        """Listen at ``HOST:PORT``; port 0 takes a free one. Return the port.

        Raises ConfigurationError where nobody can listen there.
        """
        await self._runner.setup()
        host, port = parse_listen(address, "--http")
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connection, host, port
            )
        except OSError as error:
            got = error.strerror or error
            raise ConfigurationError("--http", "an address to listen on", got, address) from error
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Take no more connections, and end those that are open after a grace."""
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    def _connection(self) -> _Connection:
        serves = self._runner.server
        assert serves is not None
        return _Connection(serves(), self._held, self._proxies, self._patience, self._ends)

    @web.middleware
    async def _timed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Stop the time of the head, which has come, and begin that of the answer's rest."""
        set_end = self._ends.get(request.protocol)
        if set_end is None:
            # The connection ended before its request could begin.
            raise ConnectionResetError
        set_end(None)
        try:
            return await handler(request)
        finally:
            set_end(REST_SECONDS)


class _Connection(asyncio.Protocol):
    """A connection of the library's, counted, and ended at a deadline that its request moves."""

    def __init__(
        self,
        inner: web.RequestHandler,
        held: Held,
        proxies: Collection[str],
        patience: float,
        ends: dict[web.RequestHandler, Callable[[float | None], None]],
    ) -> None:
        self._inner = inner
        self._held = held
        self._proxies = proxies
        self._patience = patience
        self._ends = ends
        self._address: str | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._inner.connection_made(transport)
        self._ends[self._inner] = self._set_end
        host = (transport.get_extra_info("peername") or ("",))[0]
        address = counted(host)
        has_room = host in self._proxies or self._held.has_room_for(address, 1)
        if not has_room or not self._held.has_room(1):
            transport.abort()
            return
        self._address = address
        self._held.take(address, 1)
        self._set_end(self._patience)

    def connection_lost(self, error: Exception | None) -> None:
        self._set_end(None)
        del self._ends[self._inner]
        if self._address is not None:
            self._held.give_back(self._address, 1)
        self._inner.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> None:
        self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def _set_end(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = None if seconds is None else loop.call_later(seconds, self._transport.abort)


@web.middleware
async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer refusals by their status; a fault of the service is logged, and answered without text.

    Pages of all hosts may read the answers, as today's clients in browsers need: there are no
    cookies and no accounts.
    """
    try:
        answer = await handler(request)
    except web.HTTPException as error:
        answer = web.Response(status=error.status, text=f"{error.reason}\n")
    except Refused as refusal:
        answer = _refusal(refusal)
    except ConnectionError:
        # The client left, or interrupted its body: nobody reads an answer.
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError from None
    except Exception as error:
        text = f"request: expected an answer, got {error!r}"
        log_event(LogEvent("request_failed", text, level=logging.ERROR))
        answer = web.Response(status=500)
    if not answer.prepared:
        answer.headers.update(EVERYWHERE)
    answer.force_close()
    return answer


def _refusal(refusal: Refused) -> web.Response:
    answer = web.Response(status=refusal.status, text=f"{refusal}\n")
    if refusal.retry_seconds is not None:
        answer.headers["Retry-After"] = str(math.ceil(refusal.retry_seconds))
    if isinstance(refusal, OutOfRange):
        answer.headers["Content-Range"] = f"bytes */{refusal.size}"
    return answer


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
