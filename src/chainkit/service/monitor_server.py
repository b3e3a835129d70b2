"""HTTP for machines that watch a service: ``/metrics``, ``/healthz`` and ``/readyz``.

The server runs in threads of its own and only reads. Requests are few, small and short. Any other
request gets an error or loses its connection, without an effect on the service's loop.
"""

from __future__ import annotations

import json
import logging
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from chainkit.errors import ConfigurationError
from chainkit.service.log_lines import LogEvent, log_event

MOST_CONNECTIONS: Final = 16
"""Connections at one time; one more connection is closed at once."""

REQUEST_SECONDS: Final = 5.0
"""The time in which a client must send its request and read the answer."""

_STOP_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a path."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers beside the headers of every answer."""

    @classmethod
    def of_json(cls, is_ok: bool, content: Any) -> Answer:
        """Answer 200 or 503, with a body for a person and for scripts."""
        body = json.dumps(content, indent=2).encode() + b"\n"
        return cls(200 if is_ok else 503, "application/json", body)


def parse_listen(text: str, option: str = "--listen") -> tuple[str, int]:
    """Return host and port of ``HOST:PORT`` or ``[IPv6]:PORT``; port 0 takes a free one.

    Raises ConfigurationError.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ConfigurationError(option, "HOST:PORT", text)
    return host, int(port)


class MonitorServer:
    """A server that runs from its construction until ``close``."""

    def __init__(
        self, address: tuple[str, int], answers: Mapping[str, Callable[[], Answer]]
    ) -> None:
        """Listen on host and port, and answer each path by its function.

        Raises ConfigurationError where the server cannot listen there.
        """
        try:
            self._server = _Server(address, answers)
        except OSError as error:
            place = f"{address[0]}:{address[1]}"
            got = error.strerror or error
            raise ConfigurationError("--listen", "an address to listen on", got, place) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_STOP_POLL_SECONDS,), daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """The ``HOST:PORT`` at which the server listens."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def close(self) -> None:
        """Stop the server; open connections end with the process."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    request_queue_size = MOST_CONNECTIONS
    daemon_threads = True
    # Otherwise close would wait for every slow client.
    block_on_close = False

    def __init__(
        self, address: tuple[str, int], answers: Mapping[str, Callable[[], Answer]]
    ) -> None:
        self.answers = answers
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer.server_bind looks up the host's name, which may take long and is never used.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "chainkit", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log faults of the service; a client that closed its connection is no fault."""
        error = sys.exception()
        if not isinstance(error, OSError):
            text = f"monitor: expected an answer, got {error!r}"
            log_event(LogEvent("monitor_failed", text, level=logging.ERROR))


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "chainkit"
    sys_version = ""
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        answer = self._find()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape every few seconds is no event."""

    def _find(self) -> Answer:
        found = self.server.answers.get(self.path.partition("?")[0])
        if found is None:
            paths = ", ".join(sorted(self.server.answers))
            return Answer(404, "text/plain", f"expected one of {paths}\n".encode())
        return found()
