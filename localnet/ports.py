"""Ports for servers that stop and start again, or whose port others must know beforehand."""

from __future__ import annotations

import random
import socket
from typing import Final

_PORTS: Final = range(12_000, 32_000)
"""Below those that the kernel gives to connections, which would take the port of a stopped server
(32768 and above where ``net.ipv4.ip_local_port_range`` was not changed)."""

_TRIES: Final = 100


def free_port() -> int:
    """Return a port at random on which nobody listens at 127.0.0.1.

    Raises OSError where none of a hundred can be taken.
    """
    for _ in range(_TRIES):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", random.choice(_PORTS)))
            except OSError:
                continue
            port: int = listener.getsockname()[1]
            return port
    raise OSError(f"no port of {_TRIES} can be taken at 127.0.0.1")
