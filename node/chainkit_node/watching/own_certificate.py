"""Whether others take this node's certificate: its dates, and its name in the registry's URL.

The files are read, whoever serves with them. A handshake in memory, in which the certificate itself
is what the other end trusts, has OpenSSL verify it as the others' libraries do. Which authorities
the others trust is not known here. A certificate is checked again when its files or the URL change,
and once a minute: time passes.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from chainkit.errors import ConfigurationError
from chainkit.service.certificate import CertificateFiles
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.text.node_url import grpc_target
from chainkit_node.peers.directory import Listing

RENEW_SECONDS: Final = 14 * 24 * 60 * 60.0
"""Before the end of a certificate: a renewal that was to come long before has failed."""

LOOK_SECONDS: Final = 1.0
CHECK_SECONDS: Final = 60.0

_MOST_TURNS: Final = 10
"""Flights of one handshake; TLS 1.3 takes three."""


@dataclass(frozen=True, slots=True)
class CertificateState:
    """A certificate at one moment."""

    fault: str | None
    """Why others refuse the certificate; None where they take it."""
    ends_at: float
    """Seconds since 1970; 0 with a fault."""
    names: tuple[str, ...] = ()
    """The hosts that the certificate is for."""


class OwnCertificate:
    """``run`` on the event loop; all else is for any thread."""

    def __init__(
        self,
        files: CertificateFiles | None,
        listing: Callable[[], Listing],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the files, None for a node without TLS, and the registry's nodes.

        ``clock`` is in seconds since 1970.
        """
        self._files = files
        self._listing = listing
        self._clock = clock
        self._state: CertificateState | None = None
        self._words: str | None = None

    def wrong(self) -> str | None:
        """Return what is wrong with the certificate, or soon will be, in words; or None."""
        return self._words

    def seconds_left(self) -> float:
        """Return for how long others take the certificate, 0 where they refuse it."""
        state = self._state
        return 0.0 if state is None else max(state.ends_at - self._clock(), 0.0)

    async def run(self) -> None:
        """Look until it is cancelled."""
        if self._files is None:
            return
        seen: object = None
        checked_at = float("-inf")
        while True:
            found = _stamps(self._files), self._host()
            if found != seen or time.monotonic() - checked_at >= CHECK_SECONDS:
                seen, checked_at = found, time.monotonic()
                await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Check the certificate now, and log a change."""
        if self._files is None:
            return
        state = check_certificate(self._files, self._host())
        words = None if state.fault is None else f"others refuse it: {state.fault}"
        level, name = logging.ERROR, "certificate_refused_by_others"
        if words is None and state.ends_at - self._clock() < RENEW_SECONDS:
            day = datetime.fromtimestamp(state.ends_at, UTC)
            words = f"it ends on {day:%Y-%m-%d} at {day:%H:%M} UTC, and was not renewed"
            level, name = logging.WARNING, "certificate_ends_soon"
        # The metric reads the state first.
        before, self._state, self._words = self._words, state, words
        place = {"file": str(self._files.certificate)}
        if words == before:
            return
        if words is None:
            text = f"certificate {self._files.certificate}: others take it again"
            log_event(LogEvent("certificate_right", text, place))
        else:
            text = f"certificate {self._files.certificate}: {words}"
            log_event(LogEvent(name, text, place, level))

    def _host(self) -> str | None:
        """Return the host of this node's URL in the registry; None where there is no https one."""
        listing = self._listing()
        own = listing.nodes.get(listing.own_id or 0)
        try:
            scheme, target = grpc_target("URL", "" if own is None else own.http_address)
        except ConfigurationError:
            return None
        return target.rpartition(":")[0].strip("[]") if scheme == "https" else None


def check_certificate(files: CertificateFiles, host: str | None) -> CertificateState:
    """Return how a client takes a certificate for a host, now; None leaves the name out."""
    try:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # An empty password: without one, OpenSSL asks the terminal for it.
        server.load_cert_chain(files.certificate, files.key, password="")
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname = host is not None
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        client.load_verify_locations(files.certificate)
        shown = _shown(server, client, host)
    except ssl.SSLCertVerificationError as error:
        return CertificateState(error.verify_message.rstrip("."), 0.0)
    except ssl.SSLError as error:
        return CertificateState(f"its files cannot be used: {error.reason or error}", 0.0)
    except OSError as error:
        return CertificateState(f"its files cannot be read: {error.strerror or error}", 0.0)
    ends = ssl.cert_time_to_seconds(str(shown.get("notAfter")))
    names = tuple(str(each[1]) for each in shown.get("subjectAltName", ()))
    return CertificateState(None, float(ends), names)


def _shown(server: ssl.SSLContext, client: ssl.SSLContext, host: str | None) -> dict[str, Any]:
    """Shake hands in memory; return the certificate as the client saw it. Raises SSLError."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(to_client, to_server, server_hostname=host)
    own = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_MOST_TURNS):
        try:
            theirs.do_handshake()
            return dict(theirs.getpeercert() or {})
        except ssl.SSLWantReadError:
            # The other end's turn.
            pass
        with suppress(ssl.SSLWantReadError):
            own.do_handshake()
    raise ssl.SSLError("a handshake without an end")


def _stamps(files: CertificateFiles) -> tuple[tuple[int, int], ...] | None:
    """Return a stamp that differs for replaced files; None while a file is missing."""
    try:
        found = [path.stat() for path in (files.certificate, files.key)]
    except OSError:
        return None
    return tuple((each.st_ino, each.st_mtime_ns) for each in found)
