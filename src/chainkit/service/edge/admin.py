"""Envoy's own answers about itself, at a Unix socket that belongs to its process alone."""

from __future__ import annotations

import http.client
import socket
from collections import Counter
from pathlib import Path
from typing import Final
from urllib.parse import quote

from chainkit.service.edge.configuration import LISTENER

_SECONDS: Final = 5.0
_DIGITS: Final = len(str(2**64))


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(str(self._path))


class EdgeAdmin:
    """Asks Envoy, on any thread but Envoy's own. Every method raises OSError."""

    def __init__(self, path: Path) -> None:
        """Take the socket's path."""
        self._path = path

    def port(self) -> int | None:
        """Return the port of the callers; None while Envoy does not listen."""
        if self.counters("listener_manager.workers_started").get("workers_started") != 1:
            return None
        return read_port(self._ask("GET", "/listeners"))

    def counters(self, pattern: str) -> dict[str, int]:
        """Return counters and gauges whose names match, summed by the last part of their names."""
        return read_counters(self._ask("GET", f"/stats?filter={quote(pattern)}"))

    def drain(self) -> None:
        """Take no more connections."""
        self._ask("POST", "/drain_listeners")

    def _ask(self, method: str, path: str) -> bytes:
        connection = _Connection(self._path)
        try:
            connection.request(method, path)
            return connection.getresponse().read()
        except http.client.HTTPException as error:
            raise OSError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()


def read_port(answer: bytes) -> int | None:
    """Return the port of the callers in Envoy's list of listeners; None where it is not there."""
    for line in _lines(answer):
        name, _, address = line.partition("::")
        port = address.rpartition(":")[2]
        if name == LISTENER and _is_number(port):
            return int(port)
    return None


def read_counters(answer: bytes) -> dict[str, int]:
    """Return Envoy's numbers, summed by the last part of their names."""
    counts: Counter[str] = Counter()
    for name, _, value in (line.rpartition(": ") for line in _lines(answer)):
        if _is_number(value):
            counts[name.rpartition(".")[2]] += int(value)
    return counts


def _lines(answer: bytes) -> list[str]:
    return answer.decode(errors="replace").split("\n")


def _is_number(text: str) -> bool:
    # A number of 64 bits: Python takes long over a longer one.
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS
