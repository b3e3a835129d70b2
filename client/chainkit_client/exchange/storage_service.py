"""Asks a storage service: one upload, one download, bounded in bytes and in time.

A redirect is an answer like any other that is not 200: it is not followed. No proxy, no cookie and
no address of the environment is used, and nothing is decompressed.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from chainkit.documents.fields import Fields, parse_json
from chainkit.errors import ConfigurationError
from chainkit_client.exchange.errors import NetworkError
from chainkit_client.exchange.origin import Origin, origin_of

_CHUNK: Final = 1 << 16
MOST_ANSWER: Final = 4096
_URL: Final = re.compile("[!-~]{1,2048}")
_SLOWEST: Final = 8192
"""Bytes a second of a transfer, beside the patience: the service's own bound."""


@dataclass(frozen=True, slots=True)
class StorageService:
    """The one storage service that a device goes to."""

    origin: Origin
    patience: float = 30.0
    """Seconds for each step, and what a transfer may take beside its bytes."""

    def upload(self, url: str, file: BinaryIO, length: int) -> str:
        """Send the rest of a file to an upload URL, and return where it can be downloaded.

        Raises NetworkError.
        """
        headers = {"content-length": str(length), "content-type": "application/octet-stream"}
        with self._connected(url, self.patience + length / _SLOWEST) as (connection, target):
            connection.request("POST", target, body=file, headers=headers)
            with _answer(connection) as answer:
                text = answer.read(MOST_ANSWER)
        return read_download_url(text)

    def download(self, url: str, file: BinaryIO, length: int) -> bytes:
        """Write a file of a length to an open one, and return its SHA-256.

        Raises NetworkError where the service does not answer, or has more or fewer bytes.
        """
        digest = hashlib.sha256()
        got = 0
        with self._connected(url, self.patience + length / _SLOWEST) as (connection, target):
            connection.request("GET", target, headers={"accept-encoding": "identity"})
            with _answer(connection) as answer:
                while got <= length and (chunk := answer.read1(_CHUNK)):
                    got += len(chunk)
                    digest.update(chunk)
                    file.write(chunk)
        if got != length:
            expected = f"a file of {length:,} bytes"
            raise NetworkError("storage service", expected, "more" if got > length else f"{got:,}")
        return digest.digest()

    @contextmanager
    def _connected(
        self, url: str, seconds: float
    ) -> Iterator[tuple[http.client.HTTPConnection, str]]:
        if origin_of(url, "URL") != self.origin:
            raise NetworkError("storage service", f"a URL of {self.origin}", "another")
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection = self._connection()
        deadline = time.monotonic() + seconds
        timer: threading.Timer | None = None
        try:
            connection.connect()
            # An answer without a length takes the socket away from its connection.
            timer = threading.Timer(seconds, _hang_up, [connection.sock])
            timer.start()
            yield connection, target
        except (OSError, http.client.HTTPException, ValueError) as error:
            is_late = time.monotonic() >= deadline
            got = f"nothing after {seconds:.0f} s" if is_late else error or type(error).__name__
            raise NetworkError("storage service", "an answer", got) from error
        finally:
            if timer is not None:
                timer.cancel()
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self.origin.host, self.origin.port
        if self.origin.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self.patience)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=self.patience, context=context)


def read_download_url(data: bytes) -> str:
    """Return the URL in an answer to an upload (H22). Raises NetworkError for another answer."""
    subject = "storage service"
    try:
        fields = Fields(parse_json(data, subject), subject)
        return fields.matching("downloadUrl", _URL, "a URL")[0]
    except ConfigurationError as error:
        raise NetworkError(subject, "the URL of the file", "another answer") from error


@contextmanager
def _answer(connection: http.client.HTTPConnection) -> Iterator[http.client.HTTPResponse]:
    # An answer without a length holds the socket alone.
    with connection.getresponse() as answer:
        if answer.status != http.client.OK:
            # The reason, the body and the place of a redirect are a stranger's text.
            raise NetworkError("storage service", "status 200", answer.status)
        yield answer


def _hang_up(held: socket.socket) -> None:
    """End a connection in whose answer another thread waits."""
    # The other thread may have been faster.
    with suppress(OSError):
        held.shutdown(socket.SHUT_RDWR)
