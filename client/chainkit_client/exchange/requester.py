"""The device that asks: stores requests, sends them, and applies a response (XIP-31).

Each step is stored before it is done. A request that was interrupted goes on with the next
``resume``, and one that expired loses its key.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from sqlalchemy import Connection

from chainkit.documents.fields import parse_json
from chainkit.errors import MalformedData
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.exchange.control import (
    REQUEST_ID_LENGTH,
    HistoryRequest,
    HistoryResponse,
    parse_control,
)
from chainkit_client.exchange.errors import (
    DecryptionFailed,
    NetworkError,
    NoOtherDevice,
    ResponseNotFound,
    ValidationFailed,
)
from chainkit_client.exchange.origin import is_of
from chainkit_client.exchange.own_devices import OwnDevices
from chainkit_client.exchange.storage_service import StorageService
from chainkit_client.history.loading import Loaded, load
from chainkit_client.history.packing import NotOpened, new_key, recipient_of
from chainkit_client.messenger import GROUP_ID_BYTES
from chainkit_client.storage import exchange_rows as rows
from chainkit_client.storage.exchange_rows import OwnRequest
from chainkit_client.storage.exchange_schema import RequestStatus
from chainkit_client.storage.store import Store
from chainkit_client.storage.sync_groups import ControlMessage, hide_group

MOST_ASKED: Final = 10
"""Other devices that are asked at once: as many uploads a gateway grants at once."""
REQUEST_SECONDS: Final = 86_400 - 600
"""How long a request may wait: its upload URL holds for a day."""

_ABANDONED_NS: Final = 600 * NANOSECONDS_PER_SECOND
_PINS: Final = 10_000

GrantUpload = Callable[[], Awaitable[str]]
"""Returns an upload URL that takes one file."""


@dataclass(frozen=True, slots=True)
class Secret:
    """The part of a request that is sealed: it is deleted with the key."""

    key: str = field(repr=False)
    """An age identity."""
    request: HistoryRequest

    def encoded(self) -> bytes:
        """Return the bytes that are sealed."""
        content = {"key": self.key, "request": self.request.encoded().decode()}
        return json.dumps(content).encode()

    @classmethod
    def of(cls, request: OwnRequest) -> Secret:
        """Return the secret of a pending request."""
        assert request.secret is not None
        content = parse_json(request.secret, "own request")
        parsed = parse_control(content["request"].encode())
        assert isinstance(parsed, HistoryRequest)
        return cls(content["key"], parsed)


class Requester:
    """Asks the person's other devices for their messages."""

    def __init__(
        self,
        store: Store,
        devices: OwnDevices,
        storage: StorageService,
        grant: GrantUpload,
        folder: Path,
        clock: Callable[[], int],
    ) -> None:
        """Take the database, the devices, the storage service and a source of upload URLs.

        ``folder`` takes a file without a name during an import; ``clock`` is in nanoseconds since
        1970.
        """
        self._store = store
        self._devices = devices
        self._storage = storage
        self._grant = grant
        self._folder = folder
        self._clock = clock

    async def request(self) -> list[OwnRequest]:
        """Ask all other devices (H1 to H3); return the requests.

        Raises NoOtherDevice, NetworkError and the network's errors: what was stored goes on with
        ``resume``.
        """
        itself = self._devices.itself
        others = sorted(await self._devices.installations() - {itself})[:MOST_ASKED]
        if not others:
            raise NoOtherDevice("inbox", "another device in it", "only this one")
        urls = [await self._upload_url() for _ in others]
        group_id = secrets.token_bytes(GROUP_ID_BYTES)
        with self._store.writing() as connection:
            pin = self._free_pin(connection)
            hide_group(connection, group_id)
            for installation, url in zip(others, urls, strict=True):
                made = self._made(group_id, installation, url, pin)
                rows.insert_request(connection, self._store.seal, made)
        await self._devices.make_group(group_id)
        await self.resume()
        await self._devices.settle()
        return [each for each in self.requests() if each.group_id == group_id]

    def requests(self) -> list[OwnRequest]:
        """Return all requests, the oldest first; one whose time is over is expired (H21)."""
        with self._store.reading() as connection:
            return rows.read_requests(connection, self._store.seal)

    def pin(self, request: OwnRequest) -> str:
        """Return the PIN of a pending request, which the person types at the other device."""
        return Secret.of(request).request.pin

    async def resume(self) -> bool:
        """Queue what was stored and not sent, and end what has expired.

        Return whether something waits to be published.
        """
        now_ns = self._clock()
        is_queued = False
        for each in self.requests():
            if each.status is not RequestStatus.PENDING:
                continue
            if each.expires_ns <= now_ns:
                self._end(each.id, RequestStatus.EXPIRED)
            elif not each.is_sent:
                is_queued |= await self._send(each, now_ns)
        return is_queued

    async def apply(self, request_id: bytes) -> Loaded:
        """Fetch the file of a response, import it, and delete its key (H4 to H9).

        Raises ResponseNotFound, DecryptionFailed, ValidationFailed; NetworkError where another
        attempt may do.
        """
        with self._store.reading() as connection:
            found = rows.read_request(connection, self._store.seal, request_id)
        if found is None or found.status is not RequestStatus.PENDING or found.response is None:
            got = "none" if found is None else f"{found.status.name.lower()}, without a response"
            raise ResponseNotFound(
                f"request {request_id.hex()}", "a pending one with a response", got
            )
        response = parse_control(found.response)
        assert isinstance(response, HistoryResponse)
        if found.installation not in await self._devices.installations():
            self._end(request_id, RequestStatus.FAILED)
            raise ValidationFailed("response", "a device that is in the inbox now", "a revoked one")
        self._devices.rest()
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                return await asyncio.to_thread(self._import, found, response, file)
        except (DecryptionFailed, ValidationFailed):
            self._end(request_id, RequestStatus.FAILED)
            raise

    def take(
        self, connection: Connection, message: ControlMessage, response: HistoryResponse
    ) -> bool:
        """Store the response to a pending request, and ignore any other one (H4, H5)."""
        found = rows.read_request(connection, self._store.seal, response.id)
        if found is None or found.status is not RequestStatus.PENDING or found.response is not None:
            return False
        is_asked = (found.installation, found.group_id) == (message.sender, message.group_id)
        is_in_time = found.expires_ns > self._clock()
        is_for_key = response.recipient == Secret.of(found).request.recipient
        is_trusted = is_of(response.backup_url, self._storage.origin)
        if not (is_asked and is_in_time and is_for_key and is_trusted):
            return False
        rows.keep_response(connection, self._store.seal, response.id, response.encoded())
        return True

    def _import(self, request: OwnRequest, response: HistoryResponse, file: BinaryIO) -> Loaded:
        url, length = response.backup_url, response.length
        if self._storage.download(url, file, length) != response.file_hash:
            raise ValidationFailed("history file", "the one of the response", "another hash")
        file.seek(0)

        def finish(connection: Connection) -> None:
            rows.end_request(connection, request.id, RequestStatus.APPLIED)

        key, inbox_id = Secret.of(request).key, self._devices.inbox_id
        makers: Collection[bytes] = [request.installation]
        try:
            return load(self._store, file, key, inbox_id, makers, finish=finish)
        except NotOpened as error:
            raise DecryptionFailed(error.subject, error.expected, error.got) from error
        except MalformedData as error:
            raise ValidationFailed(error.subject, error.expected, error.got, error.place) from error
        finally:
            self._store.forget_deleted()

    async def _upload_url(self) -> str:
        url = await self._grant()
        if not is_of(url, self._storage.origin):
            expected = f"an upload URL of {self._storage.origin}"
            raise NetworkError("gateway", expected, "one of another service")
        return url

    def _made(self, group_id: bytes, installation: bytes, url: str, pin: str) -> OwnRequest:
        key, now_ns = new_key(), self._clock()
        expires_ns = now_ns + REQUEST_SECONDS * NANOSECONDS_PER_SECOND
        request_id = secrets.token_bytes(REQUEST_ID_LENGTH)
        recipient = recipient_of(key)
        sent = HistoryRequest(request_id, installation, pin, url, recipient, expires_ns)
        return OwnRequest(
            request_id,
            group_id,
            installation,
            now_ns,
            expires_ns,
            RequestStatus.PENDING,
            False,
            Secret(key, sent).encoded(),
            None,
        )

    def _free_pin(self, connection: Connection) -> str:
        """Return a random PIN that no pending request has (H17)."""
        found = rows.read_requests(connection, self._store.seal)
        taken = {self.pin(each) for each in found if each.secret is not None}
        while True:
            pin = f"{secrets.randbelow(_PINS):04}"
            if pin not in taken:
                return pin

    async def _send(self, request: OwnRequest, now_ns: int) -> bool:
        group_id = request.group_id
        if not self._devices.has_group(group_id):
            # Nothing was sent: the program ended first.
            if now_ns - request.created_ns > _ABANDONED_NS:
                with self._store.writing() as connection:
                    rows.delete_request(connection, request.id)
            return False
        await self._devices.make_group(group_id)
        # Sent twice where the program ends between these two: a device takes one of them.
        self._devices.send(group_id, Secret.of(request).request.encoded())
        with self._store.writing() as connection:
            rows.mark_request_sent(connection, request.id)
        return True

    def _end(self, request_id: bytes, status: RequestStatus) -> None:
        with self._store.writing() as connection:
            rows.end_request(connection, request_id, status)
        self._store.forget_deleted()
