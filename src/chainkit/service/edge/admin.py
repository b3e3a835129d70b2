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
        for line in self._ask("GET", "/listeners").decode().splitlines():
            name, _, address = line.partition("::")
            if name == LISTENER:
                return int(address.rpartition(":")[2])
        return None

    def counters(self, pattern: str) -> dict[str, int]:
        """Return counters and gauges whose names match, summed by the last part of their names."""
        text = self._ask("GET", f"/stats?filter={quote(pattern)}").decode()
        counts: Counter[str] = Counter()
        for name, _, value in (line.rpartition(": ") for line in text.splitlines()):
            if value.isdigit():
                counts[name.rpartition(".")[2]] += int(value)
        return counts

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
