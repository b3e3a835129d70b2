"""A server's certificate, from files that may be replaced while it runs (XIP-49 §3.3.3: TLS).

A pair that cannot be used is logged once, and the pair before it stays: a half-written renewal ends
no service. Open connections keep their pair.
"""

from __future__ import annotations

import logging
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path

from chainkit.errors import ConfigurationError
from chainkit.service.log_lines import LogEvent, log_event

_Stamp = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A chain of certificates, the server's own first, and its key without a password; both PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """The content of both files."""

    certificate: bytes
    key: bytes = field(repr=False)


class ServerCertificate:
    """A usable pair, and a look for another pair; from any thread."""

    def __init__(self, files: CertificateFiles) -> None:
        """Read the files. Raises ConfigurationError for an unusable pair."""
        self._files = files
        self._lock = threading.Lock()
        # Before the files are read: a change in between is found at the next look.
        self._stamp = _stamp(files)
        self.pair = _read(files)

    def look(self) -> bool:
        """Take another pair where there is one; return whether there was. Raises nothing."""
        with self._lock:
            stamp = _stamp(self._files)
            if stamp == self._stamp:
                return False
            self._stamp = stamp
            try:
                pair = _read(self._files)
            except ConfigurationError as error:
                text = f"TLS: the certificate before it stays: {error}"
                log_event(LogEvent("certificate_refused", text, level=logging.ERROR))
                return False
            if pair == self.pair:
                return False
            self.pair = pair
        place = {"file": str(self._files.certificate)}
        text = f"TLS: new connections get the certificate in {self._files.certificate}"
        log_event(LogEvent("certificate_replaced", text, place))
        return True


def _stamp(files: CertificateFiles) -> _Stamp | None:
    """Return a stamp that differs for a replaced pair; None while a file is missing."""
    try:
        found = [path.stat() for path in (files.certificate, files.key)]
    except OSError:
        return None
    return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)


def _read(files: CertificateFiles) -> CertificatePair:
    expected = "a PEM certificate and its key without a password"
    try:
        pair = CertificatePair(files.certificate.read_bytes(), files.key.read_bytes())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # An empty password: without one, OpenSSL asks the terminal for it.
        context.load_cert_chain(files.certificate, files.key, password="")
        again = CertificatePair(files.certificate.read_bytes(), files.key.read_bytes())
    except OSError as error:
        got = error.strerror or error
        raise ConfigurationError(
            "--tls-certificate", expected, got, str(files.certificate)
        ) from error
    if again != pair:
        got = "files that change at this moment"
        raise ConfigurationError("--tls-certificate", expected, got, str(files.certificate))
    return pair
