"""The paths of the service: XIP-31's, and those that today's clients ask.

=======================  =======================================================
``POST /backups``        the file in, ``{"downloadUrl": …}`` out (XIP-31)
``GET /backups/ID``      the file
``POST /upload``         the file in, its id out, as the whole body (today)
``GET /files/ID``        the file
=======================  =======================================================

Both uploads take a grant, and are of the open kind without one. Both downloads serve each file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from chainkit.errors import MalformedData
from chainkit.service.upload_grant import GRANT_PARAMETER, Grant, read_grant
from chainkit_backups.admission import Admission
from chainkit_backups.bodies import CHUNK_BYTES, LEAST_BYTES_PER_SECOND, Pace, file_chunks
from chainkit_backups.monitoring import BackupsMonitor
from chainkit_backups.place import Content
from chainkit_backups.server import EVERYWHERE
from chainkit_backups.store import Store, Upload
from chainkit_backups.types import (
    Kind,
    NotAllowed,
    NotFound,
    OutOfRange,
    Refused,
    Stored,
)

_FILE_HEADERS: Final = {
    "Content-Type": "application/octet-stream",
    # A stranger's file must not become a page of this host.
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "no-store",
    "Accept-Ranges": "bytes",
}


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of each upload."""

    grant_key: bytes | None
    """32 bytes that a gateway has as well; None where there is no gateway."""
    keep_seconds: float
    """How long a file is kept."""
    seconds_after_download: float | None
    """How long a file is kept after its last byte; None for as long as any file."""
    patience: float
    """Seconds that a transfer may take besides the time for its bytes."""


class BackupHandlers:
    """Answers requests; used on the event loop's thread."""

    def __init__(
        self,
        store: Store,
        admission: Admission,
        terms: Terms,
        monitor: BackupsMonitor,
        clock: Callable[[], float],
    ) -> None:
        """Take a clock in seconds since 1970."""
        self._store = store
        self._admission = admission
        self._terms = terms
        self._monitor = monitor
        self._clock = clock

    def routes(
        self, public_url: Callable[[], str], address_of: Callable[[web.Request], str]
    ) -> web.RouteTableDef:
        """Return the paths.

        Take functions for the service's public URL, known once the service listens, and for the
        address for which a request counts.
        """
        table = web.RouteTableDef()

        @table.post("/backups")
        async def post_backup(request: web.Request) -> web.StreamResponse:
            stored = await self._upload(request, address_of(request))
            return web.json_response({"downloadUrl": f"{public_url()}/backups/{stored.id}"})

        @table.post("/upload")
        async def post_upload(request: web.Request) -> web.StreamResponse:
            stored = await self._upload(request, address_of(request))
            return web.Response(text=stored.id)

        @table.get("/backups/{id}", allow_head=False)
        @table.get("/files/{id}", allow_head=False)
        async def get_file(request: web.Request) -> web.StreamResponse:
            return await self._download(request, address_of(request))

        return table

    async def _upload(self, request: web.Request, address: str) -> Stored:
        kind = Kind.GRANTED if GRANT_PARAMETER in request.query else Kind.OPEN
        with self._monitor.upload(kind) as counted:
            self._admission.begin_upload(kind, address, request.content_length)
            grant = self._grant(request) if kind is Kind.GRANTED else None
            upload = await asyncio.to_thread(self._store.begin, kind, address, grant)
            taken = 0
            try:
                async for data in file_chunks(request, self._terms.patience):
                    self._admission.take(upload.stored, len(data))
                    taken += len(data)
                    await asyncio.to_thread(upload.write, data)
                    counted(len(data))
                return await self._keep(upload)
            except BaseException:
                self._admission.give_back(upload.stored, taken)
                upload.drop()
                raise

    async def _keep(self, upload: Upload) -> Stored:
        if not upload.stored.size:
            raise Refused("file", "at least one byte", "none")
        await asyncio.to_thread(upload.sync, self._clock() + self._terms.keep_seconds)
        # A client that leaves now must not separate the file from its count.
        keeping = asyncio.ensure_future(asyncio.to_thread(upload.keep))
        try:
            return await asyncio.shield(keeping)
        except asyncio.CancelledError:
            return await keeping

    def _grant(self, request: web.Request) -> Grant:
        if self._terms.grant_key is None:
            raise NotAllowed("upload grant", "none: this service has no key", "one")
        try:
            text = request.query[GRANT_PARAMETER]
            return read_grant(self._terms.grant_key, text, self._clock())
        except MalformedData as error:
            raise NotAllowed(error.subject, error.expected, error.got) from error

    async def _download(self, request: web.Request, address: str) -> web.StreamResponse:
        with self._monitor.download() as counted:
            stored = self._store.find(request.match_info["id"])
            if stored is None:
                raise NotFound("file", "an id of a file that is kept", "another one")
            self._admission.begin_download(stored, address)
            part = _part_of(request, stored)
            try:
                begin = part[0] if part else 0
                content = await asyncio.to_thread(self._store.open_file, stored, begin)
            except FileNotFoundError as error:
                raise NotFound("file", "one that is kept", "one just removed") from error
            with content:
                return await self._send(request, stored, part, content, counted)

    async def _send(
        self,
        request: web.Request,
        stored: Stored,
        part: tuple[int, int] | None,
        content: Content,
        counted: Callable[[int], None],
    ) -> web.StreamResponse:
        begin, end = part or (0, stored.size)
        headers = _FILE_HEADERS | EVERYWHERE | {"ETag": _tag(stored)}
        answer = web.StreamResponse(headers=headers)
        answer.content_length = end - begin
        if part is not None:
            answer.set_status(206)
            answer.headers["Content-Range"] = f"bytes {begin}-{end - 1}/{stored.size}"
        answer.force_close()
        await answer.prepare(request)
        pace = Pace(self._terms.patience)
        while begin < end:
            data = await asyncio.to_thread(content.read, min(CHUNK_BYTES, end - begin))
            if not data:
                # No other answer can follow what was sent.
                raise ConnectionAbortedError("the place of the file has less")
            stored.sent += len(data)
            try:
                async with asyncio.timeout_at(pace.deadline + CHUNK_BYTES / LEAST_BYTES_PER_SECOND):
                    await answer.write(data)
            except TimeoutError as error:
                # No other answer can follow what was sent.
                raise ConnectionAbortedError("the reader waits") from error
            begin += len(data)
            pace.moved(len(data))
            counted(len(data))
        await answer.write_eof()
        if end == stored.size and self._terms.seconds_after_download is not None:
            gone_at = self._clock() + self._terms.seconds_after_download
            await asyncio.to_thread(self._store.expire, stored, gone_at)
        return answer


def _tag(stored: Stored) -> str:
    # The bytes under an id never change.
    return f'"{stored.id}"'


def _part_of(request: web.Request, stored: Stored) -> tuple[int, int] | None:
    """Return the first byte, and the one behind the last, of a range; None for the whole file.

    A header that is not one range of bytes is ignored (RFC 9110 §14.2). Raises OutOfRange.
    """
    if request.headers.get("If-Range", _tag(stored)) != _tag(stored):
        return None
    try:
        asked = request.http_range
    except ValueError:
        return None
    if asked.start is None:
        return None
    begin = max(stored.size + asked.start, 0) if asked.start < 0 else asked.start
    end = stored.size if asked.stop is None else min(asked.stop, stored.size)
    if begin >= end:
        refusal = OutOfRange("range", f"bytes below {stored.size}", "others")
        refusal.size = stored.size
        raise refusal
    return begin, end
