"""A storage service that lies: it stands before the real one, and alters what it hands on."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from chainkit_client.mls.program import PROGRAM

SECONDS = 30.0


class LyingStorage:
    """Hands on requests; ``alter`` changes what a download gets."""

    def __init__(self) -> None:
        self.alter: Callable[[BaseHTTPRequestHandler, bytes], None] = whole
        self.requests: list[str] = []
        """Method of each request."""
        self.engines: list[int] = []
        """MLS engines at each request: of commands, which are calls in this process."""
        self._others = running_engines()
        """Those of other tests."""
        self.real_port = 0
        storage = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                whole(self, storage.hand_on("POST", self.path, body))

            def do_GET(self) -> None:
                storage.alter(self, storage.hand_on("GET", self.path, None))

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def hand_on(self, method: str, path: str, body: bytes | None) -> bytes:
        self.requests.append(method)
        self.engines.append(len(running_engines() - self._others))
        connection = http.client.HTTPConnection("127.0.0.1", self.real_port, timeout=SECONDS)
        connection.request(method, path, body)
        answer = connection.getresponse()
        assert answer.status == 200
        data = answer.read()
        connection.close()
        return data

    @contextmanager
    def running(self) -> Iterator[LyingStorage]:
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            thread.join()
            self.server.server_close()


def running_engines() -> set[str]:
    """Return the children of this process that compute MLS, by their process ids."""
    children = [each.read_text().split() for each in Path("/proc/self/task").glob("*/children")]
    engine = str(PROGRAM).encode()
    return {child for some in children for child in some if engine in _command(child)}


def _command(child: str) -> list[bytes]:
    try:
        return Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return []


def whole(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.send_response(200)
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def altered(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    whole(handler, data[:-1] + bytes([data[-1] ^ 1]))


def truncated(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    whole(handler, data[:-1])


def endless(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(data)
    except OSError:
        # The reader hung up.
        pass


def redirecting(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    """Send on to a place that has the right bytes: it must not be followed."""
    if handler.path.endswith("?again"):
        whole(handler, data)
        return
    handler.send_response(302)
    handler.send_header("location", f"{handler.path}?again")
    handler.send_header("content-length", "0")
    handler.end_headers()
