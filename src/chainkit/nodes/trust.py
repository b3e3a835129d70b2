"""The certificate authorities that this process trusts for nodes and gateways.

As gRPC's own roots, the authorities are the whole process's: every connection to a node checks
certificates against the same authorities. They are set once, where options are read.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from chainkit.errors import ConfigurationError
from chainkit.terminal.options import Option
from chainkit.text.node_url import grpc_target

_MOST_ADDRESSES: Final = 4
"""Addresses of one name that are asked for the reason of a failure."""
_SECONDS: Final = 1.0
"""How long each of these may take."""


@dataclass(slots=True)
class _Trust:
    peer_ca: bytes | None = None
    """PEM certificates beside the public authorities'."""


_TRUST: Final = _Trust()


def trusted_roots() -> bytes | None:
    """Return the PEM certificates that gRPC is to trust, None for its own public authorities."""
    if _TRUST.peer_ca is None:
        return None
    return Path(DEFAULT_CA_BUNDLE_PATH).read_bytes() + b"\n" + _TRUST.peer_ca


def certificate_fault(url: str) -> str | None:
    """Return why no address of an https URL has a certificate that is taken.

    Return None where one has, where none answers, and for http. gRPC reports the last address
    alone: where a name has another one that nobody listens at, the refused certificate of the
    first is hidden. The call blocks for some seconds at most. Raises ConfigurationError for a URL
    of another form.
    """
    scheme, target = grpc_target("URL", url)
    if scheme != "https":
        return None
    host, _, port = target.rpartition(":")
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError:
        return None
    faults = []
    for family, *_, place in found[:_MOST_ADDRESSES]:
        try:
            _shake_hands(family, place, host)
        except ssl.SSLCertVerificationError as error:
            faults.append(f"certificate at {place[0]}: {error.verify_message.rstrip('.')}")
        except ssl.SSLError as error:
            faults.append(f"TLS at {place[0]}: {(error.reason or 'refused').lower()}")
        except OSError:
            continue
        else:
            return None
    return faults[0] if faults else None


def _shake_hands(family: int, place: tuple[Any, ...], host: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    roots = trusted_roots()
    if roots is None:
        context.load_verify_locations(cafile=DEFAULT_CA_BUNDLE_PATH)
    else:
        context.load_verify_locations(cadata=roots.decode("ascii", "ignore"))
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(place)
        context.wrap_socket(connection, server_hostname=host).close()


def _set_peer_ca(
    _context: click.Context, _parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Trust a file's certificates from now on. Raises ConfigurationError if it has none."""
    _TRUST.peer_ca = None if path is None else _read(path)
    return path


def _read(path: Path) -> bytes:
    expected = "certificates of authorities in PEM"
    try:
        content = path.read_bytes()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=content.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError("--peer-ca", expected, "another content", str(path)) from error
    except OSError as error:
        got = error.strerror or error
        raise ConfigurationError("--peer-ca", expected, got, str(path)) from error
    return content


peer_ca_option: Final[Option] = click.option(
    "--peer-ca",
    metavar="FILE",
    type=click.Path(path_type=Path),
    envvar="CHAINKIT_PEER_CA",
    show_envvar=True,
    expose_value=False,
    callback=_set_peer_ca,
    help="Certificates of authorities, PEM, that nodes and gateways may have their certificates "
    "from, beside the public ones.",
)
"""Decorator of each command that connects to nodes; it adds no argument to the command."""
