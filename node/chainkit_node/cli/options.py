"""Options of ``node run`` about who connects, and how."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from chainkit.errors import ConfigurationError
from chainkit.terminal.options import file_option, gathered, several
from chainkit_node.serving.certificate import CertificateFiles

DEFAULT_ADDRESS: Final = "127.0.0.1:5051"


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Where the node listens, and with which certificate."""

    grpc_address: str
    certificate_path: Path | None
    key_path: Path | None
    is_plain_text: bool

    def certificate_files(self) -> CertificateFiles | None:
        """Return the files of the certificate, or None where plain text is served.

        Raises ConfigurationError for half a pair, for plain text on an address that strangers
        reach and that nobody asked for, and for both at once.
        """
        if self.certificate_path is not None and self.key_path is not None:
            if self.is_plain_text:
                expected = "either a certificate or plain text"
                raise ConfigurationError("--plain-text", expected, "both")
            return CertificateFiles(self.certificate_path, self.key_path)
        if self.certificate_path is not None or self.key_path is not None:
            missing = "--tls-key" if self.key_path is None else "--tls-certificate"
            raise ConfigurationError(missing, "certificate and key together", "one of them")
        if not self.is_plain_text and not _is_loopback(self.grpc_address):
            expected = "--tls-certificate and --tls-key, or --plain-text behind a proxy with TLS"
            raise ConfigurationError("--grpc", expected, "neither", self.grpc_address)
        return None


listen_options = several(
    click.option(
        "--grpc",
        "grpc_address",
        metavar="HOST:PORT",
        default=DEFAULT_ADDRESS,
        show_default=True,
        help="Where readers and payers connect; port 0 takes a free one.",
    ),
    file_option(
        "--tls-certificate",
        "certificate_path",
        "CHAINKIT_TLS_CERTIFICATE",
        "Chain of certificates, PEM; read again when the file changes.",
    ),
    file_option(
        "--tls-key",
        "key_path",
        "CHAINKIT_TLS_KEY",
        "Private key of the certificate, PEM without a password.",
    ),
    click.option(
        "--plain-text",
        "is_plain_text",
        is_flag=True,
        help="Serve without TLS on an address that others reach, too.",
    ),
    gathered(ListenOptions, "listening"),
)
"""Decorator: where the node listens; the command takes a ListenOptions."""


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
