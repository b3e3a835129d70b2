"""A real HTTP and WebSocket server in front of an anvil that lies, breaks or stalls when told to.

Unless a fault is due, the bytes of anvil's answer pass unchanged. The faults themselves are in
``support.endpoints.faults``; this module decides when a fault is due, for which calls, and counts
how often it was really delivered.
"""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from random import Random
from typing import Any, Self
from urllib.parse import urlsplit

from support.endpoints.web_socket_relay import WebSocketRelay

Answer = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One call of a request, and the way to ask the honest chain for more."""

    method: str
    params: Any
    ask: Callable[..., Any]
    """Asks the chain by method and parameters: gives its result, or None with an error."""
    ask_other: Callable[..., Any]
    """The same of the other branch."""


@dataclass(frozen=True)
class Reply:
    """An answer over HTTP."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    stream: Iterable[bytes] | None = None
    """Sent after ``body``, in chunks where ``length`` is None."""
    length: int | None = None
    """The announced Content-Length, where it is not that of the body."""
    resets: bool = False
    """The connection is reset instead of an answer."""
    stalls: bool = False
    """Nothing is ever sent, and the connection stays open."""


@dataclass(frozen=True)
class Fault:
    """Something that endpoints do; what it returns unchanged was not delivered."""

    name: str
    of_call: Callable[[Call, Answer], Any] | None = None
    """Changes the answer to one call."""
    of_reply: Callable[[Any, Reply], Reply] | None = None
    """Changes the whole reply, given the parsed request."""
    methods: frozenset[str] | None = None
    """The calls to which the fault happens; None is all."""


@dataclass
class Armed:
    """A fault with the times at which it is due."""

    fault: Fault
    times: int | None = None
    probability: float = 1.0
    random: Random = field(default_factory=Random)
    where: Callable[[Call], bool] = lambda call: True
    delivered: int = 0

    def is_due(self, calls: Iterable[Call]) -> bool:
        if self.times is not None and self.delivered >= self.times:
            return False
        methods = self.fault.methods
        concerned = any(
            (methods is None or call.method in methods) and self.where(call) for call in calls
        )
        return concerned and (self.probability >= 1 or self.random.random() < self.probability)


class FaultProxy(ThreadingHTTPServer):
    """Use as a context manager. ``upstream`` may be set to another branch at any time."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, upstream: str, other: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.upstream = upstream
        self.other = other or upstream
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.web_socket_url = self.url.replace("http", "ws", 1)
        self.web_sockets = WebSocketRelay(lambda: self.upstream.replace("http", "ws", 1))
        self.delivered: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.bytes_sent = 0
        self._armed: list[Armed] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self.shutdown()
        self._thread.join()
        self.server_close()
        self.web_sockets.close()
        self._drop_connections()

    # ------------------------------------------------------------------ faults

    def arm(
        self,
        *faults: Fault,
        times: int | None = None,
        probability: float = 1.0,
        random: Random | None = None,
        where: Callable[[Call], bool] = lambda call: True,
    ) -> None:
        """Let faults happen: always, the next ``times`` that they can, or now and then."""
        with self._lock:
            for fault in faults:
                self._armed.append(Armed(fault, times, probability, random or Random(0), where))

    def lift(self) -> None:
        """Be honest from now on; what stalls ends."""
        with self._lock:
            self._armed.clear()
        self._released.set()
        self._released = threading.Event()

    def refuse_connections(self) -> None:
        """Be as a process that died: nothing listens any more."""
        self.delivered["connection refused"] += 1
        self.shutdown()
        self._thread.join()
        self.socket.close()
        self._drop_connections()

    def accept_connections(self) -> None:
        """Listen again at the same place."""
        self.socket = socket.socket(self.address_family, self.socket_type)
        self.server_bind()
        self.server_activate()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def answered(self, request: Any, calls: list[Call], honest: bytes) -> Reply:
        """Return the reply to a request, given anvil's own."""
        with self._lock:
            self.calls.update(call.method for call in calls)
            return self._changed_reply(request, calls, self._changed_answers(calls, honest))

    def _changed_answers(self, calls: list[Call], honest: bytes) -> Reply:
        armed = [item for item in self._armed if item.fault.of_call]
        if not armed:
            return Reply(honest)
        parsed = json.loads(honest)
        answers = parsed if isinstance(parsed, list) else [parsed]
        changed = [self._changed_answer(armed, *pair) for pair in zip(calls, answers, strict=True)]
        if changed == answers:
            return Reply(honest)
        return Reply(json.dumps(changed if isinstance(parsed, list) else changed[0]).encode())

    def _changed_answer(self, armed: list[Armed], call: Call, answer: Answer) -> Any:
        for item in armed:
            if item.fault.of_call and item.is_due([call]):
                changed = item.fault.of_call(call, json.loads(json.dumps(answer)))
                if changed != answer:
                    self._count(item)
                    return changed
        return answer

    def _changed_reply(self, request: Any, calls: list[Call], reply: Reply) -> Reply:
        for item in self._armed:
            if item.fault.of_reply and item.is_due(calls):
                changed = item.fault.of_reply(request, reply)
                if changed is not reply:
                    self._count(item)
                    return changed
        return reply

    def _count(self, item: Armed) -> None:
        item.delivered += 1
        self.delivered[item.fault.name] += 1

    # ------------------------------------------------------------------ connections

    def wait_released(self, connection: socket.socket) -> None:
        """Stall until the fault is lifted, or the client has gone."""
        released = self._released
        while not released.wait(0.02):
            try:
                if connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"":
                    return
            except BlockingIOError:
                continue
            except OSError:
                return

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is none of the proxy's errors."""

    def finish_request(self, request: Any, client_address: Any) -> None:
        if _is_web_socket(request):
            self.web_sockets.serve(request)
        else:
            super().finish_request(request, client_address)

    def _drop_connections(self) -> None:
        for connection in list(self._connections):
            with suppress(OSError):
                # A thread that waits to read wakes up from this, not from a close.
                connection.shutdown(socket.SHUT_RDWR)
        self._connections.clear()


class _Connection(BaseHTTPRequestHandler):
    server: FaultProxy
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._upstreams: dict[str, http.client.HTTPConnection] = {}

    def finish(self) -> None:
        for upstream in self._upstreams.values():
            upstream.close()
        super().finish()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        elements = request if isinstance(request, list) else [request]
        calls = [
            Call(item["method"], item.get("params", []), self._ask, self._ask_other)
            for item in elements
        ]
        self._send(self.server.answered(request, calls, self._post(self.server.upstream, body)))

    def _send(self, reply: Reply) -> None:
        if reply.stalls:
            self.server.wait_released(self.connection)
        if reply.resets or reply.stalls:
            self.close_connection = True
            _reset(self.connection)
            return
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        is_chunked = reply.stream is not None and reply.length is None
        if is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            length = len(reply.body) if reply.length is None else reply.length
            self.send_header("Content-Length", str(length))
        self.end_headers()
        for part in chain((reply.body,), reply.stream or ()):
            self._write(part, is_chunked)
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")
        elif reply.length is not None:
            self.close_connection = True
        self.wfile.flush()

    def _write(self, part: bytes, is_chunked: bool) -> None:
        if part:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part)
            self.wfile.flush()
            self.server.bytes_sent += len(part)

    def _ask(self, method: str, *params: Any) -> Any:
        return self._result(self.server.upstream, method, params)

    def _ask_other(self, method: str, *params: Any) -> Any:
        return self._result(self.server.other, method, params)

    def _result(self, url: str, method: str, params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return json.loads(self._post(url, json.dumps(body).encode())).get("result")

    def _post(self, url: str, body: bytes) -> bytes:
        connection = self._upstreams.get(url)
        if connection is None:
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
            self._upstreams[url] = connection
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        return connection.getresponse().read()

    def log_message(self, *_: object) -> None:
        pass


def _is_web_socket(connection: socket.socket) -> bool:
    return connection.recv(3, socket.MSG_PEEK) == b"GET"


def _reset(connection: socket.socket) -> None:
    """Close so that the other side gets RST, not an orderly end."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
