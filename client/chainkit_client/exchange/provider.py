"""The device that is asked: nothing is read, written or sent before its person approves (XIP-31).

A request that came is one row. ``approve`` asks the chain again who asks, writes the file, uploads
it, and stores the response before it is sent. The file has no name on the disk, and its key is the
other device's: a process that is killed leaves neither.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyrage
from sqlalchemy import Connection

from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.exchange.control import (
    MOST_FILE_BYTES,
    HistoryRequest,
    HistoryResponse,
    parse_control,
)
from chainkit_client.exchange.errors import (
    EncryptionError,
    InvalidRequest,
    NetworkError,
    RequestNotFound,
    WrongPin,
)
from chainkit_client.exchange.origin import is_of
from chainkit_client.exchange.own_devices import OwnDevices
from chainkit_client.exchange.storage_service import StorageService
from chainkit_client.history.saving import Saved, write
from chainkit_client.storage import exchange_rows as rows
from chainkit_client.storage.exchange_rows import Ask
from chainkit_client.storage.store import Store
from chainkit_client.storage.sync_groups import ControlMessage

MOST_TRIES: Final = 3
"""PINs that may be typed; then the request is deleted."""
MOST_ASKS: Final = 16
"""Requests that wait for a decision: what comes beyond is ignored."""
KEPT_SECONDS: Final = 72 * 3600
"""How long a storage service keeps a file."""

_LONGEST_SECONDS: Final = 86_400
_CHUNK: Final = 1 << 20


class Provider:
    """Answers the person's other devices."""

    def __init__(
        self,
        store: Store,
        devices: OwnDevices,
        storage: StorageService,
        folder: Path,
        clock: Callable[[], int],
    ) -> None:
        """Take the database, the devices and the storage service that the person trusts.

        ``folder`` takes a file without a name during an upload; ``clock`` is in nanoseconds since
        1970.
        """
        self._store = store
        self._devices = devices
        self._storage = storage
        self._folder = folder
        self._clock = clock

    def asks(self) -> list[Ask]:
        """Return the requests that wait for a decision, the oldest first."""
        with self._store.reading() as connection:
            return rows.read_asks(connection, self._store.seal)

    def take(
        self, connection: Connection, message: ControlMessage, request: HistoryRequest
    ) -> bool:
        """Store a request to this device; ignore one to another one, and an expired one."""
        now_ns = self._clock()
        latest = now_ns + _LONGEST_SECONDS * NANOSECONDS_PER_SECOND
        is_for_it = request.installation == self._devices.itself
        if not is_for_it or request.expires_ns <= now_ns:
            return False
        is_known = rows.read_ask(connection, self._store.seal, request.id) is not None
        if is_known or rows.count_asks(connection) >= MOST_ASKS:
            return False
        expires_ns = min(request.expires_ns, latest)
        given = request.id, message.group_id, message.sender, now_ns, expires_ns
        ask = Ask(*given, 0, request.encoded(), None, False)
        rows.insert_ask(connection, self._store.seal, ask)
        return True

    def forget_answered(
        self, connection: Connection, message: ControlMessage, response: HistoryResponse
    ) -> None:
        """Delete a request that an earlier client of this backup has answered."""
        if message.sender == self._devices.itself:
            rows.delete_ask(connection, response.id)

    def deny(self, request_id: bytes) -> None:
        """Delete a request, and tell nobody (H19). Raises RequestNotFound."""
        self._delete(self._found(request_id))

    async def approve(self, request_id: bytes, pin: str, since_ns: int = 0) -> Saved:
        """Send the messages since a time, in nanoseconds since 1970, to the device that asks.

        Raises RequestNotFound, WrongPin, InvalidRequest, EncryptionError, NetworkError, and the
        network's errors: a response that was stored goes on with ``resume``.
        """
        ask = self._found(request_id)
        if ask.response is not None:
            raise InvalidRequest(f"request {request_id.hex()}", "a new one", "an approved one")
        request = _request(ask)
        self._check_pin(ask, request, pin)
        await self._check_sender(ask)
        if not is_of(request.upload_url, self._storage.origin):
            self._delete(ask)
            expected = f"an upload to {self._storage.origin}"
            raise InvalidRequest(f"request {request_id.hex()}", expected, "to another service")
        self._devices.rest()
        with tempfile.TemporaryFile(dir=self._folder) as file:
            saved = await asyncio.to_thread(self._written, file, request, since_ns)
            response = await asyncio.to_thread(self._uploaded, file, request)
        with self._store.writing() as connection:
            rows.answer_ask(connection, self._store.seal, request_id, response.encoded())
        self._send_waiting()
        await self._devices.settle()
        self._finish()
        return saved

    def resume(self) -> bool:
        """Queue responses that were not sent, and delete requests that are done or expired.

        Return whether a response waits to be published.
        """
        self._send_waiting()
        self._finish()
        return any(each.response is not None for each in self.asks())

    def _found(self, request_id: bytes) -> Ask:
        with self._store.reading() as connection:
            found = rows.read_ask(connection, self._store.seal, request_id)
        if found is None or (found.expires_ns <= self._clock() and found.response is None):
            expected = "one that another device of yours sent"
            raise RequestNotFound(f"request {request_id.hex()}", expected, "none that waits")
        return found

    def _check_pin(self, ask: Ask, request: HistoryRequest, pin: str) -> None:
        if hmac.compare_digest(pin.encode(), request.pin.encode()):
            return
        with self._store.writing() as connection:
            rows.count_try(connection, ask.id)
        left = MOST_TRIES - ask.tries - 1
        if left <= 0:
            self._delete(ask)
        got = f"another one; {left} more tries" if left > 0 else "another one: the request is gone"
        raise WrongPin("PIN", "the one that the other device shows", got)

    async def _check_sender(self, ask: Ask) -> None:
        """Check who asks, and who would read the response, as the inbox is now (H10, H11)."""
        installations = await self._devices.installations()
        readers = {each.public_key for each in self._devices.members(ask.group_id)}
        if ask.installation not in installations or not readers <= installations:
            self._delete(ask)
            expected = "devices that are in your inbox now"
            raise InvalidRequest(f"request {ask.id.hex()}", expected, "one that is not: ask again")

    def _written(self, file: BinaryIO, request: HistoryRequest, since_ns: int) -> Saved:
        try:
            saved = write(self._store, file, request.recipient, since_ns)
            file.flush()
        except (OSError, pyrage.EncryptError) as error:
            raise EncryptionError("history file", "one that can be written", error) from error
        if saved.length > MOST_FILE_BYTES:
            expected = f"at most {MOST_FILE_BYTES:,} bytes: choose fewer days"
            raise EncryptionError("history file", expected, f"{saved.length:,}")
        return saved

    def _uploaded(self, file: Any, request: HistoryRequest) -> HistoryResponse:
        length = file.tell()
        file.seek(0)
        digest = hashlib.sha256()
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        file.seek(0)
        url = self._storage.upload(request.upload_url, file, length)
        if not is_of(url, self._storage.origin):
            expected = f"a URL of {self._storage.origin}"
            raise NetworkError("storage service", expected, "one of another service")
        expires_ns = self._clock() + KEPT_SECONDS * NANOSECONDS_PER_SECOND
        return HistoryResponse(
            request.id, url, digest.digest(), length, request.recipient, expires_ns
        )

    def _send_waiting(self) -> None:
        for ask in self.asks():
            if ask.response is not None and not ask.is_sent:
                # Sent twice where the program ends between these two: the other device takes one.
                self._devices.send(ask.group_id, ask.response)
                with self._store.writing() as connection:
                    rows.mark_ask_sent(connection, ask.id)

    def _finish(self) -> None:
        """Delete requests whose response is on the network, and those that expired (H16)."""
        now_ns = self._clock()
        for ask in self.asks():
            is_done = ask.is_sent and not self._devices.is_busy(ask.group_id)
            is_over = ask.response is None and ask.expires_ns <= now_ns
            if is_done or is_over:
                self._delete(ask)

    def _delete(self, ask: Ask) -> None:
        with self._store.writing() as connection:
            rows.delete_ask(connection, ask.id)
            self._devices.forget(connection, ask.group_id)
        self._store.forget_deleted()


def _request(ask: Ask) -> HistoryRequest:
    parsed = parse_control(ask.request)
    assert isinstance(parsed, HistoryRequest)
    return parsed
