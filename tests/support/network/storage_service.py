"""A storage service of a test's own, and the bytes that strangers send to it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from localnet import commands
from localnet.process import end
from support.network.own_gateway import SECONDS

ONE = "127.0.0.1"
_CONTENTS = itertools.count()


class StorageService:
    """A service that may be killed; each start listens on another port."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        self.files = folder / "files"
        self._log = folder / "log"
        self.command = [
            *("backups", "serve", "--folder", str(self.files), "--http", "127.0.0.1:0"),
            *("--listen", "127.0.0.1:0", "--log-format", "json", *options),
        ]
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("wb") as log:
            self._process = commands.start_command(self.command, os.environ, log)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            for line in self._log.read_text().splitlines():
                if '"backups_listening"' in line and line.endswith("}"):
                    self.port = json.loads(line)["port"]
                    return
            time.sleep(0.05)
        raise AssertionError(f"exit {self._process.poll()}: {self._log.read_text()}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def watch(self, path: str) -> str:
        """Return what the monitor answers."""
        entries = map(json.loads, self._log.read_text().splitlines())
        [address] = [each["address"] for each in entries if each["event"] == "listening"]
        with urllib.request.urlopen(f"http://{address}{path}", timeout=SECONDS) as answer:
            text: str = answer.read().decode()
            return text

    def metric(self, name: str) -> float:
        """Return the value of a sample, by its name and labels without their prefix."""
        lines = self.watch("/metrics").splitlines()
        [line] = [line for line in lines if line.startswith(f"chainkit_backups_{name} ")]
        return float(line.rpartition(" ")[2])

    def events(self) -> list[str]:
        """Return the names of all events of the log, which has nothing else."""
        return [json.loads(line)["event"] for line in self._log.read_text().splitlines()]

    def has_no_rest(self) -> bool:
        """Wait until no upload is under way; tell whether nothing is left of those that ended."""
        deadline = time.monotonic() + SECONDS
        while (found := os.listdir(self.files / "incoming")) and time.monotonic() < deadline:
            time.sleep(0.02)
        return not found

    def connect(self, source: str = ONE) -> socket.socket:
        """Connect from an address of this machine."""
        return socket.create_connection((ONE, self.port), SECONDS, (source, 0))

    def send(self, data: bytes | Iterable[bytes], source: str = ONE) -> Answer:
        """Send the bytes of a request as they are, and return what is answered."""
        with self.connect(source) as connection:
            return exchange(connection, data)

    def upload(
        self, data: bytes, path: str = "/upload", source: str = ONE, headers: str = ""
    ) -> Answer:
        """Upload as today's client does: chunked, and without a content type."""
        return self.send(upload_of(data, path, headers), source)

    def download(self, file_id: str, headers: str = "", source: str = ONE) -> Answer:
        request = f"GET /files/{file_id} HTTP/1.1\r\nhost: h\r\naccept: */*\r\n{headers}\r\n"
        return self.send(request.encode(), source)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        return end(self._process) if self._process is not None else 0


class Answer:
    """An HTTP answer; status 0 where the connection ended without one."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split()[1]) if first else 0
        pairs = (line.partition(": ") for line in lines)
        self.headers = {name.lower(): value for name, _, value in pairs}

    @property
    def text(self) -> str:
        return self.body.decode()


def content(length: int = 1000) -> bytes:
    """Return bytes that no other call returns."""
    return next(_CONTENTS).to_bytes(8, "big") * (length // 8)


def upload_of(data: bytes, path: str = "/upload", headers: str = "") -> bytes:
    """Return the request of an upload in chunks."""
    head = f"POST {path} HTTP/1.1\r\nhost: h\r\naccept: */*\r\ntransfer-encoding: chunked\r\n"
    chunks = [data[begin : begin + 65536] for begin in range(0, len(data), 65536)]
    body = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks)
    return f"{head}{headers}\r\n".encode() + body + b"0\r\n\r\n"


def form_of(*files: bytes, end_mark: bytes = b"--") -> tuple[str, bytes]:
    """Return the headers and the body of a form with files."""
    parts = [
        b'--B\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n' + each + b"\r\n"
        for each in files
    ]
    body = b"".join(parts) + b"--B" + end_mark + b"\r\n"
    headers = f"content-type: multipart/form-data; boundary=B\r\ncontent-length: {len(body)}\r\n"
    return headers, body


def exchange(connection: socket.socket, data: bytes | Iterable[bytes]) -> Answer:
    """Send until all is sent or the other side hangs up; return what was answered."""
    try:
        for each in [data] if isinstance(data, bytes) else data:
            connection.sendall(each)
    except OSError:
        # An answer may have come before the connection ended.
        pass
    return Answer(read_all(connection))


def read_all(connection: socket.socket) -> bytes:
    """Read until the other side hangs up."""
    found = bytearray()
    try:
        while data := connection.recv(1 << 20):
            found += data
    except OSError:
        pass
    return bytes(found)
