"""The addresses at which a service listens."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from chainkit.errors import ConfigurationError


def addresses_to_bind(address: str, shares_port: bool) -> Sequence[tuple[str, int]]:
    """Return the IP addresses and ports that ``HOST:PORT`` names, and that somebody can bind.

    Envoy would only log why an address cannot be bound, and go on without listening.

    Raises ConfigurationError where nobody can listen at any of the name's addresses.
    """
    host, _, port = address.rpartition(":")
    places, errors = [], []
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise not_bound(address, error) from error
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as trial:
            # As Envoy does: connections of a process that has just ended do not block the port.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares_port)
            try:
                trial.bind(place)
            except OSError as error:
                errors.append(error)
            else:
                places.append((str(place[0]), int(place[1])))
    if not places:
        raise not_bound(address, errors[0]) from errors[0]
    return places


def not_bound(address: str, error: Exception) -> ConfigurationError:
    """Return the error of an address at which nobody can listen."""
    got = getattr(error, "strerror", None) or error
    return ConfigurationError("--grpc", "an address to listen on", got, address)
