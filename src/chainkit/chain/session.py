"""A requests session for endpoints that may mean harm: one deadline over each whole exchange.

A socket's own time-out begins anew with each byte: an endpoint that sends its headers a byte at a
time, or `100 Continue` without end, would hold the caller for ever. So each read and each write
waits at most for the rest of the exchange's time, and no watching thread is needed.
"""

from __future__ import annotations

import http.client
import io
import math
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.poolmanager import PoolManager
from urllib3.util.connection import allowed_gai_family

from chainkit.text.hosts import is_public

LONGEST_HEADERS_BYTES: Final = 256 * 2**10
"""Most bytes before a body: all headers, and those of interim answers before the final one."""

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
_refused: ContextVar[list[str] | None] = ContextVar("refused", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Give all exchanges of this module's sessions, in this thread, one deadline in seconds.

    Only the lookup of a host's addresses is the operating system's, and takes its own time.
    """
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


@contextmanager
def public_addresses_only() -> Iterator[list[str]]:
    """Let sessions of this module, in this thread, connect to public addresses alone.

    Yields a list that gets each address that was refused. The address itself is checked, not the
    name, which may lead to another address a moment later. A proxy chooses its addresses itself.
    """
    refused: list[str] = []
    token = _refused.set(refused)
    try:
        yield refused
    finally:
        _refused.reset(token)


def seconds_left() -> float:
    """Return the seconds until the deadline: infinite without a deadline, negative after it."""
    return _deadline.get() - time.monotonic()


class EndpointSession(requests.Session):
    """Keeps connections but no cookies, which an endpoint could pile up, and reads no redirect."""

    def __init__(self) -> None:
        """Make one for one thread."""
        super().__init__()
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())
        self._prepared: dict[str, tuple[requests.PreparedRequest, Mapping[str, Any]]] = {}

    def post_json(self, url: str, body: bytes, timeout: tuple[float, float]) -> requests.Response:
        """Send JSON; the body of the answer is left to be read. Raises requests.RequestException.

        The parts that requests derives from the URL, the environment and .netrc are made once. To
        make them for each request takes as long as the exchange itself.
        """
        if url not in self._prepared:
            headers = {"Content-Type": "application/json"}
            prepared = self.prepare_request(requests.Request("POST", url, headers))
            settings = self.merge_environment_settings(prepared.url, {}, True, None, None)
            self._prepared[url] = prepared, dict(settings)
        request, options = self._prepared[url]
        request = request.copy()
        request.prepare_body(body, None)
        return self.send(request, timeout=timeout, allow_redirects=False, **options)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return None: to know the next request, requests would read a body without bound."""
        return None


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        _use_deadlines(self.poolmanager)

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*arguments, **options)
        _use_deadlines(manager)
        return manager


def _use_deadlines(manager: PoolManager) -> None:
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}


class _Reader(io.RawIOBase):
    """Reads a socket until the deadline, and no more than so many bytes before the body."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket) -> None:
        self._raw = raw
        self._connection = connection
        self.header_bytes_left: float = LONGEST_HEADERS_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.header_bytes_left <= 0:
            raise http.client.HTTPException("headers that do not end")
        _limit(self._connection)
        count = self._raw.readinto(buffer)
        self.header_bytes_left -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        raw = self.fp.detach()
        self._reader = _Reader(raw, sock)
        self.fp = io.BufferedReader(self._reader)

    def begin(self) -> None:
        super().begin()
        self._reader.header_bytes_left = math.inf


class _Connection(HTTPConnection):
    response_class = _Response

    def send(self, data: Any) -> None:
        if self.sock is not None:
            _limit(self.sock)
        super().send(data)

    def _new_conn(self) -> socket.socket:
        """Try the host's addresses in turn; all attempts together end with the deadline."""
        host = self._dns_host.strip("[]")
        try:
            found = socket.getaddrinfo(host, self.port, allowed_gai_family(), socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except UnicodeError:
            # No name at all: urllib3 has words for it.
            return super()._new_conn()
        failure: OSError = OSError("no address")
        refused = None if self.proxy else _refused.get()
        for family, kind, protocol, _, address in found:
            if refused is not None and not is_public(str(address[0])):
                refused.append(str(address[0]))
                continue
            try:
                return self._connected(socket.socket(family, kind, protocol), address)
            except OSError as error:
                failure = error
        if isinstance(failure, TimeoutError):
            raise ConnectTimeoutError(self, "no connection in time") from failure
        raise NewConnectionError(self, str(failure)) from failure

    def _connected(self, connection: socket.socket, address: Any) -> socket.socket:
        try:
            for option in self.socket_options or ():
                connection.setsockopt(*option)
            connection.settimeout(self.timeout)
            _limit(connection)
            connection.connect(address)
            # Once more, for TLS.
            _limit(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class _TlsConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def _limit(connection: socket.socket) -> None:
    """Let a socket wait for no longer than is left. Raises TimeoutError if nothing is."""
    left = seconds_left()
    if left <= 0:
        raise TimeoutError("an exchange that does not end")
    limit = connection.gettimeout()
    if left < (math.inf if limit is None else limit):
        connection.settimeout(left)
