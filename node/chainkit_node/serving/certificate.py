"""The server's certificate, from files that may be replaced while it runs (XIP-49 §3.3.3: TLS).

Each new connection checks whether the files changed. A pair that cannot be used is logged once, and
the pair before it stays: a half-written renewal ends no service. Open connections keep their pair.
"""

from __future__ import annotations

import logging
import ssl
import threading
from dataclasses import dataclass

import grpc

from chainkit.errors import ConfigurationError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit_node.settings import CertificateFiles

_Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    certificate: bytes
    key: bytes

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(self.key, self.certificate)])


def server_credentials(files: CertificateFiles) -> grpc.ServerCredentials:
    """Return credentials that follow the files. Raises ConfigurationError for an unusable pair."""
    replaced = _Replaced(files)
    first = replaced.first.configuration()
    # The stubs do not know that None keeps the present pair.
    return grpc.dynamic_ssl_server_credentials(first, replaced.look)  # type: ignore[arg-type]


class _Replaced:
    """Looks for another pair; gRPC's threads call it, once for each connection."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._lock = threading.Lock()
        # Before the files are read: a change in between is found at the next look.
        self._stamp = _stamp(files)
        self.first = _read(files)
        self._pair = self.first

    def look(self) -> grpc.ServerCertificateConfiguration | None:
        """Return another pair to go on with, or None to keep the present one. Raises nothing."""
        with self._lock:
            stamp = _stamp(self._files)
            if stamp == self._stamp:
                return None
            self._stamp = stamp
            try:
                pair = _read(self._files)
            except ConfigurationError as error:
                text = f"TLS: the certificate before it stays: {error}"
                log_event(LogEvent("certificate_refused", text, level=logging.ERROR))
                return None
            if pair == self._pair:
                return None
            self._pair = pair
        place = {"file": str(self._files.certificate)}
        text = f"TLS: new connections get the certificate in {self._files.certificate}"
        log_event(LogEvent("certificate_replaced", text, place))
        return pair.configuration()


def _stamp(files: CertificateFiles) -> _Stamp | None:
    """Return a stamp that differs for a replaced pair; None while a file is missing."""
    try:
        found = [path.stat() for path in (files.certificate, files.key)]
    except OSError:
        return None
    return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)


def _read(files: CertificateFiles) -> _Pair:
    expected = "a PEM certificate and its key without a password"
    try:
        pair = _Pair(files.certificate.read_bytes(), files.key.read_bytes())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # An empty password: without one, OpenSSL asks the terminal for it.
        context.load_cert_chain(files.certificate, files.key, password="")
        again = _Pair(files.certificate.read_bytes(), files.key.read_bytes())
    except OSError as error:
        got = error.strerror or error
        raise ConfigurationError(
            "--tls-certificate", expected, got, str(files.certificate)
        ) from error
    if again != pair:
        got = "files that change at this moment"
        raise ConfigurationError("--tls-certificate", expected, got, str(files.certificate))
    return pair
